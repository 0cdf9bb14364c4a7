"""DistilBERT: half of BERT, no token types."""

from raison.models.families import Family, family

FAMILY = family(Family("distilbert", ("distilbert",), note="absolute positions, post-norm"))
