"""ALBERT: one block used again and again, embeddings narrower than the blocks."""

from raison.models.families import Family, register_family

FAMILY = register_family(Family("albert", ("albert",), note="absolute positions, shared layers"))
