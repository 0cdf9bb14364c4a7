"""The exact search against brute force, and what it says when it runs out."""

from __future__ import annotations

import numpy as np
import pytest

import raison
from tests.helpers.searches import (
    brute,
    drawn,
    found_by,
    rationale,
    tiny,
    verify,
)


@pytest.mark.parametrize("family", ["gpt2", "qwen", "gemma", "bart"])
def test_exact_is_brute_force_and_nobody_is_shorter(family, precise):
    """|exact| ≤ |refined| and |greedy|, all enough; nothing can be spared of a refined rationale."""
    model, generator = tiny(family), np.random.default_rng(2)
    aims = [drawn(model, generator, 7, 9) for _ in range(6)]
    found = {
        name: found_by(f"{name}(sufficient=argmax)", model, aims)
        for name in ("exact", "refined", "greedy")
    }
    for exact, refined, greedy in zip(*found.values(), strict=True):
        least, sizes = brute(model, exact)
        assert len(exact.units) <= 8 and least == sizes.min() == exact.size
        claim = verify(model, exact)
        assert claim.optimal and claim.lower_bound == exact.size and claim.irreducible
        for other in (refined, greedy):
            claim = verify(model, other)
            assert claim.sufficient and exact.size <= other.size
            assert claim.lower_bound <= least and (not claim.optimal or other.size == least)
        assert refined.certificate.irreducible  # verified above by leaving out each unit
    assert sum(about.size for about in found["refined"]) <= sum(
        about.size for about in found["greedy"]
    )


def test_exact_that_runs_out_says_how_far_it_came(precise):
    model, generator = tiny("qwen"), np.random.default_rng(3)
    aims = [drawn(model, generator, 12, 14) for _ in range(6)]
    for whole, cut in zip(
        found_by("exact", model, aims), found_by("exact(evaluations=100)", model, aims), strict=True
    ):
        claim = verify(model, cut)
        assert claim.sufficient and claim.lower_bound <= whole.size <= cut.size
        assert claim.evaluations <= 100
        if claim.status == "budget":
            assert not claim.optimal or cut.size == whole.size


def test_a_lower_bound_is_never_too_high():
    """Three words are enough, but everything leads to eight others; the budget ends at every stage of the proof."""
    words = "a b c d e f g h i j k l".split()

    def score(texts):
        kept = [set(text.split()) for text in texts]
        value = [
            1.0 if {"b", "f", "k"} <= s or len(s) >= 8 else len(s - {"b", "f", "k"}) / 20
            for s in kept
        ]
        return [[v, 0.9] for v in value]

    seen = set()
    for budget in range(20, 400, 20):
        about = rationale(score, " ".join(words), f"exact(evaluations={budget})")
        claim = verify(raison.load(score), about)
        assert claim.lower_bound <= 3 and (claim.status == "budget" or claim.size == 3)
        assert claim.optimal == (claim.status == "complete")
        seen.add(claim.lower_bound)
    assert 3 in seen
    whole = rationale(score, " ".join(words), "exact").certificate
    assert whole.size == whole.lower_bound == 3 and whole.optimal


@pytest.mark.parametrize("search", ["greedy", "refined", "exact", "by_order", "hierarchical"])
def test_nothing_is_called_optimal_that_is_not(search):
    """Two words help together and hurt alone, so the empty set looks best from near by."""

    def score(texts):
        both = [("b" in text.split(), "e" in text.split()) for text in texts]
        return [-0.01 if b and e else -5.0 if b or e else -3.0 for b, e in both]

    about = rationale(score, "a b c d e f", search, sufficient="penalty(weight=0.5)")
    least, _ = brute(raison.load(score), about)
    assert (
        not about.certificate.optimal
        or 0.5 * about.size - about.certificate.value == pytest.approx(least)
    )
    assert search != "exact" or about.certificate.optimal
