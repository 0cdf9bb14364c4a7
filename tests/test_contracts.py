"""Every registered method and every family keeps its promises (public checks, run over the registries)."""

from __future__ import annotations

import pytest

from raison.core.registry import families, methods
from raison.testing import FAMILIES, check_method, check_model, tiny_model
from raison.testing.method_contract import remembering_model_for_method, tiny_models_for_method
from tests.helpers.cheap_specs import light

PAIRS = [(family, task) for family, tasks in FAMILIES.items() for task in tasks]


@pytest.mark.parametrize("name", list(methods))
def test_method_keeps_its_contract(name):
    """On a quarter of the families and tasks, other ones for each method; all have their turn in the long version."""
    check_method(light(name), every=4)


def test_a_third_has_every_task():
    """Whatever the method; and the thirds together are all families and tasks."""
    thirds = {
        name: [(model.name, model.task) for model in tiny_models_for_method(methods.build(name), 3)]
        for name in methods
    }
    everything = [
        (model.name, model.task) for model in tiny_models_for_method(methods.build("random"))
    ]
    free = [
        pairs
        for name, pairs in thirds.items()
        if methods.build(name).needs <= remembering_model_for_method("bert", "qa").offers
    ]
    for pairs in free:
        assert {task for _, task in pairs} == {
            "classification",
            "tagging",
            "qa",
            "causal",
            "seq2seq",
        }
        assert len(pairs) == len(everything) // 3 == len(PAIRS) // 3
    distinct = {tuple(sorted(pairs)) for pairs in free}
    assert sorted(pair for pairs in distinct for pair in pairs) == sorted(everything)


@pytest.mark.full
@pytest.mark.parametrize("name", list(methods))
def test_method_keeps_its_contract_on_every_family(name):
    check_method(name)


@pytest.mark.parametrize(("family", "task"), PAIRS)
def test_model_keeps_its_contract(family, task):
    check_model(tiny_model(family, task))


def test_every_registered_family_has_a_tiny_model():
    partial = {
        "bigbird_pegasus"
    }  # its attention is not offered; what it changes in itself: tests/models/test_probe.py
    assert set(families) == set(FAMILIES) | partial


@pytest.mark.parametrize(("family", "task"), PAIRS)
def test_named_families_offer_everything(family, task):
    model = remembering_model_for_method(family, task)
    assert model.offers == {"gradients", "attention", "hidden", "score"}
    assert model.removals[:2] == ("delete", "mask")
