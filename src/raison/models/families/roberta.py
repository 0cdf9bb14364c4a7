"""RoBERTa and XLM-R count positions from the padding id plus one, so position 0 is called 2."""

from raison.models.families import Family, register_family

FAMILY = register_family(
    Family(
        "roberta",
        ("roberta", "xlm-roberta", "camembert", "roberta-prelayernorm"),
        offset=lambda config: config.pad_token_id + 1,
        note="absolute positions that start at padding id + 1",
    )
)
