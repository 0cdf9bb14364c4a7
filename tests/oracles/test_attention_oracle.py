"""The oracle of attention methods against itself: by hand, finite differences, another route."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from raison.testing.precision import Float64
from raison.testing.tiny import tiny_hf
from tests.helpers.literal_models import IDS, LABEL, TASKS, both, near, opened
from tests.oracles import attributions as lit


@pytest.fixture(autouse=True)
def precise():
    with Float64():
        yield


@pytest.fixture(scope="module")
def models():
    return {family: opened(family) for family in TASKS}


# -- forward and backward --------------------------------------------------------------------------------


@both
def test_every_intermediate_is_the_models(models, family):
    hf = models[family]
    types = [0, 0, 0, 1, 1, 1, 1] if family == "bert" else None
    found = lit.run(hf, IDS, types)  # asserts the logits
    hf.set_attn_implementation("eager")
    given = dict(token_type_ids=torch.tensor([types])) if types else {}
    with torch.no_grad():
        out = hf(
            input_ids=torch.tensor([IDS]),
            output_attentions=True,
            output_hidden_states=True,
            **given,
        )
    near(found.maps, np.stack([a[0].numpy() for a in out.attentions]))
    for block, x in zip(found.blocks, out.hidden_states, strict=False):
        near(block.x, x[0].numpy())
    if types:
        assert np.abs(found.logits - lit.run(hf, IDS).logits).max() > 1e-3


def test_the_forward_pass_is_compared_with_the_models_own(models):
    hf = copy.deepcopy(models["bert"])
    hf.config.layer_norm_eps = 1e-3  # what we read; the modules keep theirs
    with pytest.raises(AssertionError, match="is not the model's"):
        lit.run(hf, IDS)


@both
@pytest.mark.parametrize("value", ["logit", "log_prob"])
def test_gradients_are_autograds(models, family, value):
    hf = models[family]
    hf.set_attn_implementation("eager")
    words = hf.get_input_embeddings()(torch.tensor([IDS])).detach().requires_grad_(True)
    out = hf(inputs_embeds=words, output_attentions=True, output_hidden_states=True)
    row = out.logits[0] if family == "bert" else out.logits[0, -1]
    f = row[LABEL[family]] if value == "logit" else row.log_softmax(-1)[LABEL[family]]
    inputs = out.hidden_states[: len(out.attentions)]
    expected = torch.autograd.grad(f, [words, *inputs, *out.attentions])
    found = lit.gradients(hf, IDS, LABEL[family], value=value)
    near(found.words, expected[0][0].numpy())
    near(found.inputs, np.stack([g[0].numpy() for g in expected[1 : 1 + len(inputs)]]))
    near(found.maps, np.stack([g[0].numpy() for g in expected[1 + len(inputs) :]]))


@both
def test_attention_gradients_by_finite_differences(models, family):
    found = lit.run(models[family], IDS)
    target, step = LABEL[family], 1e-5
    gradient = lit.multipliers(lit.GRADIENT, found, target).maps
    for layer, h, i, j in ((0, 0, 3, 1), (0, 1, 6, 6), (1, 1, found.row, 2)):
        values = []
        for sign in (1, -1):
            maps = found.maps[layer].copy()
            maps[h, i, j] += sign * step
            values.append(lit.run_words(found.net, found.words, maps={layer: maps}).logits[target])
        assert abs((values[0] - values[1]) / (2 * step) - gradient[layer, h, i, j]) < 1e-7
        assert gradient[layer, h, i, j] != 0


# -- attention -------------------------------------------------------------------------------------------


@both
def test_rollouts(models, family):
    maps = lit.attention_maps(models[family], IDS)
    half, plus = lit.rollout_half(maps), lit.rollout_plus(maps)
    near(half, plus, 1e-12)
    near(half.sum(-1), np.ones(len(IDS)), 1e-12)
    row = 0 if family == "bert" else -1
    near(lit.attention_rollout(models[family], IDS), half[row], 0)
    near(lit.attention_rollout(models[family], IDS, form="plus"), plus[row], 0)
    near(lit.attention_last(models[family], IDS), (maps[1, 0] + maps[1, 1])[row] / 2, 1e-15)
    near(lit.attention_mean(models[family], IDS), maps.reshape(4, 7, 7).mean(0)[row], 1e-15)
    if family == "gpt2":
        assert not np.triu(half, 1).any()


def test_rollout_by_hand():
    maps = np.array([[[[1, 0], [0.5, 0.5]]], [[[1, 0], [1, 0]]]])  # l h s t
    near(lit.rollout_half(maps), [[1, 0], [0.5 + 0.5 * 0.25, 0.5 * 0.75]], 0)


def test_gae_by_hand():
    maps = np.array([[[[0.5, 0.5], [0.5, 0.5]]], [[[1, 0], [0.5, 0.5]]]])
    gradient = np.array([[[[2, -2], [4, 0]]], [[[1, 1], [-1, 2]]]])
    # Ā_1 = [[1, 0], [2, 0]], Ā_2 = [[1, 0], [0, 1]]:  R = I + Ā_1 = [[2, 0], [2, 1]], then R + Ā_2 R
    near(lit.gae_of(maps, gradient), [[4, 0], [4, 2]], 0)


def test_gae_takes_the_positive_part_of_every_head():
    maps = np.full((1, 2, 2, 2), 0.5)
    gradient = np.array([[[[2, 0], [0, 0]], [[-2, 0], [0, 0]]]])
    near(lit.gae_of(maps, gradient), [[1.5, 0], [0, 1]], 0)


@both
def test_gae_and_attention_x_gradient_read_the_answers_row(models, family):
    hf, target = models[family], LABEL[family]
    maps, gradient = lit.attention_maps(hf, IDS), lit.gradients(hf, IDS, target).maps
    row = 0 if family == "bert" else -1
    near(lit.gae(hf, IDS, target), lit.gae_of(maps, gradient)[row], 0)
    near(lit.attention_x_gradient(hf, IDS, target), (maps * gradient)[1].mean(0)[row], 1e-15)
    near(
        lit.attention_x_gradient(hf, IDS, target, layers="mean", positive=True),
        np.maximum(0, maps * gradient).mean((0, 1))[row],
        1e-15,
    )


PROJECTIONS = {
    "marian": "model.{stack}.layers.{layer}.{attention}.out_proj.weight",
    "bart": "model.{stack}.layers.{layer}.{attention}.out_proj.weight",
    "t5": "{stack}.block.{layer}.layer.{sub}.{attention}.o.weight",
}


KINDS = {
    "encoder": dict(stack="encoder", attention=("self_attn", "SelfAttention"), sub=0),
    "decoder": dict(stack="decoder", attention=("self_attn", "SelfAttention"), sub=0),
    "cross": dict(stack="decoder", attention=("encoder_attn", "EncDecAttention"), sub=1),
}


# -- encoder-decoders ------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", PROJECTIONS)
def test_encoder_decoder_gradients(family):
    """d f / d(size of a head's output) = Σ ∇A ⊙ A: nudged through the columns of its projection."""
    hf, _ = tiny_hf(family, "seq2seq")
    source, prefix, target, step = IDS[:5], [0, 44, 12], 31, 1e-5
    before = hf.config._attn_implementation
    maps, gradient, _ = lit.seq2seq_maps(hf, source, prefix, target, value="log_prob")
    assert hf.config._attn_implementation == before
    assert maps.cross.shape == (2, 2, 3, 5)
    for kind, names in KINDS.items():
        attention = names["attention"][family == "t5"]
        key = PROJECTIONS[family].format(
            stack=names["stack"], layer=0, attention=attention, sub=names["sub"]
        )
        weight = dict(hf.named_parameters())[key]
        width = weight.shape[1] // 2
        for h in range(2):
            values = []
            for factor in (1 + step, 1 - step):
                with torch.no_grad():
                    old = weight.clone()
                    weight[:, h * width : (h + 1) * width] *= factor
                    values.append(lit.seq2seq_maps(hf, source, prefix, target, value="log_prob")[2])
                    weight.copy_(old)
            expected = float((getattr(maps, kind) * getattr(gradient, kind))[0, h].sum())
            assert abs((values[0] - values[1]) / (2 * step) - expected) < 1e-6, (kind, h)
    scores = lit.seq2seq_gae(hf, source, prefix, target)
    assert scores.shape == (8,) and (scores >= 0).all() and (scores > 0).any()
    near(lit.seq2seq_attention(hf, source, prefix, target)[:5].sum(), 1.0)
    near(lit.seq2seq_attention(hf, source, prefix, target, layers="mean")[5:].sum(), 1.0)
    signed = lit.seq2seq_attention_x_gradient(hf, source, prefix, target, layers="mean")
    assert (
        signed
        <= lit.seq2seq_attention_x_gradient(
            hf, source, prefix, target, layers="mean", positive=True
        )
    ).all()


def test_gae_with_cross_attention_by_hand():
    one = np.ones((1, 1, 2, 2))
    maps = lit.CrossMaps(one, one, one)
    encoder, decoder, cross = (
        [[1.0, 3.0], [0.0, 0.0]],
        [[2.0, 0.0], [1.0, 1.0]],
        [[1.0, 0.0], [-5.0, 2.0]],
    )
    gradient = lit.CrossMaps(*(np.array([[g]]) for g in (encoder, decoder, cross)))
    r_ss, r_tt, r_ts = lit.gae_cross_of(maps, gradient)
    near(r_ss, [[2, 3], [0, 1]], 0)
    near(r_tt, [[3, 0], [1, 2]], 0)
    # R̄_ss = [[1.25, .75], [0, 1]], R̄_tt = [[2, 0], [.5, 1.5]], Ā_ts = [[1, 0], [0, 2]]
    near(r_ts, [[2 * 1.25, 2 * 0.75 + 0.5 * 2], [0, 1.5 * 2]], 0)


def test_gae_with_cross_attention_in_the_second_block():
    """R_ts is carried by the decoder's self-attention, and only there does `carry` matter."""
    zero, one = np.zeros((2, 1, 2, 2)), np.ones((2, 1, 2, 2))
    decoder, cross = zero.copy(), zero.copy()
    cross[0, 0] = [[1, 0], [0, 0]]  # the first target token reads the first source token
    decoder[1, 0] = [[0, 0], [3, 0]]  # then the second target token reads the first
    maps, gradient = lit.CrossMaps(one, one, one), lit.CrossMaps(zero, decoder, cross)
    near(lit.gae_cross_of(maps, gradient)[2], [[1, 0], [3, 0]], 0)
    near(lit.gae_cross_of(maps, gradient, carry=False)[2], [[1, 0], [0, 0]], 0)


# -- CAM, GradCAM, AttCAT --------------------------------------------------------------------------------


def test_cam_and_gradcam_by_hand():
    maps = np.array([[[1, 0], [0.5, 0.5]], [[0, 1], [0.25, 0.75]]])  # one block: h s t
    gradient = np.array([[[4, 0], [0, 4]], [[-4, -8], [0, 4]]])
    near(lit.cam_of(gradient), [0, 0], 0)  # means: 0 and 0
    near(lit.cam_of(gradient * [1, 2]), [0, 0], 0)
    near(lit.cam_of(gradient + np.array([[[0, 2], [0, 2]]])), [0, 2], 0)
    # weights 2 and −2; mean of weight·A: [[1, −1], [.25, −.25]] → ⁺ → / 1
    near(lit.gradcam_of(maps, gradient), [[1, 0], [0.25, 0]], 0)
    near(lit.gradcam_of(maps, 0 * gradient), np.zeros((2, 2)), 0)


@both
def test_cam_family_on_one_block(family):
    """A model of one block, ∇A and ∂f/∂h by nudging each number, the formulas in loops."""
    hf = opened(family, seed=3)
    (hf.bert.encoder.layer if family == "bert" else hf.transformer.h).__delitem__(1)
    (
        setattr(hf.config, "num_hidden_layers", 1)
        if family == "bert"
        else setattr(hf.config, "n_layer", 1)
    )
    ids, target, step = IDS[:4], LABEL[family], 1e-5
    found = lit.run(hf, ids)
    net, size = found.net, len(ids)
    gradient = np.zeros((2, size, size))
    for place in np.ndindex(gradient.shape):
        nudge = np.zeros_like(gradient)
        nudge[place] = step
        up, down = (
            lit.run_words(net, found.words, maps={0: found.maps[0] + s * nudge}) for s in (1, -1)
        )
        gradient[place] = (up.logits[target] - down.logits[target]) / (2 * step)
    means = [
        sum(gradient[h, i, j] for h in range(2) for i in range(size)) / (2 * size)
        for j in range(size)
    ]
    near(lit.cam(hf, ids, target), [max(0, m) for m in means], 1e-7)
    weights = [
        sum(gradient[h, i, j] for i in range(size) for j in range(size)) / size**2 for h in range(2)
    ]
    total = [
        [sum(weights[h] * found.maps[0, h, i, j] for h in range(2)) / 2 for j in range(size)]
        for i in range(size)
    ]
    cut = np.array([[max(0, x) for x in row] for row in total])
    scaled = (cut - cut.min()) / (cut.max() - cut.min()) if cut.max() > cut.min() else 0 * cut
    near(lit.gradcam(hf, ids, target), scaled[found.row], 1e-7)
    expected = []
    for j in range(size):
        weight = sum(found.maps[0, h, i, j] for h in range(2) for i in range(size)) / (2 * size)
        expected.append(weight * float(lit.gradients(hf, ids, target).inputs[0, j] @ found.x0[j]))
    near(lit.attcat(hf, ids, target), expected, 1e-12)
