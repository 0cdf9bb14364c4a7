"""Words and tokens of translations, and the numbers of their links by hand."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from raison.core.records import Encoding, Example
from raison.datasets.loading import LoadedData
from raison.metrics.base import Share
from raison.models.protocol import TargetSpec
from raison.studies.reproduce.experiment import experiments
from raison.studies.reproduce.experiments import gold_alignments
from raison.testing import tiny_model
from tests.helpers.trials import found_in, trial_of


def marian():
    return tiny_model("marian", "seq2seq")


def test_target_words_by_counting_letters():
    model = marian()
    (encoding,) = model.encode([Example("the cat")])
    text = "the film , the cat"
    ((longer, target),) = model.resolve_targets(
        encoding, TargetSpec(target=text, output="log_prob")
    )
    words = [(m.start(), m.end()) for m in re.finditer(r"\S+", text)]
    found = gold_alignments.aligned_word_of_each_token(longer, target.positions, text, words)
    spelt: dict[int, str] = {}
    for word, position in zip(found, target.positions, strict=True):
        spelt[word] = spelt.get(word, "") + longer.text_of(position).strip()
    assert spelt == {0: "the", 1: "film", 2: ",", 3: "the", 4: "cat"}
    assert (
        gold_alignments.aligned_word_of_each_token(
            longer, target.positions, "the films , the cat", words
        )
        is None
    )


def test_source_words_that_a_token_touches():
    ends = np.array([3, 7, 9, -1])
    encoding = Encoding(
        np.arange(4), ("a",) * 4, ("source",), ("x" * 9,), np.zeros(4), np.array([0, 3, 8, -1]), ends, np.arange(4),
        np.zeros(4, bool),
    )  # fmt: skip
    assert gold_alignments.gold_words_touched(encoding, [(0, 4), (4, 6), (8, 9)]) == {
        0: (0,),
        1: (0, 1),
        2: (2,),
    }


def test_alignment_numbers_by_hand():
    meta = {"sure": [[0, 0], [1, 1]], "possible": [[2, 1]], "source_words": [], "target_words": []}
    example = Example("x", id="1", label="y", meta=meta)
    source = {0: (0,), 1: (1,), 2: (1, 2), 3: (3,)}  # token 4 is the end of the source
    sentence = gold_alignments.AlignedSentence(
        example, (), (0, 1, 1), source, own_tokens=3, tokens=5, linked=2
    )
    rationales = [
        found_in([9, 4, 0, 3]),  # word 0: source words 0 and 3
        found_in([9, 8]),  # word 1, first token: no source, but its ranking meets word 3
        found_in([9, 1]),  # word 1, second token: source word 1
    ]
    rationales[1] = replace(rationales[1], ranking=(9, 8, 4, 3))
    row = sentence.row(rationales)
    # A = {0-0, 3-0, 1-1}, S = {0-0, 1-1}, P = S and 2-1
    assert row.length == Share(8, 3)
    assert row.aer == Share(5 - 2 - 2, 5)
    assert float(row.aer_paper) == pytest.approx(((1 - 1 / 3) + (1 - 1 / 2)) / 2)
    assert float(row.iou) == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert row.f1 == Share(4, 6)
    assert row.top_1 == Share(1, 2)  # word 1 meets 3 first
    assert row.top_1_paper == Share(2, 3)  # 0; 3 misses; 1 hits


def test_alignments_explain_what_the_model_would_write(monkeypatch):
    model = marian()
    examples = []
    for k, text in enumerate(["the cat sat", "a dog ran home"]):
        (encoding,) = model.encode([Example(text)])
        ((longer, _),) = model.resolve_targets(encoding)
        label = longer.texts[-1].strip()
        words = [(m.start(), m.end()) for m in re.finditer(r"\S+", label)]
        spans = [(m.start(), m.end()) for m in re.finditer(r"\S+", text)]
        links = [[0, j] for j in range(len(words))]
        meta = {"sure": links, "possible": [], "source_words": spans, "target_words": words}
        examples.append(Example(text, id=str(k), label=label, meta=meta))
    examples.append(replace(examples[0], id="9", label="漢"))  # not in the vocabulary
    read = LoadedData("x", "test", "seq2seq", (), examples)
    monkeypatch.setattr(gold_alignments, "open_dataset", lambda name, split=None, data=None: read)
    found = experiments["alignments"](trial_of(model, words=0))
    assert found.texts
    assert "1 sentences were left out" in found.notes[1]
    tokens = sum(found.cell("greedy", "length").wholes)
    assert f"({int(tokens)} tokens)" in found.notes[0]
    for column in found.columns:
        assert found.cell("greedy", column.key).value is not None
