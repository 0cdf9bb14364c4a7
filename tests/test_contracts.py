"""Every registered method and every family keeps its promises (public checks, run over the registries)."""

from __future__ import annotations

import pytest

from raison.registry import families, methods
from raison.testing import FAMILIES, check_method, check_model, tiny_model

PAIRS = [(family, task) for family, tasks in FAMILIES.items() for task in tasks]


@pytest.mark.parametrize("name", list(methods))
def test_method_keeps_its_contract_on_every_family(name):
    check_method(name)


@pytest.mark.parametrize(("family", "task"), PAIRS)
def test_model_keeps_its_contract(family, task):
    check_model(tiny_model(family, task))


def test_every_registered_family_has_a_tiny_model():
    assert set(families) == set(FAMILIES)


@pytest.mark.parametrize(("family", "task"), PAIRS)
def test_named_families_offer_everything(family, task):
    model = tiny_model(family, task)
    assert model.offers == {"gradients", "attention", "hidden", "score"}
    assert model.removals[:2] == ("delete", "mask")
