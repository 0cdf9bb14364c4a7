"""Methods that read attention, and what attention carries, against literal code."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import raison
from raison.models.load import load
from raison.models.probe import probe_text_and_target
from raison.studies.what_if import heads_of_answer
from raison.testing import FAMILIES, tiny_hf, tiny_model
from raison.testing.precision import Float64
from tests.helpers.compared_scores import PAIRS, TEXT, asked, near, scores
from tests.oracles import attributions as literal

WRITERS = [family for family, tasks in FAMILIES.items() if "seq2seq" in tasks]


@pytest.fixture(autouse=True)
def precise():
    with Float64():
        yield


# -- attention ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["attention_last", "attention_mean", "attention_rollout"])
def test_attention(model, name):
    ids, _, types, _ = asked(model)
    near(scores(model, name)[0], getattr(literal, name)(model.hf, ids, **types))


@pytest.mark.parametrize("name", ["gae", "cam", "gradcam", "attcat"])
def test_attention_and_gradients(model, name):
    goals = range(len(model.labels)) if model.task == "classification" else (7, 90, 150)
    for goal in goals:  # the positive part of a map may be zero for some
        target_spec = goal if model.task == "classification" else [goal]
        ids, _, types, value = asked(model)
        ours, theirs = (
            scores(model, name, target=target_spec)[0],
            getattr(literal, name)(model.hf, ids, goal, **types, **value),
        )
        if name == "gae":  # ours leaves the identity out
            theirs = theirs - np.eye(len(ids))[len(ids) - 1 if model.task == "causal" else 0]
        np.testing.assert_allclose(
            ours[: len(theirs)], theirs, atol=1e-9 * max(1e-3, np.abs(theirs).max())
        )
        if np.abs(theirs).max() > 0:
            return
    raise AssertionError("all targets have maps of zeros")


def test_attention_x_gradient(model):
    ids, goal, types, value = asked(model)
    weights = literal.attention_maps(model.hf, ids, **types)
    slopes = literal.gradients(model.hf, ids, goal, **types, **value).maps
    near(scores(model, "attention_x_gradient")[0], (weights * slopes).sum((0, 1, 2)))


def test_what_heads_carry(model):
    """The page's table of heads: Σ |attention × gradient| of each, as a share of all."""
    ids, goal, types, value = asked(model)
    weights = literal.attention_maps(model.hf, ids, **types)
    slopes = literal.gradients(model.hf, ids, goal, **types, **value).maps
    each = np.abs(weights * slopes).sum((2, 3))
    found = heads_of_answer(
        model, raison.explain(model, TEXT, "attention_x_gradient", units="token")
    )
    np.testing.assert_allclose(found.carried, each / each.sum(), rtol=1e-6)


@pytest.mark.parametrize("family", WRITERS)
def test_gae_through_cross_attention(family):
    model = tiny_model(family, "seq2seq")
    encoding, target = model.resolve_targets(
        model.encode([raison.Example(TEXT)])[0], raison.models.protocol.TargetSpec(target=0)
    )[0]
    source = encoding.ids[encoding.segment == 0].tolist()
    prefix = encoding.ids[encoding.segment != 0][:1].tolist()
    expected = literal.seq2seq_gae(model.hf, source, prefix, target.ids[0], value=target.output)
    found = raison.explain(model, TEXT, "gae", target=0, units="token")
    expected[len(source)] -= 1  # the identity, which ours leaves out
    near(np.array(found.parts["token_scores"])[: len(expected)], expected)


def test_a_rollout_of_uniform_attention_is_uniform():
    """By hand: one layer, A = 1/t everywhere: ½ I + ½ A, so ½ + ½/t for oneself and ½/t for the others."""
    from raison.methods.rollout import map_on_axis, normalise_rows, roll_out
    from raison.models.protocol import Map

    uniform = Map("self", 0, np.arange(4), np.arange(4), torch.full((1, 4, 4), 0.25))
    matrix = roll_out(
        [normalise_rows(map_on_axis(4, uniform, np.full((4, 4), 0.25)) + np.eye(4))], 4
    )
    np.testing.assert_allclose(matrix, np.eye(4) / 2 + 1 / 8)


# -- values ---------------------------------------------------------------------------------------------


def test_value_weighted_attention(model):
    ids, _, types, _ = asked(model)
    maps = literal.value_weighted_attention(model.hf, ids, **types)  # [l s t]
    row = len(ids) - 1 if model.task == "causal" else 0
    near(scores(model, 'value_weighted_attention(layers="last")')[0], maps[-1][row])
    near(scores(model, 'value_weighted_attention(layers="mean")')[0], maps.mean(0)[row])
    near(scores(model, "value_weighted_attention")[0], literal.rolled(maps, residual=True)[row])


def test_value_zeroing(model):
    ids, _, types, _ = asked(model)
    maps = literal.value_zeroing(model.hf, ids, **types)
    row = len(ids) - 1 if model.task == "causal" else 0
    near(scores(model, "value_zeroing")[0], literal.rolled(maps, residual=False)[row], 1e-7)


def test_alti(model):
    ids, _, types, _ = asked(model)
    near(scores(model, "alti")[0], literal.alti_scores(model.hf, ids, **types))


@pytest.mark.parametrize(("family", "task"), PAIRS)
def test_what_is_written_adds_up(family, task):
    """Without biases a block's output is exactly the parts of its tokens and the row's own rest, in every family."""
    hf, _ = tiny_hf(family, task)
    with torch.no_grad():
        for name, weight in hf.named_parameters():
            if name.endswith("bias"):
                weight.zero_()
    model = load(hf, tiny_model(family, task).tokenizer)
    encoding, target = probe_text_and_target(model)
    ((_, trace),) = model.trace([encoding], [target], want=frozenset({"writes", "readout"}))
    assert len(trace.writes) == len(trace.maps) > 0
    for write in trace.writes:
        gap = (write.output - write.own() - write.parts().sum(1)).abs().max()
        assert gap < 1e-12 * max(1.0, float(write.output.abs().max()))
