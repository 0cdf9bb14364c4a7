"""The oracle of attribution formulas against itself: by hand, closed forms, finite differences, another route."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from raison.testing.precision import Float64
from raison.testing.tiny import tiny_hf
from tests.oracles import attributions as lit

IDS = [1, 17, 60, 33, 90, 41, 2]
TASKS = {"bert": "classification", "gpt2": "causal"}
LABEL = {"bert": 1, "gpt2": 77}
both = pytest.mark.parametrize("family", TASKS)


@pytest.fixture(autouse=True)
def precise():
    with Float64():
        yield


def opened(family, seed=0):
    """A tiny model whose norms have gains and shifts of their own."""
    hf, _ = tiny_hf(family, TASKS[family], seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in hf.named_parameters():
            if "LayerNorm" in name or ".ln_" in name:
                noise = torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
                weight.copy_(0.3 * noise + (1.0 if name.endswith("weight") else 0.0))
    return hf


@pytest.fixture(scope="module")
def models():
    return {family: opened(family) for family in TASKS}


def draw(hf, seed, size=6):
    return np.random.default_rng(seed).integers(5, hf.config.vocab_size, size).tolist()


def near(a, b, tolerance=1e-9):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    assert np.abs(a - b).max() <= tolerance * max(1.0, np.abs(b).max()), np.abs(a - b).max()


# -- forward and backward --------------------------------------------------------------------------------


@both
def test_every_intermediate_is_the_models(models, family):
    hf = models[family]
    types = [0, 0, 0, 1, 1, 1, 1] if family == "bert" else None
    found = lit.run(hf, IDS, types)  # asserts the logits
    hf.set_attn_implementation("eager")
    given = dict(token_type_ids=torch.tensor([types])) if types else {}
    with torch.no_grad():
        out = hf(input_ids=torch.tensor([IDS]), output_attentions=True, output_hidden_states=True, **given)
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


# -- encoder-decoders ------------------------------------------------------------------------------------

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
        key = PROJECTIONS[family].format(stack=names["stack"], layer=0, attention=attention, sub=names["sub"])
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
    assert (signed <= lit.seq2seq_attention_x_gradient(hf, source, prefix, target, layers="mean", positive=True)).all()


def test_gae_with_cross_attention_by_hand():
    one = np.ones((1, 1, 2, 2))
    maps = lit.CrossMaps(one, one, one)
    encoder, decoder, cross = [[1.0, 3.0], [0.0, 0.0]], [[2.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [-5.0, 2.0]]
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
    (setattr(hf.config, "num_hidden_layers", 1) if family == "bert" else setattr(hf.config, "n_layer", 1))
    ids, target, step = IDS[:4], LABEL[family], 1e-5
    found = lit.run(hf, ids)
    net, size = found.net, len(ids)
    gradient = np.zeros((2, size, size))
    for place in np.ndindex(gradient.shape):
        nudge = np.zeros_like(gradient)
        nudge[place] = step
        up, down = (lit.run_words(net, found.words, maps={0: found.maps[0] + s * nudge}) for s in (1, -1))
        gradient[place] = (up.logits[target] - down.logits[target]) / (2 * step)
    means = [sum(gradient[h, i, j] for h in range(2) for i in range(size)) / (2 * size) for j in range(size)]
    near(lit.cam(hf, ids, target), [max(0, m) for m in means], 1e-7)
    weights = [sum(gradient[h, i, j] for i in range(size) for j in range(size)) / size**2 for h in range(2)]
    total = [[sum(weights[h] * found.maps[0, h, i, j] for h in range(2)) / 2 for j in range(size)] for i in range(size)]
    cut = np.array([[max(0, x) for x in row] for row in total])
    scaled = (cut - cut.min()) / (cut.max() - cut.min()) if cut.max() > cut.min() else 0 * cut
    near(lit.gradcam(hf, ids, target), scaled[found.row], 1e-7)
    expected = []
    for j in range(size):
        weight = sum(found.maps[0, h, i, j] for h in range(2) for i in range(size)) / (2 * size)
        expected.append(weight * float(lit.gradients(hf, ids, target).inputs[0, j] @ found.x0[j]))
    near(lit.attcat(hf, ids, target), expected, 1e-12)


# -- LRP -------------------------------------------------------------------------------------------------


def test_linear_rule_by_hand():
    x, weight, r = np.array([[1.0, -2.0]]), np.array([[3.0, -1.0], [-1.0, -2.0]]), np.array([[1.0, 2.0]])
    # output 0: 1·3 and −2·−1 → 3/5, 2/5;  output 1: 1·−1 does not count, −2·−2 takes all of its 2
    near(lit.linear_relevance(x, weight, r), [[0.6, 2.4]], 1e-15)
    near(lit.linear_relevance(np.array([[1.0, -1.0]]), np.array([[-1.0, 1.0]]), np.array([[1.0]])), [[0, 0]], 0)


def test_add_rule_by_hand():
    a, b, r = np.array([1.0, 3.0]), np.array([1.0, -1.0]), np.array([2.0, 2.0])
    # r_a = [1, 3], r_b = [1, −1]: sums 4 and 0, so a keeps all of ΣR = 4
    near(lit.add_relevance(a, b, r), ([1, 3], [0, 0]), 0)
    r_a, r_b = lit.add_relevance(np.array([3.0, 1.0]), np.array([-1.0, 1.0]), np.array([2.0, -2.0]))
    # r_a = [3, −1], r_b = [−1, −1]: sums 2 and −2, both to half of ΣR = 0
    near((r_a, r_b), ([0, 0], [0, 0]), 0)
    r_a, r_b = lit.add_relevance(np.array([2.0, 1.0]), np.array([-1.0, 1.0]), np.array([1.0, 4.0]))
    # r_a = [2, 2], r_b = [−1, 2]: sums 4 and 1 of 5, ΣR = 5
    near((r_a, r_b), ([2, 2], [-1, 2]), 1e-15)
    r_a, r_b = lit.add_relevance(np.array([2.0, 0.5]), np.array([-1.0, 0.5]), np.array([3.0, 1.0]))
    # r_a = [6, .5], r_b = [−3, .5]: sums 6.5 and −2.5, to 6.5/9·4 and 2.5/9·4: b's signs turn
    near((r_a, r_b), (np.array([6, 0.5]) * 4 / 9, np.array([3, -0.5]) * 4 / 9), 1e-15)


def test_add_rule_where_the_sum_is_nothing():
    r_a, r_b = lit.add_relevance(np.array([2.0, 1.0]), np.array([-2.0, 1.0]), np.array([3.0, 1.0]))
    near((r_a, r_b), ([0, 2], [0, 2]), 1e-15)  # the lost 3 are made up for
    r_a, r_b = lit.add_relevance(np.ones(2), -np.ones(2), np.ones(2))
    near((r_a, r_b), np.zeros((2, 2)), 0)  # nothing is left to scale


def test_product_rule_by_hand():
    a, b = np.array([[0.5, 0.5]]), np.array([[1.0], [3.0]])
    r_a, r_b = lit.matmul_relevance(a, b, np.array([[1.0]]))
    near(r_a, [[0.125, 0.375]], 0)
    near(r_b, [[0.125], [0.375]], 0)
    rng = np.random.default_rng(0)
    a, b, r = rng.normal(size=(3, 4)), rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    r_a, r_b = lit.matmul_relevance(a, b, r)
    near(r_a, a * ((r / (a @ b)) @ b.T) / 2, 1e-12)
    near(r_b, b * (a.T @ (r / (a @ b))) / 2, 1e-12)
    near((r_a.sum(), r_b.sum()), (r.sum() / 2, r.sum() / 2), 1e-12)


def test_division():
    near(lit.divided([1, 1, 1, -1, 0], [0, 1e-12, -1e-12, 2, 0]), [0, 1e9, -1e9, -0.5, 0], 1e-15)


def test_mask_by_hand():
    r = np.array([[[6.0, 2.0]], [[-1.0, -1.0]], [[3.0, 1.0]]])  # h s c: sums 8, −2, 4; ΣR = 10
    near(lit.mask_relevance(r, [1, 0, 0], [0, 0, 0]), r * np.reshape([10 / 8, 0, 0], (3, 1, 1)), 1e-15)
    # 8 and −2: |8|/10·10/8 = 1 for the first, |−2|/10·10/(−2) = −1 for the second
    near(lit.mask_relevance(r, [1, 0, 0], [0, 1, 0]), r * np.reshape([1, -1, 0], (3, 1, 1)), 1e-15)
    # the third in both: 8 + 2 and −2 + 2 = 0, so the positional part is nothing: (8, 2)·10/10
    near(lit.mask_relevance(r, [1, 0, 1], [0, 1, 1]), r * np.reshape([1, 0, 0.5], (3, 1, 1)), 1e-15)
    near(lit.mask_relevance(r, [1, 1, 1], [1, 1, 1]), r, 1e-15)
    near(lit.mask_relevance(r, [0, 0, 0], [0, 0, 0]), 0 * r, 0)


MASKS = {
    "one set": ([[1, 0], [0, 1]], None),
    "the other set": (None, [[0, 1], [1, 1]]),
    "two sets": ([[1, 0], [0, 1]], [[0, 1], [1, 0]]),
    "a head in both": ([[1, 0], [1, 1]], [[1, 0], [0, 1]]),
    "a block without a head": ([[1, 0], [0, 0]], [[0, 1], [0, 0]]),
    "the first block without a head": ([[0, 0], [1, 0]], None),
    "no head at all": (np.zeros((2, 2)), np.zeros((2, 2))),
}


@both
@pytest.mark.parametrize("seed", range(3))
def test_relevance_is_conserved_at_every_cut(family, seed):
    hf = opened(family, seed)
    found = lit.run(hf, draw(hf, seed))
    for target in (0, 2):
        for masks in ((None, None), *MASKS.values()):
            for alone in ("identity", "rescaled"):
                seen = lit.relevance_of(found, target, lit.Masked(*masks, alone=alone))
                near(seen.cuts.sum((1, 2)), np.ones(3), 1e-9)
                near(seen.tokens.sum(), 1.0, 1e-9)
                near(seen.tokens, seen.cuts[0].sum(-1), 0)


@both
def test_masks(models, family):
    hf, target = models[family], LABEL[family]
    plain = lit.relevance(hf, IDS, target)
    ones, zeros = np.ones((2, 2)), np.zeros((2, 2))
    for masks in ((ones, None), (None, ones), (ones, ones), (ones, zeros)):
        seen = lit.relevance(hf, IDS, target, syntactic=masks[0], positional=masks[1])
        near(seen.cuts, plain.cuts, 1e-12)
        near(seen.maps, plain.maps, 1e-12)
    near(
        lit.masked_lrp(hf, IDS, target, syntactic=ones),
        lit.transformer_attribution(hf, IDS, target),
        1e-12,
    )
    for syntactic, positional in MASKS.values():
        seen = lit.relevance(hf, IDS, target, syntactic=syntactic, positional=positional)
        on = np.zeros((2, 2), bool)
        for mask in (syntactic, positional):
            on |= np.zeros((2, 2), bool) if mask is None else np.array(mask, bool)
        np.testing.assert_array_equal(np.abs(seen.maps).sum((2, 3)) > 0, on)
    # where no head is on in any block, everything stays where it was read
    alone = lit.relevance(hf, IDS, target, syntactic=zeros).tokens
    row = 0 if family == "bert" else -1
    near(alone, np.eye(len(IDS))[row], 1e-9)
    near(lit.masked_lrp(hf, IDS, target, syntactic=zeros), np.zeros(len(IDS)), 0)


@both
def test_the_released_variant(models, family):
    """All ones double what is saved; the last block's saved relevance knows no mask; what is masked is lost."""
    hf, target = models[family], LABEL[family]
    plain = lit.relevance(hf, IDS, target)
    full = lit.relevance(hf, IDS, target, syntactic=np.ones((2, 2)), variant="released")
    near(full.maps, 2 * plain.maps, 1e-15)
    near(full.cuts, plain.cuts, 1e-15)
    some = lit.relevance(hf, IDS, target, syntactic=[[1, 1], [1, 0]], positional=[[0, 0], [1, 0]], variant="released")
    near(some.maps[1], 2 * plain.maps[1], 1e-15)
    assert np.abs(some.maps[0] - full.maps[0]).max() > 1e-6
    near(some.cuts[1:2].sum(), some.cuts[0].sum(), 1e-9)
    assert abs(some.cuts[1].sum() - 1) > 1e-6
    # what is missing is what arrived at the masked head: the total is 1 without the other head's maps and values
    lost = 2 * plain.maps[1, 1].sum()
    near(some.cuts[1].sum(), 1 - lost, 1e-9)


@both
def test_partial_lrp_and_scores(models, family):
    hf = models[family]
    row = 0 if family == "bert" else -1
    for target in range(3):
        seen = lit.relevance(hf, IDS, target)
        of_row = seen.maps[1, :, row]
        heads = [np.where(of_row[h] > 0, of_row[h], 0) for h in range(2)]
        near(lit.partial_lrp(hf, IDS, target), (heads[0] + heads[1]) / 2, 1e-15)
        near(lit.lrp(hf, IDS, target), seen.tokens, 0)
        gradient = lit.gradients(hf, IDS, target).maps
        rollout = lit.relevance_rollout(gradient, seen.maps)
        near(rollout.sum(-1), np.ones(len(IDS)), 1e-12)
        around = lit.around_attention(gradient, seen.maps)
        near(around, np.diag(np.diag(around)), 0)
        near(lit.transformer_attribution(hf, IDS, target), (rollout - around)[row], 0)
        near(lit.relevance_rollout(gradient, 0 * seen.maps), np.eye(len(IDS)), 0)
    near(lit.partial_of(np.array([[[2.0, -4.0]], [[-6.0, 1.0]]])), [[1, 0.5]], 0)  # ⁺ before the mean


def test_relevance_rollout_by_hand():
    gradient = np.array([[[[1, -1], [2, 1]], [[1, 1], [-2, 1]]]])  # one block: l h s t
    maps = np.array([[[[1, 1], [1, -3]], [[1, -1], [1, 0]]]])
    # (∇A ⊙ R)⁺ = [[1, 0], [2, 0]] and [[1, 0], [0, 0]]; mean + I = [[2, 0], [1, 1]]
    near(lit.relevance_rollout(gradient, maps), [[1, 0], [0.5, 0.5]], 0)
    two = lit.relevance_rollout(np.concatenate([gradient, gradient]), np.concatenate([maps, 0 * maps]))
    near(two, [[1, 0], [0.5, 0.5]], 0)
    near(lit.around_attention(gradient, maps), [[0.5, 0], [0, 0.5]], 0)  # of rows that add up to 2


def by_hooks(hf, target):
    """The relevance pass with what the model's own modules read and wrote, in whole-tensor form."""
    read, wrote, hooks = {}, {}, []

    def keep(name):
        def hook(module, args, out):
            read[name], wrote[name] = args[0][0].numpy(), out[0].numpy() if torch.is_tensor(out) else None

        return hook

    for name, module in hf.named_modules():
        if type(module).__name__ in ("Linear", "Conv1D", "LayerNorm", "GPT2Block", "BertLayer"):
            hooks.append(module.register_forward_hook(keep(name)))
    hf.set_attn_implementation("eager")
    with torch.no_grad():
        attention = hf(input_ids=torch.tensor([IDS]), output_attentions=True).attentions
    for hook in hooks:
        hook.remove()
    modules = dict(hf.named_modules())

    def linear(name, r):
        weight = modules[name].weight.detach().numpy()
        weight = weight if type(modules[name]).__name__ == "Linear" else weight.T
        x = np.atleast_2d(read[name])
        plus, minus = np.clip(x, 0, None), np.clip(x, None, 0)
        share = r / (plus @ weight.clip(0).T + minus @ weight.clip(None, 0).T)
        return plus * (share @ weight.clip(0)) + minus * (share @ weight.clip(None, 0))

    def add(a, b, r):
        pair = np.stack([a, b]) * (r / (a + b))
        sums = np.array([pair[0].sum(), pair[1].sum()])
        return pair * (np.abs(sums) / np.abs(sums).sum() * r.sum() / sums)[:, None, None]

    def product(a, b, r):  # b transposed: [h t c]
        share = r / (a @ b)
        return a * (share @ b.swapaxes(1, 2)) / 2, b * (a.swapaxes(1, 2) @ share) / 2

    def heads(x):
        return x.reshape(len(IDS), 2, -1).swapaxes(0, 1)

    def join(x):
        return x.swapaxes(0, 1).reshape(len(IDS), -1)

    family = hf.config.model_type
    r = np.eye(hf.config.vocab_size if family == "gpt2" else 3)[[target]]
    if family == "bert":
        r = linear("bert.pooler.dense", linear("classifier", r))
    else:  # every row goes through the head, only the last has relevance
        r = linear("lm_head", np.concatenate([np.zeros((len(IDS) - 1, r.shape[1])), r]))
    cut = np.zeros((len(IDS), 16))
    cut[0 if family == "bert" else -1] = r[0 if family == "bert" else -1]
    cuts, maps = [cut], []
    for layer in (1, 0):
        if family == "bert":
            at = f"bert.encoder.layer.{layer}."
            up, down, out = at + "intermediate.dense", at + "output.dense", at + "attention.output.dense"
            x, middle = read[at + "attention.self.query"], wrote[at + "attention.output.LayerNorm"]
            q, k, v = (wrote[at + f"attention.self.{name}"] for name in ("query", "key", "value"))
        else:
            at = f"transformer.h.{layer}."
            up, down, out = at + "mlp.c_fc", at + "mlp.c_proj", at + "attn.c_proj"
            x, middle = read[at + "ln_1"], read[at + "ln_2"]
            q, k, v = np.split(wrote[at + "attn.c_attn"], 3, axis=1)
        r_f, r_middle = add(wrote[down], middle, cut)
        r_o, r_x = add(wrote[out], x, r_middle + linear(up, linear(down, r_f)))
        a = attention[layer][0].numpy()
        r_a, r_v = product(a, heads(v), heads(linear(out, r_o)))
        r_q, r_k = product(heads(q), heads(k).swapaxes(1, 2), r_a)
        parts = join(r_q), join(r_k.swapaxes(1, 2)), join(r_v)
        if family == "bert":
            names = [at + f"attention.self.{name}" for name in ("query", "key", "value")]
            cut = r_x + sum(linear(name, part) for name, part in zip(names, parts, strict=True))
        else:
            cut = r_x + linear(at + "attn.c_attn", np.concatenate(parts, axis=1))
        cuts.insert(0, cut)
        maps.insert(0, r_a)
    return np.stack(cuts), np.stack(maps)


@both
def test_relevance_by_hooks(models, family):
    for target in (LABEL[family], 2):
        seen = lit.relevance(models[family], IDS, target)
        cuts, maps = by_hooks(models[family], target)
        near(seen.cuts, cuts, 1e-9)
        near(seen.maps, maps, 1e-9)


def test_relevance_does_not_know_the_size_of_the_logits(models):
    hf = copy.deepcopy(models["bert"])
    plain = lit.relevance(hf, IDS, 1)
    with torch.no_grad():
        hf.classifier.weight *= 3
    near(lit.relevance(hf, IDS, 1).cuts, plain.cuts, 1e-12)


def silent(family):
    """A model whose blocks add nothing, so only the readout row counts."""
    hf = opened(family, seed=1)
    with torch.no_grad():
        for name, weight in hf.named_parameters():
            if any(part in name for part in ("c_proj", "attention.output.dense", "output.dense")):
                weight.zero_()
    return hf


@both
def test_blocks_that_add_nothing(family):
    hf, target = silent(family), LABEL[family]
    row = np.eye(len(IDS))[0 if family == "bert" else -1]
    near(lit.lrp(hf, IDS, target), row, 1e-12)
    for scores in (
        lit.attnlrp(hf, IDS, target),
        lit.cp_lrp(hf, IDS, target),
        lit.input_x_gradient(hf, IDS, target),
        lit.deeplift_rescale(hf, IDS, target),
        lit.integrated_gradients(hf, IDS, target, steps=3),
    ):
        assert not scores[row == 0].any() and scores[row == 1].any()
    near(lit.alti(hf, IDS), np.stack([np.eye(len(IDS))] * 2), 1e-12)
    assert not lit.value_weighted_attention(hf, IDS).any()
    assert not lit.value_zeroing(hf, IDS).any()
    if family == "gpt2":  # logit = w·((e + p − mean)/σ·gain + shift): closed forms
        found = lit.run(hf, IDS)
        net, x = found.net, found.x0[-1]
        sigma = math.sqrt(((x - x.mean()) ** 2).mean() + net.last.eps)
        e = found.words[-1]
        expected = float(net.out.weight[target] @ ((e - e.mean()) / sigma * net.last.gain))
        near(lit.attnlrp(hf, IDS, target)[-1], expected, 1e-12)
        near(lit.cp_lrp(hf, IDS, target)[-1], expected, 1e-12)


def test_linear_attention_by_closed_form():
    """One head, one block, f = Σ_j a_j v x_j: tokens get ½ a_j x_j / Σ a x by the values, the maps the other half."""
    a, x = np.array([[0.2, 0.3, 0.5]]), np.array([[1.0], [4.0], [2.0]])
    r_maps, r_values = lit.matmul_relevance(a, 3 * x, np.ones((1, 1)))
    r_x = lit.linear_relevance(x, np.array([[3.0]]), r_values)
    near(r_x[:, 0], a[0] * x[:, 0] / (a @ x)[0] / 2, 1e-15)
    near(r_maps[0], r_x[:, 0], 1e-15)


# -- AttnLRP and CP-LRP ----------------------------------------------------------------------------------
# By another route: relevances instead of multipliers, R_in of every function from R_out and the numbers themselves.


def r_linear(x, linear, r):
    """ε-rule with ε = 0: R_j = Σ_i w_ij x_j / (Σ w x + b) · R_i."""
    share = r / lit.apply(linear, x)
    return x * (share @ linear.weight)


def r_norm(x, norm, r):
    """y_k = Σ_j x_j (1[j=k] − 1/d) gain_k/σ + shift_k, linear with a constant σ."""
    d = x.shape[-1]
    out = np.zeros_like(x)
    for i in range(len(x)):
        c = x[i] - x[i].mean()
        sigma = math.sqrt((c**2).mean() + norm.eps)
        weight = (np.eye(d) - 1 / d) * norm.gain[:, None] / sigma
        out[i] = r_linear(x[i], lit.Linear(weight, norm.shift), r[i])
    return out


def r_sum(a, b, r):
    return a * r / (a + b), b * r / (a + b)


def r_heads(net, w, b, r, constant):
    r_mixed = lit.apart(r_linear(b.joined, w.o, r), net.heads)
    r_q, r_k, r_v = np.zeros_like(b.q), np.zeros_like(b.k), np.zeros_like(b.v)
    for h in range(net.heads):
        share = r_mixed[h] / b.mixed[h]
        r_maps, r_v[h] = b.maps[h] * (share @ b.v[h].T), b.v[h] * (b.maps[h].T @ share)
        if constant:
            continue
        r_maps, r_v[h] = r_maps / 2, r_v[h] / 2
        for i in range(len(r)):
            seen = [j for j in range(len(r)) if np.isfinite(b.scores[h, i, j])]
            total = sum(r_maps[i, j] for j in seen)
            for j in seen:
                z = b.scores[h, i, j]
                r_score = z * (r_maps[i, j] - b.maps[h, i, j] * total)  # R_i = x_i (R_i − s_i Σ R)
                parts = b.q[h, i] * b.k[h, j] / (b.q[h, i] @ b.k[h, j]) * r_score
                r_q[h, i] += parts / 2
                r_k[h, j] += parts / 2
    r_read = r_linear(b.read, w.v, lit.together(r_v))
    for linear, part in ((w.q, r_q), (w.k, r_k)):
        r_read = r_read + r_linear(b.read, linear, lit.together(part))
    return r_read


def by_relevances(found, target, constant=False):
    net, r = found.net, np.zeros(len(found.logits))
    r[target] = found.logits[target]
    if net.kind == "bert":
        r = r_linear(found.top, net.pooler, r_linear(found.pooled, net.out, r))  # tanh: identity
    else:
        top = r_linear(found.top, net.out, r) if found.logits[target] else 0 * found.top
        r = r_norm(found.blocks[-1].y[-1:], net.last, top[None])[0]
    cut = np.zeros_like(found.x0)
    cut[found.row] = r
    for w, b in zip(net.blocks[::-1], found.blocks[::-1], strict=True):
        if net.kind == "bert":
            r_f, r_middle = r_sum(b.f, b.middle, r_norm(b.sum2, w.second, cut))
            r_middle = r_middle + r_linear(b.read2, w.up, r_linear(b.g, w.down, r_f))  # GELU: identity
            r_o, r_x = r_sum(b.o, b.x, r_norm(b.sum1, w.first, r_middle))
            cut = r_x + r_heads(net, w, b, r_o, constant)
        else:
            r_f, r_middle = r_sum(b.f, b.middle, cut)
            r_read2 = r_linear(b.read2, w.up, r_linear(b.g, w.down, r_f))
            r_o, r_x = r_sum(b.o, b.x, r_middle + r_norm(b.middle, w.second, r_read2))
            cut = r_x + r_norm(b.x, w.first, r_heads(net, w, b, r_o, constant))
    if net.norm is not None:
        cut = r_norm(found.words + found.constant, net.norm, cut)
    return r_sum(found.words, found.constant, cut)[0].sum(-1)


@both
def test_attnlrp_by_relevances(models, family):
    hf, target = models[family], LABEL[family]
    found = lit.run(hf, IDS)
    near(lit.attnlrp(hf, IDS, target), by_relevances(found, target), 1e-9)
    near(lit.cp_lrp(hf, IDS, target, activation="identity"), by_relevances(found, target, constant=True), 1e-9)
    different = [lit.attnlrp(hf, IDS, target), lit.cp_lrp(hf, IDS, target), lit.input_x_gradient(hf, IDS, target)]
    different.append(lit.cp_lrp(hf, IDS, target, activation="identity"))
    for i, a in enumerate(different):
        for b in different[:i]:
            assert np.abs(a - b).max() > 1e-3


def test_cp_lrp_is_the_gradient_of_a_model_with_constants(models):
    """Maps and standard deviations held fixed while each number of the words is nudged."""
    for family, hf in models.items():
        found, target, step = lit.run(hf, IDS[:4]), LABEL[family], 1e-5
        scores = np.zeros(4)
        for t, d in np.ndindex(found.words.shape):
            values = []
            for sign in (1, -1):
                words = found.words.copy()
                words[t, d] += sign * step
                values.append(held(found, words)[target])
            scores[t] += found.words[t, d] * (values[0] - values[1]) / (2 * step)
        near(lit.cp_lrp(hf, IDS[:4], target), scores, 1e-7)


def held(found, words):
    """Logits of the run with its maps and its standard deviations, from other words."""

    def norm(which, x, at):
        centred = at - at.mean(-1, keepdims=True)
        sigma = np.sqrt((centred**2).mean(-1, keepdims=True) + which.eps)
        return (x - x.mean(-1, keepdims=True)) / sigma * which.gain + which.shift

    net, x = found.net, words + found.constant
    post = net.kind == "bert"
    if post:
        x = norm(net.norm, x, found.words + found.constant)
    for w, b in zip(net.blocks, found.blocks, strict=True):
        read = x if post else norm(w.first, x, b.x)
        v = lit.apart(lit.apply(w.v, read), net.heads)
        x = x + lit.apply(w.o, lit.together(np.stack([b.maps[h] @ v[h] for h in range(net.heads)])))
        if post:
            x = norm(w.first, x, b.sum1)
        read = x if post else norm(w.second, x, b.sum1)
        x = x + lit.apply(w.down, net.act.value(lit.apply(w.up, read)))
        if post:
            x = norm(w.second, x, b.sum2)
    if post:
        return lit.apply(net.out, np.tanh(lit.apply(net.pooler, x[0])))
    return lit.apply(net.out, norm(net.last, x[-1], found.blocks[-1].y[-1]))


# -- what values do --------------------------------------------------------------------------------------


@both
def test_value_zeroing_in_the_model_itself(models, family):
    hf = models[family]
    hf.set_attn_implementation("eager")
    blocks = hf.bert.encoder.layer if family == "bert" else hf.transformer.h
    found = lit.value_zeroing(hf, IDS)
    for layer, block in enumerate(blocks):
        module = block.attention.self.value if family == "bert" else block.attn.c_attn
        outputs = []
        keep = block.register_forward_hook(lambda m, a, out: outputs.append(out if torch.is_tensor(out) else out[0]))  # noqa: B023
        try:
            with torch.no_grad():
                hf(input_ids=torch.tensor([IDS]))
                for j in range(len(IDS)):

                    def zero(m, args, out, j=j):
                        out = out.clone()
                        out[0, j, -16:] = 0  # gpt2: the last third of [q k v]
                        return out

                    hook = module.register_forward_hook(zero)
                    hf(input_ids=torch.tensor([IDS]))
                    hook.remove()
        finally:
            keep.remove()
        plain, *changed = [out[0] for out in outputs]
        distances = np.array([(1 - torch.cosine_similarity(plain, y)).numpy() for y in changed]).T  # s t
        near(found[layer], distances / distances.sum(-1, keepdims=True), 1e-9)
    near(found.sum(-1), np.ones((2, len(IDS))), 1e-12)
    near(lit.rolled(found, residual=False), found[1] @ found[0], 1e-12)
    near(lit.rolled(found, residual=True), lit.rollout_half(found[:, None]), 1e-12)


@both
def test_value_weighted_attention(models, family):
    """With the parts of all heads and tokens, the projection's bias and nothing else, o is complete."""
    hf = models[family]
    found = lit.run(hf, IDS)
    each, joint = lit.value_weighted_attention(hf, IDS), lit.value_weighted_attention(hf, IDS, heads="joint")
    assert (joint <= each + 1e-12).all() and (joint < each - 1e-6).any()
    for layer, (w, b) in enumerate(zip(found.net.blocks, found.blocks, strict=True)):
        values = np.einsum("htc,dhc->htd", b.v, w.o.weight.reshape(16, 2, 8))  # every head's v_j W_O
        parts = np.einsum("hst,htd->hstd", b.maps, values)
        near(parts.sum((0, 2)) + w.o.bias, b.o)
        near(each[layer], np.sqrt((parts**2).sum(-1)).sum(0), 1e-12)
        near(joint[layer], np.sqrt((parts.sum(0) ** 2).sum(-1)), 1e-12)


@both
def test_alti(models, family):
    hf = models[family]
    found, maps = lit.run(hf, IDS), lit.alti(hf, IDS)  # asserts that the parts sum to the output
    near(maps.sum(-1), np.ones((2, len(IDS))), 1e-12)
    assert (maps >= 0).all()
    b, w = found.blocks[1], found.net.blocks[1]
    parts, _ = lit.alti_parts(found.net, w, b)
    i = 3
    raw = [max(0, np.abs(b.middle[i]).sum() - np.abs(b.middle[i] - parts[i, j]).sum()) for j in range(len(IDS))]
    near(maps[1, i], np.array(raw) / sum(raw), 1e-12)
    near(lit.alti_scores(hf, IDS), (maps[1] @ maps[0])[found.row], 1e-15)
    if family == "gpt2":
        assert not np.triu(maps, 1).any()


# -- gradients and paths ---------------------------------------------------------------------------------


@both
def test_integrated_gradients(models, family):
    hf, target = models[family], LABEL[family]
    found = lit.run(hf, IDS)
    base = 0.5 * found.net.words[7:14]
    change = found.logits[target] - lit.run_words(found.net, base).logits[target]
    gaps = [abs(lit.integrated_gradients(hf, IDS, target, steps=n, baseline=base).sum() - change) for n in (10, 40)]
    assert gaps[1] < 2e-2 * abs(change) and gaps[1] < gaps[0] / 4
    one = lit.integrated_gradients(hf, IDS, target, steps=1)
    half = lit.multipliers(lit.GRADIENT, lit.run_words(found.net, found.words / 2), target).words
    near(one, (half * found.words).sum(-1), 1e-12)
    ends = lit.integrated_gradients(hf, IDS, target, steps=1, quadrature="ends")
    zero, full = (lit.multipliers(lit.GRADIENT, lit.run_words(found.net, a * found.words), target) for a in (0, 1))
    near(ends, ((zero.words + full.words) / 2 * found.words).sum(-1), 1e-12)


@both
def test_gradient_maps(models, family):
    hf, target = models[family], LABEL[family]
    found, g = lit.run(hf, IDS), lit.gradients(hf, IDS, target, value="log_prob").words
    near(lit.gradient_norm(hf, IDS, target, value="log_prob"), np.sqrt((g**2).sum(-1)), 1e-12)
    near(lit.input_x_gradient(hf, IDS, target, value="log_prob"), (g * found.words).sum(-1), 1e-12)
    more = lit.input_x_gradient(hf, IDS, target, value="log_prob", positions=True)
    near(more, (g * (found.words + found.constant)).sum(-1), 1e-12)
    noise = np.zeros((2, *found.words.shape))
    near(lit.smooth_grad(hf, IDS, target, noise), lit.gradient_norm(hf, IDS, target), 1e-12)
    noise = np.random.default_rng(0).normal(size=(3, *found.words.shape)) * lit.smooth_sigma(hf, IDS)
    runs = [lit.run_words(found.net, found.words + one) for one in noise]
    maps = [lit.multipliers(lit.GRADIENT, there, target).words for there in runs]
    near(lit.smooth_grad(hf, IDS, target, noise, of="gradient"), sum(maps) / 3, 1e-12)
    product = sum((m * there.words).sum(-1) for m, there in zip(maps, runs, strict=True)) / 3
    near(lit.smooth_grad(hf, IDS, target, noise, of="input_x_gradient"), product, 1e-12)


@both
@pytest.mark.parametrize("value", ["logit", "log_prob"])
def test_deeplift_is_complete(models, family, value):
    hf = models[family]
    found = lit.run(hf, IDS)
    for target in (0, 2):
        for base in (None, found.words[::-1], 0.3 * found.net.words[7:14]):
            there = lit.run_words(found.net, np.zeros_like(found.words) if base is None else base)
            change = lit.value_of(found.logits, target, value) - lit.value_of(there.logits, target, value)
            scores = lit.deeplift_rescale(hf, IDS, target, baseline=base, value=value)
            assert abs(scores.sum() - change) < 1e-9
    at_itself = lit.multipliers(lit.DEEPLIFT, found, 1, value, found)
    near(at_itself.words, lit.multipliers(lit.GRADIENT, found, 1, value).words, 1e-9)  # no step: the gradient
    near(at_itself.maps, lit.multipliers(lit.GRADIENT, found, 1, value).maps, 1e-9)


def test_deeplift_rules_by_hand():
    # a curve: exp from 0 to ln 3: (3 − 1)/ln 3
    near(lit.rescale_curve(lit.EXP, np.array([math.log(3)]), np.zeros(1)), [2 / math.log(3)], 1e-15)
    # softmax of (ln 3, 0) against (0, 0), for p_0: 3/4 − 1/2. L = ln 4, L' = ln 2, so z_0 − L goes from −ln 2 to ln 3/4
    # m(z_0 − L) = (1/4) / ln 3/2; L = ln S: ln 2 / (4 − 2) for each e; e_1 does not move, exp'(0) = 1
    m = lit.rescale_softmax(np.array([1.0, 0.0]), np.array([math.log(3), 0.0]), np.zeros(2))
    near(m[0] * math.log(3), 0.25, 1e-15)
    near(m[1], -0.25 / math.log(1.5) * math.log(2) / 2, 1e-6)
    # products: 3·5 − 1·2 = (3 − 1)·(5 + 2)/2 + (5 − 2)·(3 + 1)/2
    m_a, m_b = lit.midpoint_product(*(np.array([[x]]) for x in (1.0, 3.0, 5.0, 1.0, 2.0)))
    near((m_a[0, 0], m_b[0, 0]), (3.5, 2.0), 0)
    rng = np.random.default_rng(0)
    norm = lit.Norm(rng.normal(size=5), rng.normal(size=5), 1e-5)
    x, x0, m = rng.normal(size=(3, 5))
    change = float(m @ (lit.normed(norm, x) - lit.normed(norm, x0)))
    near(float(lit.rescale_norm(m, norm, x, x0) @ (x - x0)), change, 1e-12)


@both
def test_one_token(models, family):
    """The shortest input: every method is defined, and attention is 1."""
    hf, ids, target = models[family], [9], LABEL[family]
    near(lit.attention_rollout(hf, ids), [1], 0)
    near(lit.lrp(hf, ids, target), [1], 1e-9)
    near(lit.alti(hf, ids), np.ones((2, 1, 1)), 0)
    assert 0 <= lit.transformer_attribution(hf, ids, target)[0] < 1
    for scores in (lit.attnlrp(hf, ids, target), lit.deeplift_rescale(hf, ids, target), lit.gae(hf, ids, target)):
        assert scores.shape == (1,) and np.isfinite(scores).all()
