"""Where one method gives more than another."""

from __future__ import annotations

from raison.show.method_difference import difference_of_methods
from tests.helpers.scored_explanations import (
    explained_by_methods,
)


def test_a_difference_is_of_shares():
    one, two = explained_by_methods([4, -2, 0, 1], [1, 1, 0, -2], text="a b c d")
    found = difference_of_methods(one, two, ("a", "b"))
    assert found.values.tolist() == [0.5, -1, 0, 1.25] and found.weights.tolist() == [0.5, -1, 0, 1]
    assert not found.by_size and found.meaning().endswith(", with their signs")
    assert (
        found.strongest(9) == [3, 1, 0]
        and found.strongest(9, 1) == [3, 0]
        and found.strongest(1, -1) == [1]
    )
    sized = difference_of_methods(
        one, explained_by_methods([1, 1, 0, 2], text="a b c d")[0], ("a", "b")
    )
    assert sized.values.tolist() == [0.5, 0, 0, -0.75] and sized.meaning().endswith(
        ", without signs"
    )
    zero = difference_of_methods(
        one, explained_by_methods([0, 0, 0, 0], text="a b c d")[0], ("a", "b")
    )
    assert zero.one.tolist() == [1, 0.5, 0, 0.25] and not zero.other.any()
