"""What the refined search removes."""

from __future__ import annotations

from tests.helpers.searches import (
    rationale,
)


def test_refined_removes_what_has_become_superfluous():
    """One word helps most at first, and not at all when the two that matter are there."""

    def score(texts):
        worth = {"a": 0.5, "b": 0.3, "c": 0.3, "ab": 0.7, "ac": 0.7, "bc": 1.0, "abc": 1.0}
        return [
            [worth.get("".join(sorted(set(text.split()) & set("abc"))), 0.0), 0.9] for text in texts
        ]

    greedy, refined = (rationale(score, "x a y b z c", search) for search in ("greedy", "refined"))
    names = lambda about: [about.units.names[u] for u in about.order]  # noqa: E731
    assert names(greedy) == ["a", "b", "c"] and not greedy.certificate.irreducible
    assert names(refined) == ["b", "c"] and refined.certificate.optimal


def test_a_unit_that_hurts_is_left_out():
    def score(texts):  # "not" takes the answer away
        return [[float("good" in text) - 2 * ("not" in text.split()), 0.5] for text in texts]

    about = rationale(score, "a good film it is", "greedy")
    assert [about.units.names[u] for u in about.order] == ["good"]
