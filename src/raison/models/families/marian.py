"""Marian (OPUS-MT): BART's shape with sinusoidal positions and scaled embeddings."""

from raison.models.families import Family, register_family
from raison.models.families.bart import prepare_bart

FAMILY = register_family(
    Family(
        "marian",
        ("marian",),
        positions="module",
        prepare=prepare_bart,
        note="sinusoidal positions inside the model",
    )
)
