"""BigBird: block-sparse attention from about 700 tokens on; a short text switches it to full attention for good."""

from typing import Any

from raison.models.families import Family, register_family


def sparse_from(config: Any) -> int:
    """The text that it still attends to in full, in tokens."""
    if config.attention_type != "block_sparse":
        return 0
    size: int = (5 + 2 * config.num_random_blocks) * config.block_size
    return size


FAMILY = register_family(
    Family(
        "big_bird",
        ("big_bird",),
        reach=sparse_from,
        note="absolute positions, post-norm; block-sparse attention in long texts",
    )
)
PEGASUS = register_family(
    Family(
        "bigbird_pegasus",
        ("bigbird_pegasus",),
        positions="none",
        reach=sparse_from,
        note="block-sparse attention in long sources",
    )
)
