"""ModernBERT: rotary positions, most layers see only a window around each token."""

from raison.models.families import Family, family

FAMILY = family(
    Family("modernbert", ("modernbert",), note="rotary positions, local windows in most layers")
)
