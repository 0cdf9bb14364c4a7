"""BERT and what shares its code shape; MiniLM is a BERT."""

from raison.models.families import Family, family

FAMILY = family(Family("bert", ("bert",), note="absolute positions, post-norm"))
