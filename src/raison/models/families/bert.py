"""BERT and what shares its code shape; MiniLM is a BERT."""

from raison.models.families import Family, register_family

FAMILY = register_family(Family("bert", ("bert",), note="absolute positions, post-norm"))
