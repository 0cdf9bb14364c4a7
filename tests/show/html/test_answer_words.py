"""What the page says about a text without some units, and about the heads of an answer."""

from __future__ import annotations

import pytest

from raison.show.html.answer_words import words_of_heads, words_of_removal
from raison.studies.what_if import AnswerWithoutUnits, HeadsOfAnswer


@pytest.mark.parametrize(
    ("same", "instead", "verdict"),
    [
        (True, "", "it predicts the same as before"),
        (False, "negative", "it predicts “negative” instead"),
        (False, "", "it predicts something else"),
    ],
)
def test_a_removal_says_what_becomes_of_the_prediction(same, instead, verdict):
    answer = AnswerWithoutUnits(
        before=0.987, after=0.0001, same=same, instead=instead, probable=True
    )
    words = words_of_removal(answer)
    assert (words.change, words.verdict) == ("98.7 % → <0.1 %", verdict)


def test_values_that_are_no_probabilities_have_four_digits():
    answer = AnswerWithoutUnits(
        before=-1.23456, after=12345.6, same=True, instead="", probable=False
    )
    assert words_of_removal(answer).change == "-1.235 → 12350"


def test_heads_say_what_they_carry_and_of_which_kind_they_are():
    heads = HeadsOfAnswer(
        maps=("0",),
        carried=((0.25, 0.75),),
        syntactic=((None, 0.2),),
        positional=((0.1, 0.9),),
        offsets=((1, -1),),
        corpus="made up",
    )
    ((plain, both),) = words_of_heads(heads)
    assert (plain.label, plain.kinds) == ("layer 0, head 0: 25.0 % of what all heads carry", "")
    assert both.kinds == "SP"
    assert both.label.endswith("; syntactic and positional (looks at offset -1)")
