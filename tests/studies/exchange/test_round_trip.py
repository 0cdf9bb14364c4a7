"""Explanations from and for other tools."""

from __future__ import annotations

import json

import numpy as np
import pytest

from raison.core.records import Example, Span
from raison.models.load import load
from raison.studies.evaluate_methods import evaluate
from raison.studies.exchange.placement import placed_spans_of_tokens
from raison.studies.exchange.read_eraser import document_of_single_rationale
from raison.studies.exchange.read_explanations import read_explanations

LONG = "The plot was okay I guess, and the rest went by as these things do on a quiet evening. Superb acting."


def counting(texts: list[str]) -> np.ndarray:
    """How often a text says superb and okay: a model whose right explanation is known."""
    return np.array([[3.0 * t.count("Superb") + 1.0 * t.count("okay"), 0.0] for t in texts])


def test_small_letters_find_the_nearest_word():
    """An uncased tokenizer's "the" is the sentence's first word, not the next one in small letters."""
    text = "The superb film was the best of the year"
    found = placed_spans_of_tokens([w.lower() for w in text.split()], text)
    assert [text[a:b].lower() for a, b in found] == text.lower().split() and found[0] == (0, 3)


@pytest.mark.parametrize("units", ["word", "sentence"])
def test_what_is_exported_is_measured_again_with_the_same_numbers(units, tmp_path):
    """ERASER's white-space tokens alone would give a sentence the scores of all its words together."""
    data = [
        Example(LONG, id="a", gold=(Span(87, 93),)),
        Example("Okay, okay. Superb!", id="b", gold=(Span(0, 4),)),
    ]
    model = load(counting, labels=["much", "none"])
    metrics = ["loo_correlation", "comprehensiveness", "auprc"]
    first = evaluate(
        model, data, ["leave_one_out"], metrics, units=units, export=tmp_path / "x.jsonl"
    )
    again = evaluate(model, data, metrics=metrics, units=units, explanations=tmp_path / "x.jsonl")
    for key in ("loo_correlation", "comprehensiveness", "auprc"):
        assert again.cell("leave_one_out", key).each == pytest.approx(
            first.cell("leave_one_out", key).each
        ), key
    assert first.cell("leave_one_out", "loo_correlation").value == pytest.approx(1.0)


def test_a_single_rationale_of_a_pair_is_about_the_text_with_gold(tmp_path):
    """In CoS-E the document is the question, which is the first text; the choices are no document."""
    first = Example(
        "Where is the pen kept ?",
        "A) desk B) sky",
        id="q1",
        label="A",
        gold=(Span(13, 16, "first"),),
    )
    second = Example(
        "Is it so ?", "the pen is here", id="q2", label="A", gold=(Span(4, 7, "second"),)
    )
    assert (
        document_of_single_rationale(first),
        document_of_single_rationale(second),
        document_of_single_rationale(Example("a", "b")),
    ) == (0, 1, 1)
    lines = [
        {
            "annotation_id": "q1",
            "rationales": [{"hard_rationale_predictions": [{"start_token": 3, "end_token": 4}]}],
        },
        {
            "annotation_id": "q2",
            "rationales": [{"hard_rationale_predictions": [{"start_token": 1, "end_token": 2}]}],
        },
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert [
        made.about for made in read_explanations(tmp_path / "x.jsonl", {"q1": first, "q2": second})
    ] == [0, 1]
    found = evaluate(
        None, [first, second], metrics=["token_f1_macro"], explanations=tmp_path / "x.jsonl"
    )
    assert found.cell("elsewhere", "token_f1_macro").each == (
        1.0,
        1.0,
    )  # and no model is needed for a pair
