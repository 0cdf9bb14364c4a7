"""The contract of every metric, on all subjects, on constant models, and its spec."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import InputError
from raison.core.records import Example, Span
from raison.core.registry import metrics
from raison.metrics.base import AveragedF1, Share
from raison.testing import tiny_hf
from tests.helpers import cheap_specs
from tests.helpers.faithfulness import (
    LITERAL,
    SOFT,
    TEXT,
    assert_sentence,
    build,
    measure,
    measured_subjects,
    same,
    subject,
    tiny,
)

pytestmark = pytest.mark.usefixtures("precise")


def test_constant_function():
    """Every method and metric that a function allows: finite numbers, and no warning (warnings are errors)."""
    model = raison.load(lambda texts: [[0.2, 0.5, 0.3]] * len(texts))
    example = Example(TEXT, gold=(Span(4, 8),))
    chosen = [m for m in build(*metrics) if m.needs <= {"score", "gold", "choice"}]
    assert {m.name for m in chosen} >= set(LITERAL) - {"lodds"}
    names = cheap_specs.fitting(model)
    assert "leave_one_out" in names
    subjects = [subject(model, example, cheap_specs.light(name), example=example) for name in names]
    for row in measure(model, subjects, chosen):
        assert_finite(row)


def test_constant_transformer():
    """A classifier whose weights are zero says the same of every text; its gradients are zero."""
    hf, tokenizer = tiny_hf("bert", "classification")
    model = raison.load(hf, tokenizer)
    assert "gradients" in model.offers
    with torch.no_grad():
        hf.classifier.weight.zero_()
    example = Example(TEXT, gold=(Span(4, 8),))
    # as many draws as it takes; what they cost is not the point here
    few = {
        "max_sensitivity": "max_sensitivity(samples=1)",
        "randomisation": "randomisation(levels=1)",
    }
    chosen = build(*(few.get(name, name) for name in metrics))
    shared: dict = {}
    subjects = [
        subject(model, example, cheap_specs.light(name), example=example, cache=shared)
        for name in cheap_specs.fitting(model)
    ]
    for row in measure(model, subjects, chosen):
        assert_finite(row)
        found = {key: value for each in row for key, value in each.items()}
        assert (
            found["comprehensiveness"]
            == found["sufficiency"]
            == found["aopc"]
            == found["lodds"]
            == 0
        )
        assert found["decision_flip"] == 1 and found["decision_flip_first"] == 0
        assert found["loo_correlation"] == 0 and found["infidelity"] == 0
        assert found["normalised_sufficiency"] == found["soft_sufficiency"] == 1
        assert found["normalised_comprehensiveness"] == found["soft_comprehensiveness"] == 0


def assert_finite(row):
    for each in row:
        for key, value in each.items():
            assert np.isfinite(
                np.asarray(float(value) if isinstance(value, (Share, AveragedF1)) else value)
            ).all(), key


@pytest.mark.parametrize("name", list(metrics))
def test_contract(name):
    """Keys, range, kinds of numbers, and the same numbers from a second call."""
    (chosen,) = build(name)
    keys = {key.name: key for key in chosen.keys}
    assert chosen.keys[0].name.startswith(name) and len(keys) == len(chosen.keys)
    for key in chosen.keys:
        assert key.direction in ("higher", "lower", None) and key.range.low < key.range.high
    subjects = measured_subjects()
    found = [row[0] for row in measure(tiny("bert"), subjects, [chosen])]
    for each in found:
        assert tuple(each) == tuple(keys)
        for name_of_key, value in each.items():
            key = keys[name_of_key]
            assert key.pooled == isinstance(value, (Share, AveragedF1)), key
            if isinstance(value, Share):
                assert 0 <= value.part <= value.whole
                continue
            assert key.curve == (np.ndim(value) == 1)
            assert key.curve == key.name.endswith("_curve")
            number = float(value) if key.pooled else value
            assert (
                np.isfinite(number).all() or "gold" in chosen.needs
            )  # what has no gold may be undefined
            limits = key.range_for(probabilities=True)  # a classifier gives probabilities
            assert limits.low <= np.min(number) and np.max(number) <= limits.high, key
    curves = {key.name: {np.shape(each[key.name]) for each in found} for key in chosen.curve_keys()}
    assert all(len(shapes) == 1 for shapes in curves.values())  # one grid for texts of any length
    again = [row[0] for row in measure(tiny("bert"), subjects, [metrics.build(name)])]
    assert all(same(one, other) for one, other in zip(found, again, strict=True))


OTHERS = {int: 3, float: 0.6, tuple: (0.3, 0.7), type(None): 3}


@pytest.mark.parametrize("name", list(metrics))
def test_specs(name):
    """A metric is what its spec says, with and without parameters."""
    (chosen,) = build(name)
    assert str(chosen.spec()) == name and metrics.build(str(chosen.spec())) == chosen
    for item in fields(chosen):
        if type(item.default) not in OTHERS:
            continue
        other = replace(chosen, **{item.name: OTHERS[type(item.default)]})
        assert other != chosen and item.name in str(other.spec())
        assert metrics.build(str(other.spec())) == other


@pytest.mark.parametrize(
    "spec",
    [
        *(
            f"{name}(steps={value})"
            for name in ("aopc", "lodds", "deletion", "insertion")
            for value in (0, -1, 1.5)
        ),
        *(
            f"{name}(samples={value})"
            for name in ("infidelity", *SOFT, "max_sensitivity")
            for value in (0, 2.5)
        ),
        *(
            f"{name}(shares={value})"
            for name in ("comprehensiveness", "sufficiency")
            for value in ("()", "(0,)", "2")
        ),
        *(
            f"{name}(shares={value})"
            for name in ("comprehensiveness", "sufficiency")
            for value in ("(1.5,)", "(-.1,)")
        ),
        "max_sensitivity(radius=0)",
        "max_sensitivity(radius=-1)",
        "randomisation(levels=0)",
        "aopc(stepz=3)",
    ],
)
def test_parameters_that_make_no_sense(spec):
    with pytest.raises(InputError) as caught:
        metrics.build(spec)
    assert_sentence(caught.value)
