"""What attention tells: its entropy, its agreement with importance, and what becomes of a model when it is changed.

Pure functions of arrays (Jain & Wallace 2019, Wiegreffe & Pinter 2019, Meister et al. 2021 = P2, Tutek & Šnajder 2020 =
P3). Weights are [.., t]; `mask` [.., t] is True for real tokens, without it all are. What is said about a token or a
row that is not there is 0.
"""

from __future__ import annotations

from raison.metrics.attention.distributions import (
    jensen_shannon,
    normalised_entropy,
    permuted_attention,
    total_variation,
    uniform_attention,
)
from raison.metrics.attention.kmeans import clusters
from raison.metrics.attention.mutual_information import (
    Information,
    information_of_states,
    mutual_information,
    shuffled_information,
)
from raison.metrics.attention.token_logits import (
    pooled_logits,
    probability_from_token_logits,
    token_logits,
)
from raison.metrics.rank_correlation import kendall_defined, kendall_tau

__all__ = [
    "Information",
    "clusters",
    "information_of_states",
    "jensen_shannon",
    "kendall_defined",
    "kendall_tau",
    "mutual_information",
    "normalised_entropy",
    "permuted_attention",
    "pooled_logits",
    "probability_from_token_logits",
    "shuffled_information",
    "token_logits",
    "total_variation",
    "uniform_attention",
]
