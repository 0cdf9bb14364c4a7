"""ELECTRA: BERT's blocks, a head that reads the first row."""

from raison.models.families import Family, register_family

FAMILY = register_family(Family("electra", ("electra",), note="absolute positions, post-norm"))
