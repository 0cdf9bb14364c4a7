"""GPT-NeoX and Pythia: rotary positions on a part of each head, parallel blocks."""

from raison.models.families import Family, register_family

FAMILY = register_family(
    Family("gpt_neox", ("gpt_neox",), note="rotary positions, parallel attention and MLP")
)
