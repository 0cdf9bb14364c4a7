"""ModernBERT: rotary positions, most layers see only a window around each token."""

from raison.models.families import Family, register_family

FAMILY = register_family(
    Family("modernbert", ("modernbert",), note="rotary positions, local windows in most layers")
)
