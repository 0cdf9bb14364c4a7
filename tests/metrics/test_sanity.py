"""Max-sensitivity and randomisation against literal code: methods that are asked again."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from raison.testing.model_contract import model_state_hash
from tests.helpers.faithfulness import (
    SANITY,
    TEXT,
    TEXTS,
    WORLDS,
    build,
    measure,
    same,
    subject,
    tiny,
)

pytestmark = pytest.mark.usefixtures("precise")


# -- methods that are asked again --------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["uniform", "random", "position"])
def test_methods_that_look_at_nothing(method):
    """Moving embeddings or shuffling weights can't change what doesn't depend on them."""
    found = measure(tiny("bert"), [subject(tiny("bert"), TEXT, method)], build(*SANITY))[0]
    assert found[0] == {"max_sensitivity": 0}
    assert found[1]["randomisation"] == 1 and (found[1]["randomisation_curve"] == 1).all()


@pytest.mark.parametrize("family", WORLDS)
def test_methods_that_look(family):
    """Sensitive to embeddings (by the radius) and to weights; deterministic; the user's model is untouched."""
    model = tiny(family)
    before = model_state_hash(model)
    for method in ("input_x_gradient", "leave_one_out"):
        names = [
            "max_sensitivity(radius=0.0002)",
            "max_sensitivity(radius=0.0001)",
            "randomisation(levels=2)",
        ]
        double, once, mixed = measure(model, [subject(model, TEXT, method)], build(*names))[0]
        assert 0 < once["max_sensitivity"] < 0.1
        assert double["max_sensitivity"] / once["max_sensitivity"] == pytest.approx(2, rel=0.05)
        assert -1 <= mixed["randomisation"] < 0.95
        assert mixed["randomisation_curve"][-1] == mixed["randomisation"]
        again = measure(model, [subject(model, TEXT, method)], build(*names))[0]
        assert all(
            same(one, other) for one, other in zip((double, once, mixed), again, strict=True)
        )
    assert model_state_hash(model) == before


def watched(one):
    """The same subject, and the models and scores of every time that it is explained again."""
    seen = []

    def again(model):
        seen.append((model, one.again(model)))
        return seen[-1][1]

    return replace(one, again=again), seen


@pytest.mark.parametrize("family", WORLDS)
def test_literal_max_sensitivity(family):
    """The largest change of the scores; embeddings of the text move by up to the radius, and nothing else moves."""
    model = tiny(family)
    one, seen = watched(subject(model, TEXT, "input_x_gradient"))
    ((found,),) = measure(model, [one], build("max_sensitivity(radius=0.1, samples=5)"))
    assert len(seen) == 5
    changes = [math.dist(scores, one.scores) / math.hypot(*one.scores) for _, scores in seen]
    assert found["max_sensitivity"] == pytest.approx(max(changes), rel=1e-12)
    ids = sorted({int(number) for number in one.explanation.encoding.ids})
    table = model.hf.get_input_embeddings().weight.detach()
    size = math.sqrt(mean_square(table[ids]))
    moves = torch.stack(
        [other.hf.get_input_embeddings().weight.detach() - table for other, _ in seen]
    )  # [n v d]
    rest = [number for number in range(len(table)) if number not in ids]
    assert (moves[:, rest] == 0).all() and (moves[:, ids] != 0).all()
    assert 0.09 * size < moves.abs().max() <= 0.1 * size * (1 + 1e-9)
    assert mean_square(moves[:, ids]) == pytest.approx(
        (0.1 * size) ** 2 / 3, rel=0.1
    )  # uniform in ±0.1
    inside = {
        name: weight for name, weight in model.hf.named_parameters() if weight.shape != table.shape
    }
    for other, _ in seen:
        assert all(
            torch.equal(dict(other.hf.named_parameters())[name], weight)
            for name, weight in inside.items()
        )


def mean_square(tensor):
    return float(tensor.double().square().mean())


@pytest.mark.parametrize("family", WORLDS)
def test_literal_randomisation(family):
    """Spearman's ρ by scipy; every weight is a permutation of its own entries, from the output down, in the end all."""
    model = tiny(family)
    one, seen = watched(subject(model, TEXT, "gradient_norm"))
    ((found,),) = measure(model, [one], build("randomisation(levels=2)"))
    assert len(seen) == 2
    expected = [stats.spearmanr(one.scores, scores).statistic for _, scores in seen]
    np.testing.assert_allclose(found["randomisation_curve"], expected, atol=1e-12)
    changed = []
    for other, _ in seen:
        names = set()
        for (name, old), (same_name, new) in zip(
            model.hf.named_parameters(), other.hf.named_parameters(), strict=True
        ):
            assert name == same_name and torch.equal(
                old.flatten().sort().values, new.flatten().sort().values
            )
            if not torch.equal(old, new):
                names.add(name)
        changed.append(names)
    varied = {name for name, weight in model.hf.named_parameters() if len(weight.unique()) > 1}
    upper, whole = changed
    assert whole == varied and upper < whole
    blocks = [
        {part for name in names for part in name.split(".") if part.isdigit()} for names in changed
    ]
    assert blocks == [{"1"}, {"0", "1"}]  # of two blocks the last comes first
    assert not any("embed" in name or "wte" in name or "wpe" in name for name in upper)


def test_a_cache_shared_by_subjects_changes_nothing():
    model = tiny("bert")
    shared: dict = {}
    texts = TEXTS[:2]
    chosen = build("randomisation(levels=2)", "max_sensitivity(samples=2)")
    together = measure(
        model, [subject(model, text, "gradient_norm", cache=shared) for text in texts], chosen
    )
    for text, row in zip(texts, together, strict=True):
        alone = measure(model, [subject(model, text, "gradient_norm")], chosen)[0]
        assert all(same(one, other) for one, other in zip(row, alone, strict=True))
