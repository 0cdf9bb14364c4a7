"""Gemma: scaled embeddings, 1 + weight norms; Gemma 2 and 3 mix windowed and full layers and cap their logits."""

from raison.models.families import Family, register_family

FAMILY = register_family(
    Family(
        "gemma",
        ("gemma", "gemma2", "gemma3_text"),
        note="rotary positions, windows in alternate layers, soft caps",
    )
)
