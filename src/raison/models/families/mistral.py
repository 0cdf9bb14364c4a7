"""Mistral: LLaMA's blocks; older checkpoints see only a window of 4,096 tokens in every layer."""

from raison.models.families import Family, register_family

FAMILY = register_family(
    Family(
        "mistral",
        ("mistral", "ministral"),
        note="rotary positions, sliding window in some checkpoints",
    )
)
