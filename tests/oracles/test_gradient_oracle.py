"""The oracle of values, gradients and paths against itself."""

from __future__ import annotations

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
        keep = block.register_forward_hook(
            lambda m, a, out: outputs.append(  # noqa: B023
                out if torch.is_tensor(out) else out[0]
            )
        )
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
        distances = np.array(
            [(1 - torch.cosine_similarity(plain, y)).numpy() for y in changed]
        ).T  # s t
        near(found[layer], distances / distances.sum(-1, keepdims=True), 1e-9)
    near(found.sum(-1), np.ones((2, len(IDS))), 1e-12)
    near(lit.rolled(found, residual=False), found[1] @ found[0], 1e-12)
    near(lit.rolled(found, residual=True), lit.rollout_half(found[:, None]), 1e-12)


@both
def test_value_weighted_attention(models, family):
    """With the parts of all heads and tokens, the projection's bias and nothing else, o is complete."""
    hf = models[family]
    found = lit.run(hf, IDS)
    each, joint = (
        lit.value_weighted_attention(hf, IDS),
        lit.value_weighted_attention(hf, IDS, heads="joint"),
    )
    assert (joint <= each + 1e-12).all() and (joint < each - 1e-6).any()
    for layer, (w, b) in enumerate(zip(found.net.blocks, found.blocks, strict=True)):
        values = np.einsum(
            "htc,dhc->htd", b.v, w.o.weight.reshape(16, 2, 8)
        )  # every head's v_j W_O
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
    raw = [
        max(0, np.abs(b.middle[i]).sum() - np.abs(b.middle[i] - parts[i, j]).sum())
        for j in range(len(IDS))
    ]
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
    gaps = [
        abs(lit.integrated_gradients(hf, IDS, target, steps=n, baseline=base).sum() - change)
        for n in (10, 40)
    ]
    assert gaps[1] < 2e-2 * abs(change) and gaps[1] < gaps[0] / 4
    one = lit.integrated_gradients(hf, IDS, target, steps=1)
    half = lit.multipliers(lit.GRADIENT, lit.run_words(found.net, found.words / 2), target).words
    near(one, (half * found.words).sum(-1), 1e-12)
    ends = lit.integrated_gradients(hf, IDS, target, steps=1, quadrature="ends")
    zero, full = (
        lit.multipliers(lit.GRADIENT, lit.run_words(found.net, a * found.words), target)
        for a in (0, 1)
    )
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
    noise = np.random.default_rng(0).normal(size=(3, *found.words.shape)) * lit.smooth_sigma(
        hf, IDS
    )
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
            change = lit.value_of(found.logits, target, value) - lit.value_of(
                there.logits, target, value
            )
            scores = lit.deeplift_rescale(hf, IDS, target, baseline=base, value=value)
            assert abs(scores.sum() - change) < 1e-9
    at_itself = lit.multipliers(lit.DEEPLIFT, found, 1, value, found)
    near(
        at_itself.words, lit.multipliers(lit.GRADIENT, found, 1, value).words, 1e-9
    )  # no step: the gradient
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
    for scores in (
        lit.attnlrp(hf, ids, target),
        lit.deeplift_rescale(hf, ids, target),
        lit.gae(hf, ids, target),
    ):
        assert scores.shape == (1,) and np.isfinite(scores).all()
