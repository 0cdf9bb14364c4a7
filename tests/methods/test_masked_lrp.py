"""Relevance through chosen heads, against literal code."""

from __future__ import annotations

import numpy as np
import pytest

import raison
from raison.core.artifact import Artifact
from raison.core.registry import methods
from raison.testing import tiny_model
from raison.testing.method_contract import check_method
from raison.testing.precision import Float64
from tests.helpers.compared_scores import TEXT, asked, near, scores
from tests.oracles import attributions as literal


@pytest.fixture(autouse=True)
def precise():
    with Float64():
        yield


# -- relevance ------------------------------------------------------------------------------------------


def test_transformer_attribution(model):
    ids, goal, types, value = asked(model)
    near(
        scores(model, "transformer_attribution")[0],
        literal.transformer_attribution(model.hf, ids, goal, **types, **value),
    )


def some_heads(model, tmp_path, syntactic, positional):
    """A file from which exactly these heads are chosen."""
    maps, heads = np.shape(syntactic)
    relations = ["nsubj", "obj", "amod", "advmod"]
    alpha = {name: np.where(syntactic, 1.0, 0.0).tolist() for name in relations}
    share = np.where(positional, 1.0, 0.0)
    data = {
        "shape": {"self": [maps, heads]},
        "kinds": ["self"] * maps,
        "parsed": ["self"],
        "relations": relations,
        "alpha": alpha,
        "lambda": {name: {"1": 0.5} for name in relations},
        "lambda_max": dict.fromkeys(relations, 0.5),
        "counts": dict.fromkeys(relations, 100),
        "positional": {"offset": np.full((maps, heads), -1).tolist(), "alpha": share.tolist()},
        "thresholds": {"syntactic": 0.1, "positional": 0.8},
    }
    path = tmp_path / "heads.json"
    Artifact("heads", data, model.name).save(path)
    return path


MASKS = {
    "some": ([[1, 0], [0, 1]], [[0, 1], [0, 0]]),
    "both": ([[1, 0], [1, 1]], [[1, 0], [0, 1]]),
    "a block without": ([[0, 0], [1, 0]], [[0, 0], [0, 0]]),
}


@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("masks", MASKS)
def test_masked_lrp(model, tmp_path, masks, variant):
    ids, goal, types, value = asked(model)
    syntactic, positional = (np.array(mask, bool) for mask in MASKS[masks])
    path = some_heads(model, tmp_path, syntactic, positional)
    ours, found = scores(model, f'masked_lrp(heads="{path}", top=0, variant="{variant}")')
    theirs = literal.masked_lrp(
        model.hf,
        ids,
        goal,
        syntactic=syntactic,
        positional=positional,
        variant=variant,
        **types,
        **value,
    )
    near(ours, theirs)
    assert found.artifacts["heads"] == Artifact.open(path, "heads").content()
    if variant == "paper":
        assert found.diagnostics["conservation_error"] < 1e-9


def test_all_heads_are_no_mask(model, tmp_path):
    ones = np.ones((2, 2), bool)
    path = some_heads(model, tmp_path, ones, ~ones)
    np.testing.assert_array_equal(
        scores(model, f'masked_lrp(heads="{path}", top=0)')[0],
        scores(model, "transformer_attribution")[0],
    )


# -- finite differences ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["masked_lrp"])
def test_masked_lrp_keeps_its_contract(name, tmp_path):
    """With a file of its own, since tiny models bring no heads along."""
    model = tiny_model("bert", "classification")
    path = some_heads(
        model, tmp_path, np.array([[1, 0], [0, 0]], bool), np.array([[0, 0], [0, 1]], bool)
    )
    for more in ("", ", random=1", ", corruption=0.5"):
        check_method(methods.build(f'masked_lrp(heads="{path}"{more})'), model)


def test_masked_lrp_without_heads_says_how_to_make_them():
    with pytest.raises(raison.core.errors.Unsupported, match="raison heads"):
        raison.explain(tiny_model("bert", "classification"), TEXT, "masked_lrp")


def test_heads_of_another_model_are_refused(tmp_path):
    model = tiny_model("bert", "classification")
    path = some_heads(model, tmp_path, np.ones((3, 2), bool), np.zeros((3, 2), bool))
    with pytest.raises(raison.core.errors.InputError, match="3 x 2 heads"):
        raison.explain(model, TEXT, f'masked_lrp(heads="{path}")')


def test_corruption_keeps_the_kind_of_chosen_heads():
    synt, pos = np.array([[1, 0], [0, 0]], bool), np.array([[0, 1], [0, 0]], bool)
    more = methods.build("masked_lrp(corruption=1.0)").changed_masks(
        (synt, pos), np.random.default_rng(0)
    )
    np.testing.assert_array_equal(more[0], synt)
    np.testing.assert_array_equal(more[1], [[False, True], [True, True]])
