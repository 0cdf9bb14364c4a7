"""What is said about an explanation."""

from __future__ import annotations

import pytest

import raison
from raison.core.errors import InputError
from raison.models.tasks.base import outcomes_of_texts
from raison.show.explanation_sentences import (
    headline_phrases,
    provenance_phrases,
    telling_diagnostics,
)
from raison.show.rationale_sentences import certificate_in_words
from raison.testing import tiny_hf, tiny_model
from tests.helpers.rationales import (
    court_rationale,
)
from tests.helpers.scored_explanations import (
    four_methods,
)
from tests.helpers.terminal import show

TEXT = "The old town lies on a hill"


def test_the_headline_shows_the_targets_own_probability():
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.config.id2label = {0: "same", 1: "same", 2: "other"}
    model = raison.load(hf, tokenizer)
    shares = dict(
        enumerate(
            outcomes_of_texts(model.runner, model.encode([raison.Example(TEXT)]))[0][0]
            .softmax(-1)
            .tolist()
        )
    )
    for label in (0, 1, 2):
        found = raison.explain(model, TEXT, target=label)
        assert f"{100 * shares[label]:.1f} %" in headline_phrases(found)[0]
    with pytest.raises(InputError, match="several classes"):
        raison.explain(model, TEXT, target="same")


def test_numbers_that_are_no_probabilities_are_not_per_cent():
    single, tokenizer = tiny_hf("bert", "classification", labels=1)
    regression = raison.load(single, tokenizer)
    for found in (
        raison.explain(regression, TEXT),
        raison.explain(raison.load(lambda ts: [0.3] * len(ts)), TEXT),
    ):
        assert "%" not in headline_phrases(found)[0]
    with pytest.raises(InputError, match="regression"):
        raison.explain(regression, TEXT, output="prob")


def test_against_a_contrast_numbers_are_differences():
    model = tiny_model("bert", "classification")
    found = raison.rationalize(model, "a lovely film", target=0, contrast=1)
    assert "value: log odds" in provenance_phrases(found)
    found = raison.explain(model, "a lovely film", target=0, contrast=1)
    assert "value: logit difference" in provenance_phrases(found)


def test_a_rationale_of_nothing_is_followed_by_advice_that_helps(sentiment):
    found = raison.rationalize(sentiment, "The pacing is dull, but the ending is wonderful.")
    assert not found.selected.any()
    (note,) = found.notes
    assert note.endswith(
        "It is as sure of it without the text: scores (raison explain) tell what each part adds."
    )
    found = raison.rationalize(sentiment, "A wonderful, warm and funny film.")
    assert not found.selected.any() and found.notes[0].endswith("ask for probability(tau=0.9).")
    found = raison.rationalize(
        sentiment, "A wonderful, warm and funny film.", sufficient="probability(tau=0.9)"
    )
    assert found.selected.any()
    whole = found.certificate.full_probability
    assert f"enough from {90 * whole:.1f} % on" in certificate_in_words(found)


def test_telling_diagnostics_are_shown_in_one_line():
    gaps = {
        "completeness_gap": {"absolute": 0.25, "relative": 0.01234},
        "evaluations": 2048,
        "sampling_error": 0.5,
    }
    extra = {"value": 3.0, "gaping": 1, "error": float("nan"), "converged": True}
    told = four_methods(diagnostics={**gaps, **extra}, notes=("Raise the steps.",))[0]
    assert telling_diagnostics(told) == [
        "completeness gap absolute 0.25",
        "completeness gap relative 0.0123",
        "sampling error 0.5",
        "evaluations 2048",
    ]
    output = show([told, *four_methods()[1:]])
    assert (
        output.count("completeness gap absolute 0.25 · completeness gap") == 1
        and "Raise the steps." in output
    )
    assert (
        telling_diagnostics(four_methods()[0]) == []
        and telling_diagnostics(court_rationale()) == []
    )
    assert telling_diagnostics(four_methods(diagnostics={"evaluations": 9})[0]) == []
