"""The oracle of relevance against itself: by hand, by hooks, closed forms."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from raison.testing.precision import Float64
from tests.helpers.literal_models import IDS, LABEL, TASKS, both, near, opened
from tests.oracles import attributions as lit


@pytest.fixture(autouse=True)
def precise():
    with Float64():
        yield


@pytest.fixture(scope="module")
def models():
    return {family: opened(family) for family in TASKS}


def draw(hf, seed, size=6):
    return np.random.default_rng(seed).integers(5, hf.config.vocab_size, size).tolist()


# -- LRP -------------------------------------------------------------------------------------------------


def test_linear_rule_by_hand():
    x, weight, r = (
        np.array([[1.0, -2.0]]),
        np.array([[3.0, -1.0], [-1.0, -2.0]]),
        np.array([[1.0, 2.0]]),
    )
    # output 0: 1·3 and −2·−1 → 3/5, 2/5;  output 1: 1·−1 does not count, −2·−2 takes all of its 2
    near(lit.linear_relevance(x, weight, r), [[0.6, 2.4]], 1e-15)
    near(
        lit.linear_relevance(np.array([[1.0, -1.0]]), np.array([[-1.0, 1.0]]), np.array([[1.0]])),
        [[0, 0]],
        0,
    )


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
    near(
        lit.mask_relevance(r, [1, 0, 0], [0, 0, 0]),
        r * np.reshape([10 / 8, 0, 0], (3, 1, 1)),
        1e-15,
    )
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
    some = lit.relevance(
        hf, IDS, target, syntactic=[[1, 1], [1, 0]], positional=[[0, 0], [1, 0]], variant="released"
    )
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
    near(
        lit.partial_of(np.array([[[2.0, -4.0]], [[-6.0, 1.0]]])), [[1, 0.5]], 0
    )  # ⁺ before the mean


def test_relevance_rollout_by_hand():
    gradient = np.array([[[[1, -1], [2, 1]], [[1, 1], [-2, 1]]]])  # one block: l h s t
    maps = np.array([[[[1, 1], [1, -3]], [[1, -1], [1, 0]]]])
    # (∇A ⊙ R)⁺ = [[1, 0], [2, 0]] and [[1, 0], [0, 0]]; mean + I = [[2, 0], [1, 1]]
    near(lit.relevance_rollout(gradient, maps), [[1, 0], [0.5, 0.5]], 0)
    two = lit.relevance_rollout(
        np.concatenate([gradient, gradient]), np.concatenate([maps, 0 * maps])
    )
    near(two, [[1, 0], [0.5, 0.5]], 0)
    near(lit.around_attention(gradient, maps), [[0.5, 0], [0, 0.5]], 0)  # of rows that add up to 2


def by_hooks(hf, target):
    """The relevance pass with what the model's own modules read and wrote, in whole-tensor form."""
    read, wrote, hooks = {}, {}, []

    def keep(name):
        def hook(module, args, out):
            read[name], wrote[name] = (
                args[0][0].numpy(),
                out[0].numpy() if torch.is_tensor(out) else None,
            )

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
            up, down, out = (
                at + "intermediate.dense",
                at + "output.dense",
                at + "attention.output.dense",
            )
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
            r_middle = r_middle + r_linear(
                b.read2, w.up, r_linear(b.g, w.down, r_f)
            )  # GELU: identity
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


# -- AttnLRP and CP-LRP ----------------------------------------------------------------------------------


@both
def test_attnlrp_by_relevances(models, family):
    hf, target = models[family], LABEL[family]
    found = lit.run(hf, IDS)
    near(lit.attnlrp(hf, IDS, target), by_relevances(found, target), 1e-9)
    near(
        lit.cp_lrp(hf, IDS, target, activation="identity"),
        by_relevances(found, target, constant=True),
        1e-9,
    )
    different = [
        lit.attnlrp(hf, IDS, target),
        lit.cp_lrp(hf, IDS, target),
        lit.input_x_gradient(hf, IDS, target),
    ]
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
