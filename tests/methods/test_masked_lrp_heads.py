"""Which heads masked_lrp takes, and what it refuses."""

from __future__ import annotations

import pytest

import raison
from raison.core.errors import InputError
from raison.core.registry import methods


def test_heads_that_are_not_chosen_make_a_difference_where_all_rows_are_read(sentiment):
    text = "i hated every minute of this pointless mess of a movie ."
    some = raison.explain(sentiment, text, "masked_lrp")
    none = raison.explain(sentiment, text, "masked_lrp(top=0, syntactic=1, positional=1)")
    every = raison.explain(sentiment, text, "transformer_attribution")
    assert not none.scores.any()  # without attention no token says anything about another
    assert some.scores.any()
    assert abs(some.scores - every.scores).max() > 0.01 * every.scores.max()


@pytest.mark.parametrize(
    "spec", ["masked_lrp(heads=5)", "masked_lrp(heads='')", "masked_lrp(random='no')"]
)
def test_parameters_of_masked_lrp_are_checked(spec):
    with pytest.raises(InputError):
        methods.build(spec)
