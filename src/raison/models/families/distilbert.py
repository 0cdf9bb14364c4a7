"""DistilBERT: half of BERT, no token types."""

from raison.models.families import Family, register_family

FAMILY = register_family(
    Family("distilbert", ("distilbert",), note="absolute positions, post-norm")
)
