"""Rationales of last words, with overlaps counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from raison.core.records import Encoding, Example, Span, Target
from raison.datasets.loading import LoadedData
from raison.metrics.base import Share
from raison.studies.reproduce.experiment import experiments
from raison.studies.reproduce.experiments import last_words_of_lambada
from raison.studies.reproduce.target_rationales import TargetInText
from raison.testing import tiny_model
from tests.helpers.trials import METHODS, found_in, trial_of


def passage(gold, targets=1, size=12) -> last_words_of_lambada.LambadaPassage:
    model = tiny_model("gpt2", "causal")
    encoding = model.encode([Example("abcdefghijklmnopqrstuvwxyz"[: 2 * size])])[0]
    aims = []
    for k in range(targets):
        aims.append(TargetInText(encoding, Target("token", (1,), (10 + k,), "x", "log_prob")))
    return last_words_of_lambada.LambadaPassage(Example("x", id="1"), tuple(aims), frozenset(gold))


def test_f1_is_pooled_and_iou_is_a_mean():
    one, other = passage({7, 8, 9}), passage({1, 9})
    first = one.row([found_in([9, 8])])
    second = other.row([found_in([9, 0, 2, 3, 4, 5])])
    assert (first.length, second.length) == (2.0, 6.0)
    assert first.iou == pytest.approx(2 / 3)
    assert second.iou == pytest.approx(1 / 7)
    assert first.f1 == Share(4, 5)
    assert second.f1 == Share(2, 8)
    rationales = [[found_in([9, 8])], [found_in([9, 0, 2, 3, 4, 5])]]
    ious, f1s = last_words_of_lambada.lambada_overlap_along_rankings([one, other], rationales)
    assert len(ious) == 20
    assert ious[0] == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert f1s[0] == pytest.approx((2 + 2) / (4 + 3))
    assert ious[1] == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert f1s[1] == pytest.approx((4 + 2) / (5 + 4))
    assert ious[19] == pytest.approx((2 / 3 + 1 / 7) / 2)  # a rationale that has ended stays


def test_a_word_of_two_tokens_has_both_rationales_but_not_itself():
    both = passage({8, 9}, targets=2)
    assert both.begins == 10
    row = both.row([found_in([9, 8]), found_in([10, 9, 3], reached=False)])
    assert row.length == 3.0  # 3, 8, 9: the word's own first token is none
    assert row.iou == pytest.approx(2 / 3)
    assert row.reached == 0.0


def test_gold_tokens_end_in_a_span():
    ends = np.array([3, 5, 9, 12])
    encoding = Encoding(
        np.arange(4),
        ("a",) * 4,
        ("text",),
        ("x" * 12,),
        np.zeros(4),
        ends - 2,
        ends,
        np.arange(4),
        np.zeros(4, bool),
    )
    example = Example("x" * 12, gold=(Span(3, 9), Span(11, 12)))
    assert last_words_of_lambada.gold_tokens_of_lambada(encoding, example) == {
        1,
        2,
        3,
    }  # the first ends where the span begins


def lambada_read(model, own: bool) -> LoadedData:
    texts = [
        "the cat sat on the mat and the dog",
        "a good film about the sea",
        "we went home and the night was cold",
    ]
    examples = []
    for k, text in enumerate(texts):
        best = model.predict(model.encode([Example(text)]))[0]
        token = best.target.ids if own else best.outcomes[1]
        examples.append(
            Example(text, id=str(k), target=list(token), gold=(Span(len(text) - 3, len(text)),))
        )
    return LoadedData("lambada_rationales", "test", "causal", (), examples)


def test_lambada_takes_the_passages_that_are_asked_for(monkeypatch):
    model = tiny_model("gpt2", "causal")
    mixed = lambada_read(model, True)
    mixed.examples[1] = lambada_read(model, False).examples[1]
    monkeypatch.setattr(last_words_of_lambada, "open_dataset", lambda name, data=None: mixed)
    found = experiments["lambada"](trial_of(model, own=True))
    assert [text.id for text in found.texts] == ["0", "2"]
    assert "2 of 3 passages" in found.notes[0]
    assert set(found.curves) == {"iou_at_k_curve", "f1_at_k_curve"}
    assert all(found.cell(title, "reached").value == 1.0 for title in METHODS)
    assert found.cell("refined", "length").value <= found.cell("greedy", "length").value
    rule = {"greedy": "greedy(sufficient=probability(tau=0.5), evaluations=1)"}
    others = experiments["lambada"](trial_of(model, rule, own=False))
    assert [text.id for text in others.texts] == ["1"]
    assert (
        others.cell("greedy", "reached").value == 0.0
    )  # the budget ends, and the whole passage is no rationale
