"""How sure is a number, and is one method better than another? Intervals, paired tests, corrections, effect sizes.

Everything is seeded and computed over examples: they are resampled, swapped and compared, never tokens. A NaN is an
example for which a number does not exist: it is left out (of pairs, the pair) and counted.
"""

from __future__ import annotations

from raison.metrics.statistics.bootstrap import bca, percentile
from raison.metrics.statistics.corrections import benjamini_hochberg, holm
from raison.metrics.statistics.effect_sizes import cliffs_delta, cohens_d, superiority
from raison.metrics.statistics.intervals import (
    Interval,
    averaged_f1_gap_interval,
    averaged_f1_interval,
    mean_interval,
    pooled_gap_interval,
    pooled_interval,
)
from raison.metrics.statistics.paired_tests import (
    Comparison,
    averaged_f1_permutation_test,
    permutation_test,
    pooled_permutation_test,
)

__all__ = [
    "Comparison",
    "Interval",
    "averaged_f1_gap_interval",
    "averaged_f1_interval",
    "averaged_f1_permutation_test",
    "bca",
    "benjamini_hochberg",
    "cliffs_delta",
    "cohens_d",
    "holm",
    "mean_interval",
    "percentile",
    "permutation_test",
    "pooled_gap_interval",
    "pooled_interval",
    "pooled_permutation_test",
    "superiority",
]
