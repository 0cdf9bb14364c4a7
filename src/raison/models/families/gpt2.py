"""GPT-2: learned absolute positions, pre-norm."""

from raison.models.families import Family, register_family

FAMILY = register_family(Family("gpt2", ("gpt2",), note="learned absolute positions, pre-norm"))
