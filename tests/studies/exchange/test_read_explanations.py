"""Explanations of other tools: tokens and scores, Inseq, and lines that are none."""

from __future__ import annotations

import json

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.studies.evaluate_methods import evaluate
from raison.studies.exchange.read_explanations import read_explanations
from raison.testing import tiny_model


@pytest.fixture(scope="module")
def model():
    return tiny_model("bert", "classification")


def test_tokens_of_any_tokenizer_find_their_words(model, tmp_path):
    path = tmp_path / "made.jsonl"
    record = {"text": "The film is lovely", "tokens": ["[CLS]", "the", "fi", "##lm", "is", "Ġlove", "ly", "[SEP]"],
              "scores": [9, 0.5, 1, 2, 0, 3, 4, 9], "method": "shap"}  # fmt: skip
    path.write_text(json.dumps(record) + "\n")
    found = evaluate(model, None, metrics=["aopc"], explanations=path)
    assert found.texts[0].units["shap"] == [
        ["The", 0.5],
        ["film", 3.0],
        ["is", 0.0],
        ["lovely", 7.0],
    ]


def test_inseq(tmp_path):
    path = tmp_path / "out.json"
    token = lambda word: {"token": word, "id": 1}  # noqa: E731
    whole = {
        "info": {"attribution_method": "saliency"},
        "sequence_attributions": [
            {
                "source": [token("▁Hello"), token("▁world")],
                "target": [token("▁Hallo"), token("▁Welt")],
                "source_attributions": [[0.25, 0.75], [0.5, 0.0]],
                "attr_pos_start": 0,
            }
        ],
    }
    path.write_text(json.dumps(whole))
    (made,) = read_explanations(path)
    assert made.method == "saliency"
    assert made.tokens == ("▁Hello", "▁world")
    np.testing.assert_allclose(made.scores, [0.5, 0.25])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "JSONDecodeError"), ("[]", "not an object"), ('{"tokens": ["a"]}', "neither scores"),
        ('{"tokens": ["a"], "scores": [1, 2], "text": "a"}', "1 tokens"),
        ('{"tokens": ["a"], "scores": [NaN], "text": "a"}', "not a number"),
        ('{"annotation_id": "z", "rationales": []}', "no text called 'z'"),
    ],
)  # fmt: skip
def test_broken_explanations_are_named_by_line(tmp_path, line, why):
    path = tmp_path / "made.jsonl"
    path.write_text('{"tokens": ["a"], "scores": [1], "text": "a b"}\n' + line + "\n")
    with pytest.raises(InputError, match=f"Line 2 of 'made.jsonl'.*{why}"):
        read_explanations(path)


def test_plausibility_of_explanations_from_elsewhere_needs_no_model(tmp_path):
    data = tmp_path / "texts.jsonl"
    data.write_text('{"id": "a", "text": "the film is lovely", "gold": [[12, 18]]}\n')
    path = tmp_path / "made.jsonl"
    path.write_text(
        '{"id": "a", "tokens": ["the", "film", "is", "lovely"], "scores": [0, 0, 0, 1]}\n'
    )
    found = evaluate("no such model", str(data), metrics=["auprc", "top_1"], explanations=path)
    assert found.cell("elsewhere", "auprc").value == 1
    assert found.cell("elsewhere", "top_1").value == 1
