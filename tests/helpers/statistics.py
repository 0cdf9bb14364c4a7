"""What several tests of statistics use."""

from __future__ import annotations

import math

from raison.metrics.base import Share

NAN = math.nan


def shares(part, whole):
    return [Share(float(p), float(w)) for p, w in zip(part, whole, strict=True)]
