"""The verdict about one explanation."""

from __future__ import annotations

import numpy as np

import raison
from raison.models.load import load
from raison.studies.trust_verdict import trust_verdict

LONG = "The plot was okay I guess, and the rest went by as these things do on a quiet evening. Superb acting."


def counting(texts: list[str]) -> np.ndarray:
    """How often a text says superb and okay: a model whose right explanation is known."""
    return np.array([[3.0 * t.count("Superb") + 1.0 * t.count("okay"), 0.0] for t in texts])


def test_a_value_is_not_called_a_probability():
    found = raison.explain(load(counting), LONG, "leave_one_out")
    part = {"this": 1.0, "random": 2.0, "leave_one_out": 5.0, "chance": 0.5}
    numbers = dict.fromkeys(
        ("order", "deletion", "insertion", "sufficiency", "comprehensiveness"), part
    )
    told = " ".join(trust_verdict(found, numbers, None)[1])
    assert "the value falls by" in told and "probability" not in told
