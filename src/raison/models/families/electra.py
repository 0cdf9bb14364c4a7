"""ELECTRA: BERT's blocks, a head that reads the first row."""

from raison.models.families import Family, family

FAMILY = family(Family("electra", ("electra",), note="absolute positions, post-norm"))
