"""Rationales that look into the other of two sentences, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.core.records import Example, Target
from raison.datasets.loading import LoadedData
from raison.metrics.base import Share
from raison.studies.reproduce.experiment import experiments
from raison.studies.reproduce.experiments import distractor_sentences
from raison.studies.reproduce.target_rationales import TargetInText
from raison.testing import tiny_model
from tests.helpers.trials import found_in, trial_of


def marian():
    return tiny_model("marian", "seq2seq")


def test_crossovers_counted_by_hand():
    model = marian()
    first, second = Example("the cat", id="1"), Example("a dog ran", id="2")
    pair = distractor_sentences.join_sentences(model, first, second, 0, np.random.default_rng(0))
    (alone,) = model.encode([first])
    assert pair.source_break == int((alone.segment == 0).sum()) - 1  # without its end token
    written = [
        distractor_sentences.ids_of_written_translation(model, each) for each in (first, second)
    ]
    assert pair.target_break == len(written[0])
    assert pair.tokens == len(written[0]) + len(written[1])
    encoding = pair.targets[0].encoding
    sources = int((encoding.segment == 0).sum())
    b, end = pair.source_break, sources - 1
    assert encoding.ids[sources + 1 :].tolist() == [*written[0], *written[1]]

    def aim(index):
        position = sources + 1 + index
        return TargetInText(
            encoding, Target("token", (int(encoding.ids[position]),), (position,), "x", "log_prob")
        )

    # a target of the first half: one of its own words, two of the second sentence, the end of the source
    before = pair.crossover(aim(0), found_in([sources, 0, b, b + 1, end]))
    assert (before.source, before.target) == (2, None)
    # the first of the second half: start token and previous token do not count, the first written token does
    t = pair.target_break
    after = pair.crossover(aim(t + 1), found_in([sources + t + 1, sources, sources + 1, 0, b, end]))
    assert (after.source, after.target) == (1, 1)
    assert (
        pair.crossover(aim(t), found_in([sources + t])).target == 0
    )  # the previous token is of the first half
    fixed = replace(pair, targets=(aim(0), aim(t + 1)))
    row = fixed.row(
        [found_in([sources, 0, b, b + 1, end]), found_in([sources + t + 1, sources + 1, 0])]
    )
    assert row.mean_source == Share(3, 2)
    assert row.mean_target == Share(1, 1)
    assert row.rate_source == Share(2, 2)
    assert row.length == Share(8, 2)


def test_distractors_run_and_pool(monkeypatch):
    model = tiny_model("marian", "seq2seq", seed=2)  # which goes on as it began
    texts = ["the cat sat", "a dog ran", "the sea is cold", "we went home"]
    read = LoadedData(
        "x", "test", "seq2seq", (), [Example(text, id=str(k)) for k, text in enumerate(texts)]
    )
    monkeypatch.setattr(
        distractor_sentences, "open_dataset", lambda name, split=None, data=None: read
    )
    found = experiments["distractors"](trial_of(model, count=2, targets=4))
    assert len(found.texts) == 2
    for cell in found.cells:
        if cell.value is not None:
            assert cell.value == pytest.approx(sum(cell.parts) / sum(cell.wholes))
    explained = sum(found.cell("greedy", "length").wholes)
    assert f"{int(explained)} of them are explained" in found.notes[0]
    assert explained <= 8
    again = experiments["distractors"](trial_of(model, count=2, targets=4))
    assert again == found
    with pytest.raises(InputError, match="need 6 sentences"):
        experiments["distractors"](trial_of(model, count=3))
