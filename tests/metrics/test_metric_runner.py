"""Metrics, methods and texts share calls, and company changes no number."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

import raison
from raison.core.records import Example
from raison.core.registry import metrics
from raison.metrics.base import Subject
from raison.models.protocol import Budget
from tests.helpers.faithfulness import (
    LITERAL,
    SOFT,
    TEXTS,
    WORDS,
    WORLDS,
    additive,
    build,
    measure,
    measured_subjects,
    same,
    scored,
    tiny,
)
from tests.oracles import metrics as literal

pytestmark = pytest.mark.usefixtures("precise")


def test_company_does_not_matter():
    """Alone or with all other metrics and subjects: the same bits, where a row of a batch is a batch of its own."""
    model = copy.copy(tiny("bert"))
    model.budget = Budget(tokens=1)
    subjects = [replace(each, model=model) for each in measured_subjects()[1:5]]
    few = {name: f"{name}(samples=2)" for name in ("infidelity", *SOFT)}
    chosen = [
        m for m in build(*(few.get(name, name) for name in metrics)) if "again" not in m.needs
    ]
    together = measure(model, subjects, chosen)
    for row, one in zip(together, subjects, strict=True):
        for i, metric in enumerate(chosen):
            assert same(row[i], measure(model, [one], [metric])[0][0])
    assert all(
        same(row[i], other[-1 - i])
        for row, other in zip(
            together, measure(model, subjects[::-1], chosen[::-1])[::-1], strict=True
        )
        for i in range(len(chosen))
    )


@pytest.mark.parametrize("family", WORLDS)
def test_company_of_the_same_text_in_a_template_does_not_matter(family):
    """The same tokens twice, once with parts that may not be removed: two questions, not one."""
    model = tiny(family)
    example = Example.from_template("Review: {body} Verdict", body="a lovely surprise")
    found = [raison.explain(model, text, "random") for text in (example, example.text)]
    assert len(found[0].units) < len(found[1].units) and found[0].target == found[1].target
    subjects = [Subject(each, model=model) for each in found]
    for order in (subjects, subjects[::-1]):
        for one, row in zip(order, measure(model, order, build(*LITERAL)), strict=True):
            for each, alone in zip(row, measure(model, [one], build(*LITERAL))[0], strict=True):
                for key, value in alone.items():
                    np.testing.assert_allclose(each[key], value, atol=1e-12, err_msg=key)


def test_company_of_a_function_does_not_matter():
    model = raison.load(additive)
    texts = [" ".join(WORDS), " ".join(WORDS[::2]), " ".join(WORDS)]
    subjects = [
        Subject(scored(model, text, seed, target=0), model=model) for seed, text in enumerate(texts)
    ]
    chosen = [m for m in build(*metrics) if m.needs == {"score"}]
    together = measure(model, subjects, chosen)
    for row, one in zip(together, subjects, strict=True):
        assert all(
            same(row[i], measure(model, [one], [metric])[0][0]) for i, metric in enumerate(chosen)
        )


@pytest.mark.parametrize("family", WORLDS)
def test_batches_change_the_last_digits_at_most(family):
    model = tiny(family)
    subjects = [
        Subject(raison.explain(model, text, "leave_one_out"), model=model) for text in TEXTS
    ]
    chosen = build(*LITERAL)
    together = measure(model, subjects, chosen)
    for row, one in zip(together, subjects, strict=True):
        for each, metric in zip(row, chosen, strict=True):
            alone = measure(model, [one], [metric])[0][0]
            for key, value in alone.items():
                np.testing.assert_allclose(each[key], value, atol=1e-12)


@pytest.mark.parametrize("family", WORLDS)
def test_one_call_for_everything(family, monkeypatch):
    """All metrics that ask about sets, of several methods and texts: one call, in which no set stands twice."""
    model = tiny(family)
    asked = []

    def score(questions, **how):
        asked.append(questions)
        return answer(questions, **how)

    names = ("leave_one_out", "random", "uniform")
    subjects = [
        Subject(raison.explain(model, text, name), model=model) for text in TEXTS for name in names
    ]
    answer = model.score
    monkeypatch.setattr(model, "score", score)
    measure(model, subjects, build(*LITERAL))
    assert len(asked) == 1
    (questions,) = asked
    outputs = {(q.encoding.texts, q.target.output) for q in questions}
    assert len(outputs) == len(questions) == len(TEXTS) * len({output for _, output in outputs})
    for question in questions:
        assert len(np.unique(question.keep, axis=0)) == len(question.keep)
        assert question.keep[:, question.target.given(question.encoding)].all()
    asked.clear()
    measure(model, subjects[:1], build("aopc"))
    assert len(asked) == 1 and len(asked[0]) == 1
    counts = {0, *literal.removed_counts(len(subjects[0].units), 9)}
    assert len(asked[0][0].keep) == len(counts)
