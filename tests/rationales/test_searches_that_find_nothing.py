"""Searches that find nothing, and contrasts far behind."""

from __future__ import annotations

import raison
from raison.models.load import load


def test_a_contrast_far_behind_the_target_of_a_function():
    def score(texts):
        return [[1.0 * ("good" in t), 0.2, 0.1, 0.05] for t in texts]

    for search in ("greedy", "refined", "exact"):
        found = raison.rationalize(load(score), "this is a very good film", search, target=0, contrast=3)
        assert found.certificate is not None


def test_no_rationale_found_is_not_no_rationale():
    """Where the whole text is not enough, a part may still be: greedy can't know."""

    def score(texts):
        words = [set(t.split()) for t in texts]
        return [[1.0 if w == {"x", "y"} else -5.0 if w and w < {"x", "y"} else -1.0, 0.0] for w in words]

    found = raison.rationalize(load(score), "x y p q r", "greedy", target=0, sufficient="argmax")
    from raison.show.certificate import warnings

    assert "this search found no part that is" in warnings(found)[0]
    assert raison.rationalize(load(score), "x y p q r", "exact", target=0, sufficient="argmax").selected.sum() == 2
