"""Attribution formulas, written literally from the papers: an oracle for tests, slow on purpose.

Nothing here comes from raison's methods and nothing is left to autograd: the forward passes of two architectures are
written out from the state dict in NumPy (`run` asserts that they equal the model's own to 1e-9), and so are the
backward passes. One input at a time, no padding, float64.

    bert   sequence classification: post-LN blocks, tanh pooler, read at row 0
    gpt2   causal language model: pre-LN blocks, next token, read at the last row
    t5, bart, marian   only what needs attention maps; these come from transformers (`seq2seq_maps`)

`target` is a label (bert) or a token id (gpt2, encoder-decoders). Every score is for every token, special ones and the
token of the readout row too; where a paper sets its own token's score to 0, the caller does.

    python tests/oracles/attributions.py    checks the oracle itself
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

Array = np.ndarray
TINY = 1e-9  # the floor of a denominator in LRP (methods.md 5.1)
CLOSE = 1e-6  # nearer than this, a finite difference is the slope in the middle: the better number


# -- weights ---------------------------------------------------------------------------------------------


class Linear(NamedTuple):
    """y = W x + b."""

    weight: Array  # [o i]
    bias: Array  # [o]


class Norm(NamedTuple):
    """y = (x − mean) / √(variance + eps) · gain + shift."""

    gain: Array  # [d]
    shift: Array  # [d]
    eps: float


class Curve(NamedTuple):
    """A function of one number and its derivative, both for arrays."""

    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]


@dataclass(frozen=True)
class BlockWeights:
    q: Linear
    k: Linear
    v: Linear
    o: Linear  # from the joined heads
    up: Linear
    down: Linear
    first: Norm  # bert: behind the attention's sum; gpt2: before the attention
    second: Norm  # bert: behind the feed-forward's sum; gpt2: before the feed-forward


@dataclass(frozen=True)
class Net:
    kind: str  # bert | gpt2
    words: Array  # [v d]
    positions: Array  # [p d]
    types: Array | None  # [k d], bert
    norm: Norm | None  # of the embeddings, bert
    blocks: list[BlockWeights]
    heads: int
    act: Curve
    last: Norm | None  # before the head, gpt2
    pooler: Linear | None  # bert
    out: Linear  # classifier, or the language model's head


def erf_gelu_value(x: Array) -> Array:
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def erf_gelu_slope(x: Array) -> Array:
    density = np.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)
    return 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) + x * density


def tanh_gelu_value(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def tanh_gelu_slope(x: Array) -> Array:
    inner = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    inner_slope = (1 - inner**2) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
    return 0.5 * (1 + inner) + 0.5 * x * inner_slope


CURVES = {
    "gelu": Curve(erf_gelu_value, erf_gelu_slope),
    "gelu_new": Curve(tanh_gelu_value, tanh_gelu_slope),
}
TANH = Curve(np.tanh, lambda x: 1 - np.tanh(x) ** 2)
EXP = Curve(np.exp, np.exp)
LOG = Curve(np.log, lambda x: 1 / x)


def weights_of(hf: Any) -> Net:
    """The numbers of a transformers model, every linear map as [output input]."""
    w = {name: tensor.detach().double().numpy().copy() for name, tensor in hf.state_dict().items()}
    c = hf.config
    if c.model_type == "bert":

        def linear(name: str) -> Linear:
            return Linear(w[name + ".weight"], w[name + ".bias"])

        def norm(name: str) -> Norm:
            return Norm(w[name + ".weight"], w[name + ".bias"], c.layer_norm_eps)

        blocks = []
        for index in range(c.num_hidden_layers):
            at = f"bert.encoder.layer.{index}."
            blocks.append(
                BlockWeights(
                    q=linear(at + "attention.self.query"),
                    k=linear(at + "attention.self.key"),
                    v=linear(at + "attention.self.value"),
                    o=linear(at + "attention.output.dense"),
                    up=linear(at + "intermediate.dense"),
                    down=linear(at + "output.dense"),
                    first=norm(at + "attention.output.LayerNorm"),
                    second=norm(at + "output.LayerNorm"),
                )
            )
        return Net(
            kind="bert",
            words=w["bert.embeddings.word_embeddings.weight"],
            positions=w["bert.embeddings.position_embeddings.weight"],
            types=w["bert.embeddings.token_type_embeddings.weight"],
            norm=norm("bert.embeddings.LayerNorm"),
            blocks=blocks,
            heads=c.num_attention_heads,
            act=CURVES[c.hidden_act],
            last=None,
            pooler=linear("bert.pooler.dense"),
            out=linear("classifier"),
        )
    if c.model_type == "gpt2":
        if c.scale_attn_by_inverse_layer_idx or not c.scale_attn_weights:
            raise ValueError("only the usual scaling 1/√width is written out here")

        def turned(name: str, rows: slice = slice(None)) -> Linear:
            return Linear(
                w[name + ".weight"].T[rows], w[name + ".bias"][rows]
            )  # Conv1D keeps [input output]

        def norm(name: str) -> Norm:
            return Norm(w[name + ".weight"], w[name + ".bias"], c.layer_norm_epsilon)

        blocks, d = [], c.n_embd
        for index in range(c.n_layer):
            at = f"transformer.h.{index}."
            blocks.append(
                BlockWeights(
                    q=turned(at + "attn.c_attn", slice(0, d)),
                    k=turned(at + "attn.c_attn", slice(d, 2 * d)),
                    v=turned(at + "attn.c_attn", slice(2 * d, 3 * d)),
                    o=turned(at + "attn.c_proj"),
                    up=turned(at + "mlp.c_fc"),
                    down=turned(at + "mlp.c_proj"),
                    first=norm(at + "ln_1"),
                    second=norm(at + "ln_2"),
                )
            )
        return Net(
            kind="gpt2",
            words=w["transformer.wte.weight"],
            positions=w["transformer.wpe.weight"],
            types=None,
            norm=None,
            blocks=blocks,
            heads=c.n_head,
            act=CURVES[c.activation_function],
            last=norm("transformer.ln_f"),
            pooler=None,
            out=Linear(w["lm_head.weight"], np.zeros(len(w["lm_head.weight"]))),
        )
    raise ValueError(f"{c.model_type} is not written out here")


# -- forward ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BlockRun:
    """Everything that one block computes; c is the width of a head."""

    x: Array  # [t d] input of the block
    read: Array  # [t d] what queries, keys and values are made of: bert x, gpt2 norm(x)
    q: Array  # [h t c]
    k: Array  # [h t c]
    v: Array  # [h t c]
    scores: Array  # [h s t] q·k/√c, −inf where a row may not see
    maps: Array  # [h s t] softmax of the scores
    mixed: Array  # [h s c] maps · v
    joined: Array  # [s d] heads beside each other
    o: Array  # [s d] their projection
    sum1: Array  # [s d] o + x
    middle: Array  # [s d] the attention sub-block's output: bert norm(sum1), gpt2 sum1
    read2: Array  # [s d] what the feed-forward reads: bert middle, gpt2 norm(middle)
    u: Array  # [s f]
    g: Array  # [s f] act(u)
    f: Array  # [s d]
    sum2: Array  # [s d] f + middle
    y: Array  # [s d] output of the block: bert norm(sum2), gpt2 sum2


@dataclass(frozen=True)
class Run:
    net: Net
    words: Array  # [t d] word embeddings, what is explained
    constant: Array  # [t d] position (and type) embeddings
    x0: Array  # [t d] input of the first block
    blocks: list[BlockRun]
    row: int  # where the answer is read
    top: Array  # [d] what the head reads: bert y[row] of the last block, gpt2 norm(y[row])
    pre: Array | None  # [d] before the pooler's tanh
    pooled: Array | None  # [d]
    logits: Array  # [label] or [v]

    @property
    def maps(self) -> Array:
        """[l h s t]"""
        return np.stack([block.maps for block in self.blocks])


def apply(linear: Linear, x: Array) -> Array:
    """[… i] → [… o]"""
    return x @ linear.weight.T + linear.bias


def normed(norm: Norm, x: Array) -> Array:
    """[… d] → [… d]"""
    centred = x - x.mean(-1, keepdims=True)
    return (
        centred / np.sqrt((centred**2).mean(-1, keepdims=True) + norm.eps) * norm.gain + norm.shift
    )


def softmax(z: Array) -> Array:
    """Over the last axis."""
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def apart(x: Array, heads: int) -> Array:
    """[t d] → [h t c]"""
    width = x.shape[1] // heads
    return np.stack([x[:, h * width : (h + 1) * width] for h in range(heads)])


def together(x: Array) -> Array:
    """[h t c] → [t d]"""
    return np.concatenate(list(x), axis=1)


def run_block(
    net: Net, w: BlockWeights, x: Array, *, maps: Array | None = None, v: Array | None = None
) -> BlockRun:
    """One block; `maps` [h s t] or `v` [h t c] replace what it would compute itself."""
    post = net.kind == "bert"
    read = x if post else normed(w.first, x)
    q, k = apart(apply(w.q, read), net.heads), apart(apply(w.k, read), net.heads)
    if v is None:
        v = apart(apply(w.v, read), net.heads)
    t, width = len(x), q.shape[2]
    scores = np.full((net.heads, t, t), -np.inf)
    for h in range(net.heads):
        for i in range(t):
            for j in range(t):
                if post or j <= i:
                    scores[h, i, j] = q[h, i] @ k[h, j] / math.sqrt(width)
    if maps is None:
        maps = softmax(scores)
    mixed = np.stack([maps[h] @ v[h] for h in range(net.heads)])
    joined = together(mixed)
    o = apply(w.o, joined)
    sum1 = o + x
    middle = normed(w.first, sum1) if post else sum1
    read2 = middle if post else normed(w.second, middle)
    u = apply(w.up, read2)
    g = net.act.value(u)
    f = apply(w.down, g)
    sum2 = f + middle
    y = normed(w.second, sum2) if post else sum2
    return BlockRun(
        x, read, q, k, v, scores, maps, mixed, joined, o, sum1, middle, read2, u, g, f, sum2, y
    )


def run_words(
    net: Net, words: Array, types: Sequence[int] | None = None, maps: dict[int, Array] | None = None
) -> Run:
    """The whole model from word embeddings [t d]; `maps` {l: [h s t]} replaces attention maps."""
    t = len(words)
    constant = net.positions[:t].copy()
    if net.types is not None:
        constant += net.types[list(types) if types is not None else [0] * t]
    x = words + constant
    if net.norm is not None:
        x = normed(net.norm, x)
    x0, blocks = x, []
    for index, w in enumerate(net.blocks):
        blocks.append(run_block(net, w, x, maps=(maps or {}).get(index)))
        x = blocks[-1].y
    if net.pooler is not None:
        row, top = 0, x[0]
        pre = apply(net.pooler, top)
        pooled = np.tanh(pre)
        return Run(net, words, constant, x0, blocks, row, top, pre, pooled, apply(net.out, pooled))
    assert net.last is not None
    row = t - 1
    top = normed(net.last, x[row])
    return Run(net, words, constant, x0, blocks, row, top, None, None, apply(net.out, top))


def run(hf: Any, ids: Sequence[int], types: Sequence[int] | None = None) -> Run:
    """The model on one input, written out; it must say what the model itself says."""
    net = weights_of(hf)
    found = run_words(net, net.words[list(map(int, ids))], types)
    given: dict[str, Any] = dict(input_ids=torch.tensor([list(map(int, ids))]))
    if types is not None:
        given["token_type_ids"] = torch.tensor([list(map(int, types))])
    with torch.no_grad():
        logits = hf(**given).logits[0]
    plain = (logits if net.kind == "bert" else logits[-1]).numpy()
    assert np.abs(found.logits - plain).max() < 1e-9, (
        "the forward pass written out is not the model's"
    )
    return found


def value_of(logits: Array, target: int, value: str) -> float:
    """f: the target's logit or its log-probability."""
    if value == "logit":
        return float(logits[target])
    if value == "log_prob":
        shifted = logits - logits.max()
        return float(shifted[target] - np.log(np.exp(shifted).sum()))
    raise ValueError(f"no value {value!r}: logit or log_prob")


# -- backward --------------------------------------------------------------------------------------------
# One skeleton for four methods: a multiplier m(x) for every number x of the run, m(f) = 1. They differ in what a
# multiplier becomes when it passes a curve, a softmax, a norm or a product of two signals; linear maps and sums are the
# same for all. Rules see the run (x) and a reference run (x'), which only DeepLIFT looks at.


@dataclass(frozen=True)
class Rules:
    curve: Callable[
        [Curve, Array, Array], Array
    ]  # (g, x, x') → what m is multiplied by, element by element
    softmax: Callable[[Array, Array, Array], Array]  # (m [t], z [t], z' [t]) → m at z [t], one row
    norm: Callable[
        [Array, Norm, Array, Array], Array
    ]  # (m [d], norm, x [d], x' [d]) → m at x [d], one row
    score: Callable[
        ..., tuple[Array, Array]
    ]  # (m [s t], a [s c], b [c t], a', b') → m at a, m at b, for a·b
    weigh: Callable[..., tuple[Array, Array]]  # the same for maps · values


def plain_curve(g: Curve, x: Array, x0: Array) -> Array:
    return g.slope(x)


def plain_softmax(m: Array, z: Array, z0: Array) -> Array:
    """∂p_j/∂z_i = p_j (1[i=j] − p_i)."""
    p = softmax(z)
    out = np.zeros_like(m)
    for i in range(len(z)):
        for j in range(len(z)):
            out[i] += m[j] * p[j] * ((1.0 if i == j else 0.0) - p[i])
    return out


def plain_norm(m: Array, norm: Norm, x: Array, x0: Array) -> Array:
    """c = x − mean, s = 1/√(mean c² + eps), y = c·s·gain:  through s, through c, and c through the mean."""
    c = x - x.mean()
    s = 1 / math.sqrt((c**2).mean() + norm.eps)
    m_c = m * norm.gain * s
    m_s = float((m * norm.gain * c).sum())
    m_c = m_c + m_s * (-0.5 * s**3) * 2 * c / len(x)
    return m_c - m_c.mean()


def plain_product(m: Array, a: Array, b: Array, a0: Array, b0: Array) -> tuple[Array, Array]:
    return m @ b.T, a.T @ m


GRADIENT = Rules(plain_curve, plain_softmax, plain_norm, plain_product, plain_product)


def ratio_curve(g: Curve, x: Array, x0: Array) -> Array:
    """Identity rule: R(x) = R(g(x)), so m(x) = m(g)·g(x)/x; the slope at 0 where x = 0 (our curves have g(0) = 0)."""
    zero = x == 0
    return np.where(zero, g.slope(np.zeros_like(x)), g.value(x) / np.where(zero, 1.0, x))


def linear_norm(m: Array, norm: Norm, x: Array, x0: Array) -> Array:
    """The standard deviation is a constant; the mean is not."""
    c = x - x.mean()
    m_c = m * norm.gain / math.sqrt((c**2).mean() + norm.eps)
    return m_c - m_c.mean()


def half_product(m: Array, a: Array, b: Array, a0: Array, b0: Array) -> tuple[Array, Array]:
    """Each factor gets half of the relevance."""
    return 0.5 * (m @ b.T), 0.5 * (a.T @ m)


def constant_maps(m: Array, a: Array, b: Array, a0: Array, b0: Array) -> tuple[Array, Array]:
    """Attention weights are constants: the values take all."""
    return np.zeros_like(a), a.T @ m


# The Taylor rule R_i = z_i (R_i^out − p_i Σ_j R_j^out) with R = m·(the number itself) is the plain derivative.
ATTNLRP = Rules(ratio_curve, plain_softmax, linear_norm, half_product, half_product)
CP_LRP = Rules(plain_curve, plain_softmax, linear_norm, plain_product, constant_maps)
CP_LRP_IDENTITY = Rules(ratio_curve, plain_softmax, linear_norm, plain_product, constant_maps)


def rescale_curve(g: Curve, x: Array, x0: Array) -> Array:
    """(g(x) − g(x')) / (x − x')."""
    near = np.abs(x - x0) < CLOSE
    return np.where(
        near, g.slope((x + x0) / 2), (g.value(x) - g.value(x0)) / np.where(near, 1.0, x - x0)
    )


def rescale_softmax(m: Array, z: Array, z0: Array) -> Array:
    """L = ln Σ exp z through exp, sum and logarithm; p = exp(z − L); each step by the rescale rule.

    (p = e · 1/Σe is another way to take it apart, complete as well, but it divides by numbers that may be tiny.)
    """
    shift = max(z.max(), z0.max())
    e, e0 = np.exp(z - shift), np.exp(z0 - shift)
    total, total0 = e.sum(), e0.sum()
    log, log0 = shift + np.log(total), shift + np.log(total0)
    same = abs(total - total0) < CLOSE
    slope = 1 / total if same else (log - log0) / (total - total0)
    inside = m * rescale_curve(EXP, z - log, z0 - log0)
    return inside - inside.sum() * slope * rescale_curve(EXP, z - shift, z0 - shift)


def rescale_norm(m: Array, norm: Norm, x: Array, x0: Array) -> Array:
    """c = x − mean, q = c², w = mean q + eps, s = w^(−1/2), y = c·s·gain, each by the rescale rule."""
    c, c0 = x - x.mean(), x0 - x0.mean()
    w, w0 = (c**2).mean() + norm.eps, (c0**2).mean() + norm.eps
    s, s0 = w**-0.5, w0**-0.5
    m_product = m * norm.gain
    m_c = m_product * (s + s0) / 2
    m_s = float((m_product * (c + c0) / 2).sum())
    m_w = m_s * (
        -1 / (math.sqrt(w) * math.sqrt(w0) * (math.sqrt(w) + math.sqrt(w0)))
    )  # (s − s') / (w − w')
    m_q = m_w / len(x)
    m_c = m_c + m_q * (c + c0)  # (c² − c'²) / (c − c')
    return m_c - m_c.mean()


def midpoint_product(m: Array, a: Array, b: Array, a0: Array, b0: Array) -> tuple[Array, Array]:
    """ab − a'b' = (a − a')·(b + b')/2 + (b − b')·(a + a')/2."""
    return m @ ((b + b0) / 2).T, ((a + a0) / 2).T @ m


DEEPLIFT = Rules(rescale_curve, rescale_softmax, rescale_norm, midpoint_product, midpoint_product)


@dataclass(frozen=True)
class Multipliers:
    words: Array  # [t d]
    inputs: Array  # [l t d] at the input of every block
    maps: Array  # [l h s t] at the attention weights


def norm_rows(rules: Rules, m: Array, norm: Norm, x: Array, x0: Array) -> Array:
    return np.stack([rules.norm(m[i], norm, x[i], x0[i]) for i in range(len(x))])


def back_heads(
    rules: Rules, net: Net, w: BlockWeights, m: Array, b: BlockRun, b0: BlockRun
) -> tuple[Array, Array]:
    """m at the projection o [s d] → m at what queries, keys and values read [t d], and m at the maps [h s t]."""
    m_mixed = apart(m @ w.o.weight, net.heads)
    t, width = len(b.x), b.q.shape[2]
    m_maps, m_q, m_k, m_v = (
        np.zeros_like(b.maps),
        np.zeros_like(b.q),
        np.zeros_like(b.k),
        np.zeros_like(b.v),
    )
    for h in range(net.heads):
        m_maps[h], m_v[h] = rules.weigh(m_mixed[h], b.maps[h], b.v[h], b0.maps[h], b0.v[h])
        m_scores = np.zeros((t, t))
        for i in range(t):
            seen = np.isfinite(
                b.scores[h, i]
            )  # a token that can't be seen is no input of the row's softmax
            m_scores[i, seen] = rules.softmax(
                m_maps[h, i, seen], b.scores[h, i, seen], b0.scores[h, i, seen]
            )
        m_scores = m_scores / math.sqrt(width)
        m_q[h], turned = rules.score(m_scores, b.q[h], b.k[h].T, b0.q[h], b0.k[h].T)
        m_k[h] = turned.T
    m_read = together(m_q) @ w.q.weight + together(m_k) @ w.k.weight + together(m_v) @ w.v.weight
    return m_read, m_maps


def back_bert_block(
    rules: Rules, net: Net, w: BlockWeights, m: Array, b: BlockRun, b0: BlockRun
) -> tuple[Array, Array]:
    """m at y → m at x, m at the maps."""
    m_sum2 = norm_rows(rules, m, w.second, b.sum2, b0.sum2)
    m_g = m_sum2 @ w.down.weight
    m_u = m_g * rules.curve(net.act, b.u, b0.u)
    m_middle = m_sum2 + m_u @ w.up.weight
    m_sum1 = norm_rows(rules, m_middle, w.first, b.sum1, b0.sum1)
    m_read, m_maps = back_heads(rules, net, w, m_sum1, b, b0)
    return m_sum1 + m_read, m_maps


def back_gpt2_block(
    rules: Rules, net: Net, w: BlockWeights, m: Array, b: BlockRun, b0: BlockRun
) -> tuple[Array, Array]:
    """m at y → m at x, m at the maps."""
    m_g = m @ w.down.weight
    m_u = m_g * rules.curve(net.act, b.u, b0.u)
    m_sum1 = m + norm_rows(rules, m_u @ w.up.weight, w.second, b.sum1, b0.sum1)
    m_read, m_maps = back_heads(rules, net, w, m_sum1, b, b0)
    return m_sum1 + norm_rows(rules, m_read, w.first, b.x, b0.x), m_maps


def seed(rules: Rules, target: int, value: str, z: Array, z0: Array) -> Array:
    """m at the logits [v]: one-hot, or log p = z_c − log Σ exp(z) by the rules' own curves."""
    m = np.zeros(len(z))
    m[target] = 1.0
    if value == "log_prob":
        shift = max(z.max(), z0.max())  # a constant: log Σ exp(z − c) + c
        total, total0 = np.array([np.exp(z - shift).sum()]), np.array([np.exp(z0 - shift).sum()])
        m = m - rules.curve(LOG, total, total0) * rules.curve(EXP, z - shift, z0 - shift)
    elif value != "logit":
        raise ValueError(f"no value {value!r}: logit or log_prob")
    return m


def multipliers(
    rules: Rules, run: Run, target: int, value: str = "logit", reference: Run | None = None
) -> Multipliers:
    """Back from f to everything, by `rules`."""
    net, base = run.net, run if reference is None else reference
    m_logits = seed(rules, target, value, run.logits, base.logits)
    if net.kind == "bert":
        assert net.pooler is not None and run.pre is not None and base.pre is not None
        m_pre = (m_logits @ net.out.weight) * rules.curve(TANH, run.pre, base.pre)
        m_row = m_pre @ net.pooler.weight
    else:
        assert net.last is not None
        below, below0 = run.blocks[-1].y[run.row], base.blocks[-1].y[run.row]
        m_row = rules.norm(m_logits @ net.out.weight, net.last, below, below0)
    m = np.zeros_like(run.x0)
    m[run.row] = m_row
    inputs, maps = [], []
    back = back_bert_block if net.kind == "bert" else back_gpt2_block
    for index in reversed(range(len(net.blocks))):
        m, m_maps = back(rules, net, net.blocks[index], m, run.blocks[index], base.blocks[index])
        inputs.insert(0, m)
        maps.insert(0, m_maps)
    if net.norm is not None:
        m = norm_rows(rules, m, net.norm, run.words + run.constant, base.words + base.constant)
    return Multipliers(m, np.stack(inputs), np.stack(maps))


def gradients(
    hf: Any,
    ids: Sequence[int],
    target: int,
    *,
    value: str = "logit",
    types: Sequence[int] | None = None,
) -> Multipliers:
    """∂f/∂(word embeddings), ∂f/∂(input of every block), ∂f/∂A."""
    return multipliers(GRADIENT, run(hf, ids, types), target, value)


# -- attention -------------------------------------------------------------------------------------------


def attention_maps(hf: Any, ids: Sequence[int], *, types: Sequence[int] | None = None) -> Array:
    """A [l h s t]."""
    return run(hf, ids, types).maps


def attention_last(hf: Any, ids: Sequence[int], *, types: Sequence[int] | None = None) -> Array:
    """mean_h A of the last block, readout row [t]."""
    found = run(hf, ids, types)
    return found.maps[-1].mean(0)[found.row]


def attention_mean(hf: Any, ids: Sequence[int], *, types: Sequence[int] | None = None) -> Array:
    """mean over blocks and heads of A, readout row [t]."""
    found = run(hf, ids, types)
    return found.maps.mean((0, 1))[found.row]


def rows_to_one(matrix: Array) -> Array:
    """Every row divided by its sum; a row of zeros stays."""
    out = np.zeros_like(matrix)
    for i, row in enumerate(matrix):
        if row.sum() != 0:
            out[i] = row / row.sum()
    return out


def chain(matrices: Sequence[Array]) -> Array:
    """M_L · … · M_1, the last block leftmost."""
    out = np.eye(len(matrices[0]))
    for matrix in matrices:
        out = matrix @ out
    return out


def rollout_half(maps: Array) -> Array:
    """Â_l = ½ mean_h A_l + ½ I;  Â_L ··· Â_1 (P0, Abnar & Zuidema 2020). [l h s t] → [s t]"""
    return chain([0.5 * m.mean(0) + 0.5 * np.eye(m.shape[-1]) for m in maps])


def rollout_plus(maps: Array) -> Array:
    """Â_l = rows to one(mean_h A_l + I);  Â_L ··· Â_1 (P4); the same, as the rows of A sum to 1. [l h s t] → [s t]"""
    return chain([rows_to_one(m.mean(0) + np.eye(m.shape[-1])) for m in maps])


def attention_rollout(
    hf: Any, ids: Sequence[int], *, form: str = "half", types: Sequence[int] | None = None
) -> Array:
    """Rollout, readout row [t]; form "half" (P0) or "plus" (P4)."""
    found = run(hf, ids, types)
    return {"half": rollout_half, "plus": rollout_plus}[form](found.maps)[found.row]


def attention_x_gradient(
    hf: Any,
    ids: Sequence[int],
    target: int,
    *,
    value: str = "logit",
    layers: str = "last",
    positive: bool = False,
    types: Sequence[int] | None = None,
) -> Array:
    """mean_h (∇A ⊙ A), readout row [t], of the last block or the mean of all blocks ("mean"); signed.

    methods.md gives no formula for it. `positive` takes max(0, ·) of every entry before the mean over heads.
    """
    found = run(hf, ids, types)
    product = multipliers(GRADIENT, found, target, value).maps * found.maps
    if positive:
        product = np.maximum(0, product)
    of_layers = product.mean(1)  # [l s t]
    return {"last": of_layers[-1], "mean": of_layers.mean(0)}[layers][found.row]


def gae_of(maps: Array, gradient: Array) -> Array:
    """R ← I; per block, the first one first: R ← R + mean_h((∇A ⊙ A)⁺)·R (Chefer 2021a). [l h s t] → [s t]"""
    relevance = np.eye(maps.shape[-1])
    for a, g in zip(maps, gradient, strict=True):
        relevance = relevance + np.maximum(0, g * a).mean(0) @ relevance
    return relevance


def gae(
    hf: Any,
    ids: Sequence[int],
    target: int,
    *,
    value: str = "logit",
    types: Sequence[int] | None = None,
) -> Array:
    """Generic attention explainability, readout row [t]."""
    found = run(hf, ids, types)
    return gae_of(found.maps, multipliers(GRADIENT, found, target, value).maps)[found.row]


# -- encoder-decoders ------------------------------------------------------------------------------------


class CrossMaps(NamedTuple):
    """Attention maps of an encoder-decoder, or their gradients; s here: source, t: decoder input."""

    encoder: Array  # [l h s s]
    decoder: Array  # [l h t t]
    cross: Array  # [l h t s]


def seq2seq_maps(
    hf: Any, source: Sequence[int], prefix: Sequence[int], target: int, *, value: str = "logit"
) -> tuple[CrossMaps, CrossMaps, float]:
    """A, ∇A and f for the token behind `prefix` (decoder inputs, start token first), read at the last row.

    From transformers' eager attention and autograd: these architectures are not written out here.
    """
    before = hf.config._attn_implementation
    hf.set_attn_implementation("eager")
    try:
        with torch.enable_grad():
            out = hf(
                input_ids=torch.tensor([list(map(int, source))]),
                decoder_input_ids=torch.tensor([list(map(int, prefix))]),
                output_attentions=True,
                use_cache=False,
            )
            row = out.logits[0, -1]
            result = row[target] if value == "logit" else row.log_softmax(-1)[target]
            kinds = (out.encoder_attentions, out.decoder_attentions, out.cross_attentions)
            flat = torch.autograd.grad(result, [a for kind in kinds for a in kind])
    finally:
        hf.set_attn_implementation(before)
    gradient, at = [], 0
    for kind in kinds:
        gradient.append(np.stack([g[0].detach().numpy() for g in flat[at : at + len(kind)]]))
        at += len(kind)
    maps = [np.stack([a[0].detach().numpy() for a in kind]) for kind in kinds]
    assert abs(float(result.detach()) - value_of(row.detach().numpy(), target, value)) < 1e-9
    return CrossMaps(*maps), CrossMaps(*gradient), float(result.detach())


def seq2seq_attention(
    hf: Any, source: Sequence[int], prefix: Sequence[int], target: int, *, layers: str = "last"
) -> Array:
    """Cross-attention row beside decoder self-attention row, head mean, last row: [source; prefix] (methods.md 1.5)."""
    maps, _, _ = seq2seq_maps(hf, source, prefix, target)
    pick = {"last": lambda m: m[-1].mean(0), "mean": lambda m: m.mean((0, 1))}[layers]
    return np.concatenate([pick(maps.cross)[-1], pick(maps.decoder)[-1]])


def seq2seq_attention_x_gradient(
    hf: Any,
    source: Sequence[int],
    prefix: Sequence[int],
    target: int,
    *,
    value: str = "logit",
    layers: str = "last",
    positive: bool = False,
) -> Array:
    """The same of ∇A ⊙ A."""
    maps, gradient, _ = seq2seq_maps(hf, source, prefix, target, value=value)
    pick = {"last": lambda m: m[-1].mean(0), "mean": lambda m: m.mean((0, 1))}[layers]
    rows = []
    for a, g in ((maps.cross, gradient.cross), (maps.decoder, gradient.decoder)):
        product = np.maximum(0, a * g) if positive else a * g
        rows.append(pick(product)[-1])
    return np.concatenate(rows)


def self_normalised(relevance: Array) -> Array:
    """R̄ = rows to one(R − I) + I; a row of R − I that is all 0 stays 0."""
    eye = np.eye(len(relevance))
    return rows_to_one(relevance - eye) + eye


def gae_cross_of(
    maps: CrossMaps, gradient: CrossMaps, *, carry: bool = True
) -> tuple[Array, Array, Array]:
    """R_ss [s s], R_tt [t t], R_ts [t s] of Chefer 2021a for an encoder-decoder; Ā = mean_h (∇A ⊙ A)⁺.

    All encoder blocks:        R_ss += Ā_ss R_ss                              (R_ss starts as I)
    decoder block by block:    R_tt += Ā_tt R_tt;  R_ts += Ā_tt R_ts          (R_tt starts as I, R_ts as 0)
                               R_ts += R̄_ttᵀ Ā_ts R̄_ss
    The update R_ts += Ā_tt R_ts is the paper's (its equation for self-attention holds for both of its R's);
    methods.md's short form leaves it out: carry=False. R_tt += Ā_ts R_st is 0, for a source never sees a target.
    """
    r_ss, r_tt = np.eye(maps.encoder.shape[-1]), np.eye(maps.decoder.shape[-1])
    r_ts = np.zeros((maps.decoder.shape[-1], maps.encoder.shape[-1]))
    for a, g in zip(maps.encoder, gradient.encoder, strict=True):
        r_ss = r_ss + np.maximum(0, a * g).mean(0) @ r_ss
    for layer in range(len(maps.decoder)):
        bar = np.maximum(0, maps.decoder[layer] * gradient.decoder[layer]).mean(0)
        r_tt, r_ts = r_tt + bar @ r_tt, r_ts + bar @ r_ts if carry else r_ts
        bar = np.maximum(0, maps.cross[layer] * gradient.cross[layer]).mean(0)
        r_ts = r_ts + self_normalised(r_tt).T @ bar @ self_normalised(r_ss)
    return r_ss, r_tt, r_ts


def seq2seq_gae(
    hf: Any,
    source: Sequence[int],
    prefix: Sequence[int],
    target: int,
    *,
    value: str = "logit",
    carry: bool = True,
) -> Array:
    """[R_ts; R_tt] at the last decoder row: scores of source and prefix."""
    maps, gradient, _ = seq2seq_maps(hf, source, prefix, target, value=value)
    _, r_tt, r_ts = gae_cross_of(maps, gradient, carry=carry)
    return np.concatenate([r_ts[-1], r_tt[-1]])


# -- CAM, GradCAM, AttCAT (methods.md 5.5) ---------------------------------------------------------------


def cam_of(gradient: Array) -> Array:
    """(mean over heads and query rows of ∇A)⁺: [h s t] → [t]"""
    return np.maximum(0, gradient.mean((0, 1)))


def gradcam_of(maps: Array, gradient: Array) -> Array:
    """weight_h = mean_{s,t} ∇A_h;  (mean_h weight_h·A_h)⁺, min–max over the whole matrix: [h s t] → [s t]

    Where all entries are equal the range is 0 and the result is 0.
    """
    weights = gradient.mean((1, 2))
    total = np.zeros_like(maps[0])
    for h in range(len(maps)):
        total += weights[h] * maps[h]
    cut = np.maximum(0, total / len(maps))
    low, high = cut.min(), cut.max()
    return np.zeros_like(cut) if high == low else (cut - low) / (high - low)


def cam(
    hf: Any,
    ids: Sequence[int],
    target: int,
    *,
    value: str = "logit",
    types: Sequence[int] | None = None,
) -> Array:
    """CAM of the last block's attention gradient [t]."""
    return cam_of(gradients(hf, ids, target, value=value, types=types).maps[-1])


def gradcam(
    hf: Any,
    ids: Sequence[int],
    target: int,
    *,
    value: str = "logit",
    types: Sequence[int] | None = None,
) -> Array:
    """GradCAM of the last block's attention, readout row [t]."""
    found = run(hf, ids, types)
    gradient = multipliers(GRADIENT, found, target, value).maps[-1]
    return gradcam_of(found.maps[-1], gradient)[found.row]


def attcat(
    hf: Any,
    ids: Sequence[int],
    target: int,
    *,
    value: str = "logit",
    types: Sequence[int] | None = None,
) -> Array:
    """Σ_l [mean_{h,i} A^l_{h,i,j}]·⟨∂f/∂h^l_j, h^l_j⟩, h^l the input of block l; signed [t]."""
    found = run(hf, ids, types)
    gradient = multipliers(GRADIENT, found, target, value).inputs
    scores = np.zeros(len(found.words))
    for layer, block in enumerate(found.blocks):
        for j in range(len(scores)):
            scores[j] += block.maps[:, :, j].mean() * float(gradient[layer, j] @ block.x[j])
    return scores


# -- LRP as in P4 (methods.md 5.1 to 5.4) ----------------------------------------------------------------


def divided(a: Any, b: Any) -> Array:
    """a / b, where b = 0 gives 0 and |b| is at least 1e-9."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    floored = np.where(b < 0, -1.0, 1.0) * np.maximum(np.abs(b), TINY)
    return np.where(b == 0, 0.0, a / floored)


def linear_relevance(x: Array, weight: Array, r: Array) -> Array:
    """R_j = Σ_i [x_j⁺w_ij⁺ + x_j⁻w_ij⁻] / Σ_j'[…] · R_i; x [t i], weight [o i], r [t o] → [t i].

    The bias takes nothing. Where an output has no positive contribution its relevance is lost.
    """
    out = np.zeros_like(x)
    for t in range(len(x)):
        for i in range(len(weight)):
            if r[t, i] != 0:
                parts = np.maximum(x[t], 0) * np.maximum(weight[i], 0) + np.minimum(
                    x[t], 0
                ) * np.minimum(weight[i], 0)
                out[t] += parts * divided(r[t, i], parts.sum())
    return out


def add_relevance(a: Array, b: Array, r: Array) -> tuple[Array, Array]:
    """r_a = a·R/(a+b), r_b = b·R/(a+b), then r_a rescaled to |Σr_a|/(|Σr_a|+|Σr_b|)·ΣR and r_b likewise.

    Sums go over the tensors of one example. Where a+b = 0 the element gives 0, and the rescaling makes up for it.
    """
    r_a, r_b = a * divided(r, a + b), b * divided(r, a + b)
    sum_a, sum_b = r_a.sum(), r_b.sum()
    wanted_a = divided(abs(sum_a), abs(sum_a) + abs(sum_b)) * r.sum()
    wanted_b = divided(abs(sum_b), abs(sum_a) + abs(sum_b)) * r.sum()
    return r_a * divided(wanted_a, sum_a), r_b * divided(wanted_b, sum_b)


def matmul_relevance(a: Array, b: Array, r: Array) -> tuple[Array, Array]:
    """Z = AB: R_A = ½ A ⊙ ((R⊘Z)Bᵀ), R_B = ½ B ⊙ (Aᵀ(R⊘Z)); a [s k], b [k c], r [s c]."""
    r_a, r_b = np.zeros_like(a), np.zeros_like(b)
    z = a @ b
    for s in range(r.shape[0]):
        for c in range(r.shape[1]):
            share = divided(r[s, c], z[s, c])
            r_a[s] += a[s] * b[:, c] * share
            r_b[:, c] += a[s] * b[:, c] * share
    return r_a / 2, r_b / 2


def mask_relevance(r: Array, syntactic: Array, positional: Array) -> Array:
    """The paper's mask at the heads' outputs r [h s c]; the masks [h] are 0/1.

    R_synt and R_pos are the parts of the heads in each set, a head in both counts half in each. Then
    R_synt·|ΣR_synt|/(|ΣR_synt|+|ΣR_pos|)·ΣR/ΣR_synt and likewise for R_pos: what comes out sums to ΣR again.
    So two disjoint sets that hold all heads are "no mask" only where their sums have one sign. If both sums are 0 the
    result is 0.
    """
    parts = [np.zeros_like(r), np.zeros_like(r)]
    for h in range(len(r)):
        of = [bool(syntactic[h]), bool(positional[h])]
        for part, member in zip(parts, of, strict=True):
            if member:
                part[h] = r[h] / sum(of)
    sums = [float(part.sum()) for part in parts]
    size = abs(sums[0]) + abs(sums[1])
    out = np.zeros_like(r)
    for part, total in zip(parts, sums, strict=True):
        out += part * divided(divided(abs(total), size) * r.sum(), total)
    return out


@dataclass(frozen=True)
class Relevance:
    """R at every cut of the model."""

    tokens: Array  # [t] at the embedding output, summed over d
    cuts: Array  # [l+1 t d] at the input of every block, and at the output of the last
    maps: Array  # [l h s t] at the attention weights, as a rollout reads them


@dataclass(frozen=True)
class Masked:
    """Which heads relevance may pass, and what happens to the rest."""

    syntactic: Array | None = None  # [l h] 0/1; None for both: no mask
    positional: Array | None = None
    variant: str = "paper"  # paper | released
    # how the residual takes all where a block has no head: identity | rescaled
    alone: str = "identity"

    def of(self, layer: int, heads: int) -> tuple[Array, Array] | None:
        if self.syntactic is None and self.positional is None:
            return None
        rows = [
            np.zeros(heads) if m is None else np.asarray(m)[layer]
            for m in (self.syntactic, self.positional)
        ]
        return rows[0], rows[1]


def relevance_of_heads(
    net: Net, w: BlockWeights, b: BlockRun, r_o: Array, masked: Masked, layer: int
) -> tuple[Array, Array]:
    """R at the projection o [s d] → R at what queries, keys and values read [t d], and R at the maps [h s t]."""
    arriving = apart(linear_relevance(b.joined, w.o.weight, r_o), net.heads)
    masks = masked.of(layer, net.heads)
    if masks is None:
        passed = arriving
    elif masked.variant == "paper":
        passed = mask_relevance(arriving, *masks)
    elif masked.variant == "released":
        either = np.maximum(masks[0], masks[1])
        passed = np.stack(
            [arriving[h] if either[h] else np.zeros_like(arriving[h]) for h in range(net.heads)]
        )
    else:
        raise ValueError(f"no variant {masked.variant!r}: paper or released")
    saved, r_q, r_k, r_v = (
        np.zeros_like(b.maps),
        np.zeros_like(b.q),
        np.zeros_like(b.k),
        np.zeros_like(b.v),
    )
    for h in range(net.heads):
        r_maps, r_v[h] = matmul_relevance(b.maps[h], b.v[h], passed[h])
        saved[h] = r_maps
        if masks is not None and masked.variant == "released":
            saved[h] = (
                2 * matmul_relevance(b.maps[h], b.v[h], arriving[h])[0]
            )  # before the mask, and not halved
        # softmax, adding the mask of what can't be seen, and /√c are the identity
        r_q[h], turned = matmul_relevance(b.q[h], b.k[h].T, r_maps)
        r_k[h] = turned.T
    r_read = np.zeros_like(b.read)
    for linear, part in ((w.q, r_q), (w.k, r_k), (w.v, r_v)):
        r_read += linear_relevance(b.read, linear.weight, together(part))
    return r_read, saved


def split_attention(
    b: BlockRun, r: Array, masked: Masked, layer: int, heads: int
) -> tuple[Array, Array]:
    """R at sum1 = o + x → R at o, R at x. A block without a head (paper): x takes all, o nothing."""
    r_o, r_x = add_relevance(b.o, b.x, r)
    masks = masked.of(layer, heads)
    if masks is not None and masked.variant == "paper" and not (masks[0].any() or masks[1].any()):
        if masked.alone == "identity":  # as if nothing had been added
            return np.zeros_like(r), r
        return np.zeros_like(r), r_x * divided(r.sum(), r_x.sum())
    return r_o, r_x


def relevance_of_block(
    net: Net, w: BlockWeights, b: BlockRun, r: Array, masked: Masked, layer: int
) -> tuple[Array, Array]:
    """R at y → R at x, R at the maps; norms and the activation are the identity, so both orders read the same.

    bert: y = norm(f + middle), middle = norm(o + x);  gpt2: y = f + middle, middle = o + x.
    """
    r_f, r_middle = add_relevance(b.f, b.middle, r)
    r_u = linear_relevance(b.g, w.down.weight, r_f)
    r_middle = r_middle + linear_relevance(b.read2, w.up.weight, r_u)
    r_o, r_x = split_attention(b, r_middle, masked, layer, net.heads)
    r_read, saved = relevance_of_heads(net, w, b, r_o, masked, layer)
    return r_x + r_read, saved


def relevance_of(found: Run, target: int, masked: Masked) -> Relevance:
    net = found.net
    r = np.zeros((1, len(found.logits)))
    r[0, target] = 1.0
    if net.kind == "bert":
        assert net.pooler is not None and found.pooled is not None
        r = linear_relevance(found.pooled[None], net.out.weight, r)
        r = linear_relevance(found.top[None], net.pooler.weight, r)
    else:
        r = linear_relevance(found.top[None], net.out.weight, r)
    cut = np.zeros_like(found.x0)
    cut[found.row] = r[0]
    cuts, maps = [cut], []
    for layer in reversed(range(len(net.blocks))):
        cut, saved = relevance_of_block(
            net, net.blocks[layer], found.blocks[layer], cut, masked, layer
        )
        cuts.insert(0, cut)
        maps.insert(0, saved)
    return Relevance(cuts[0].sum(-1), np.stack(cuts), np.stack(maps))


def relevance(
    hf: Any,
    ids: Sequence[int],
    target: int,
    *,
    syntactic: Array | None = None,
    positional: Array | None = None,
    variant: str = "paper",
    alone: str = "identity",
    types: Sequence[int] | None = None,
) -> Relevance:
    """LRP with α = 1, β = 0 from a one-hot of the target (value 1, not the logit) to the embedding output.

    Where methods.md leaves freedom:
    - biases, position and type embeddings, and the causal mask are constants added to a signal: they take no
      relevance, so R at the word embeddings is R at the embedding output. The Add rule sees the tensors as they are,
      with the biases inside.
    - multiplying by a constant, softmax, GELU, tanh and LayerNorm (gain and shift too) are the identity.
    - gpt2: Linear rule on Conv1D's transpose; one rule for q, k and v together is the sum of three.
    - safe division floors |b|, it does not add 1e-9 to b.
    - masks [l h] of 0/1 act at the heads' outputs, before maps · values.
      paper: `mask_relevance`; the maps are those of the masked relevance, halved; a block without a head gives
      everything to its residual, element by element (alone="identity") or scaled up (alone="rescaled").
      released: what is passed on is masked by either set, not renormalised; the maps are those of the relevance
      that arrived at this block's heads, unmasked and not halved.
    """
    return relevance_of(run(hf, ids, types), target, Masked(syntactic, positional, variant, alone))


def lrp(hf: Any, ids: Sequence[int], target: int, *, types: Sequence[int] | None = None) -> Array:
    """Σ_d R at the embedding output [t]."""
    return relevance(hf, ids, target, types=types).tokens


def partial_of(maps: Array) -> Array:
    """mean_h (R_A)⁺: [h s t] → [s t]"""
    return np.maximum(0, maps).mean(0)


def partial_lrp(
    hf: Any, ids: Sequence[int], target: int, *, types: Sequence[int] | None = None
) -> Array:
    """mean_h (R_A)⁺ of the last block, readout row [t]."""
    found = run(hf, ids, types)
    return partial_of(relevance_of(found, target, Masked()).maps[-1])[found.row]


def relevance_rollout(gradient: Array, maps: Array) -> Array:
    """Ā_b = rows to one(mean_h((∇A_b ⊙ R_b)⁺) + I);  Ā_L ··· Ā_1. [l h s t] → [s t]"""
    bars = [
        np.maximum(0, g * r).mean(0) + np.eye(r.shape[-1])
        for g, r in zip(gradient, maps, strict=True)
    ]
    return chain([rows_to_one(bar) for bar in bars])


def around_attention(gradient: Array, maps: Array) -> Array:
    """The path that takes the + I of every block: the product of what normalising leaves of them. [l h s t] → [s t]"""
    one = np.eye(maps.shape[-1])
    seen = [np.maximum(0, g * r).mean(0) for g, r in zip(gradient, maps, strict=True)]
    return chain([one / (s + one).sum(1, keepdims=True) for s in seen])


def transformer_attribution(
    hf: Any,
    ids: Sequence[int],
    target: int,
    *,
    value: str = "logit",
    types: Sequence[int] | None = None,
) -> Array:
    """Chefer 2021b without a mask, readout row [t]; ∇A of the target's logit (5.4)."""
    return masked_lrp(hf, ids, target, value=value, types=types)


def masked_lrp(
    hf: Any,
    ids: Sequence[int],
    target: int,
    *,
    syntactic: Array | None = None,
    positional: Array | None = None,
    variant: str = "paper",
    alone: str = "identity",
    value: str = "logit",
    types: Sequence[int] | None = None,
) -> Array:
    """P4: the rollout of ∇A ⊙ (masked relevance), less the path around all attention, readout row [t]."""
    found = run(hf, ids, types)
    maps = relevance_of(found, target, Masked(syntactic, positional, variant, alone)).maps
    gradient = multipliers(GRADIENT, found, target, value).maps
    return (relevance_rollout(gradient, maps) - around_attention(gradient, maps))[found.row]


# -- AttnLRP and CP-LRP (methods.md 6) -------------------------------------------------------------------


def token_relevance(
    rules: Rules, hf: Any, ids: Sequence[int], target: int, types: Sequence[int] | None = None
) -> Array:
    """Σ_d e_d·m_d at the word embeddings, from R = logit. [t]"""
    found = run(hf, ids, types)
    return (found.words * multipliers(rules, found, target).words).sum(-1)


def attnlrp(
    hf: Any, ids: Sequence[int], target: int, *, types: Sequence[int] | None = None
) -> Array:
    """Gradient × input with: std of norms constant, R(x) = R(g(x)), half to each factor of q·k and maps · values.

    Biases, shifts of norms, and position and type embeddings keep their share (ε-rule with ε = 0), so scores do not
    sum to the logit.
    """
    return token_relevance(ATTNLRP, hf, ids, target, types)


def cp_lrp(
    hf: Any,
    ids: Sequence[int],
    target: int,
    *,
    activation: str = "gradient",
    types: Sequence[int] | None = None,
) -> Array:
    """Gradient × input with attention weights and the std of norms constant, all else the plain gradient.

    activation="identity" treats GELU and tanh by R(x) = R(g(x)), as later code of this method does.
    """
    return token_relevance(
        {"gradient": CP_LRP, "identity": CP_LRP_IDENTITY}[activation], hf, ids, target, types
    )


# -- what values do --------------------------------------------------------------------------------------


def value_weighted_attention(
    hf: Any, ids: Sequence[int], *, heads: str = "each", types: Sequence[int] | None = None
) -> Array:
    """‖A_ij·(v_j W_O)‖₂ per head, summed over heads (methods.md): [l s t], rows not normalised.

    heads="joint" is the norm of the sum over heads (Kobayashi 2020). v_j holds the value bias; the output
    projection's bias belongs to no token.
    """
    found = run(hf, ids, types)
    net, t = found.net, len(found.words)
    out = np.zeros((len(net.blocks), t, t))
    for layer, (w, b) in enumerate(zip(net.blocks, found.blocks, strict=True)):
        width = b.v.shape[2]
        for i in range(t):
            for j in range(t):
                vectors = [
                    b.maps[h, i, j] * (w.o.weight[:, h * width : (h + 1) * width] @ b.v[h, j])
                    for h in range(net.heads)
                ]
                if heads == "each":
                    out[layer, i, j] = sum(np.linalg.norm(vector) for vector in vectors)
                else:
                    out[layer, i, j] = np.linalg.norm(sum(vectors))
    return out


def rolled(maps: Array, residual: bool) -> Array:
    """Rows to one, ½M + ½I if `residual`, multiplied like a rollout: [l s t] → [s t]"""
    rows = [rows_to_one(m) for m in maps]
    return chain([0.5 * m + 0.5 * np.eye(len(m)) if residual else m for m in rows])


def cosine_distance(a: Array, b: Array) -> float:
    """1 − cos(a, b); 0 for equal vectors, whatever rounding says."""
    if np.array_equal(a, b):
        return 0.0
    return max(0.0, 1 - float(a @ b) / (float(np.linalg.norm(a)) * float(np.linalg.norm(b))))


def value_zeroing(hf: Any, ids: Sequence[int], *, types: Sequence[int] | None = None) -> Array:
    """Mohebbi 2023: c_ij = 1 − cos(y_i, y_i where v_j = 0), rows to one: [l s t].

    In each block by itself: its input and its attention weights stay, the value vector of token j (with the bias) is 0
    in all heads, y is the block's output behind the feed-forward (and, in bert, behind the last norm). Where no token
    changes y_i the row stays 0.
    Rolled out without another identity, `rolled(maps, residual=False)`: y already holds the residual.
    """
    found = run(hf, ids, types)
    net, t = found.net, len(found.words)
    out = np.zeros((len(net.blocks), t, t))
    for layer, (w, b) in enumerate(zip(net.blocks, found.blocks, strict=True)):
        for j in range(t):
            v = b.v.copy()
            v[:, j] = 0
            changed = run_block(net, w, b.x, maps=b.maps, v=v)
            for i in range(t):
                if np.isfinite(b.scores[:, i, j]).any():
                    out[layer, i, j] = cosine_distance(b.y[i], changed.y[i])
        out[layer] = rows_to_one(out[layer])
    return out


def alti_parts(net: Net, w: BlockWeights, b: BlockRun) -> tuple[Array, Array]:
    """T_i(x_j) [s t d] and what belongs to no token [s d]: together they are the attention sub-block's output.

    z_ij = Σ_h A_ij W_O v_j + 1[i=j] x_i;  bert: T = (z − mean z)/σ_i·gain, σ_i of the actual sum;  gpt2: T = z.
    The value bias goes with the token (v_j holds it); the output projection's bias and the norm's shift with none.
    """
    t, d = b.x.shape
    width = b.v.shape[2]
    parts, rest = np.zeros((t, t, d)), np.zeros((t, d))

    def linear(i: int, z: Array) -> Array:
        if net.kind == "gpt2":
            return z
        centred = b.sum1[i] - b.sum1[i].mean()
        return (z - z.mean()) / math.sqrt((centred**2).mean() + w.first.eps) * w.first.gain

    for i in range(t):
        for j in range(t):
            z = np.zeros(d)
            for h in range(net.heads):
                z = z + b.maps[h, i, j] * (w.o.weight[:, h * width : (h + 1) * width] @ b.v[h, j])
            if i == j:
                z = z + b.x[i]
            parts[i, j] = linear(i, z)
        rest[i] = linear(i, w.o.bias) + (w.first.shift if net.kind == "bert" else 0)
    assert np.abs(parts.sum(1) + rest - b.middle).max() < 1e-9
    return parts, rest


def alti(hf: Any, ids: Sequence[int], *, types: Sequence[int] | None = None) -> Array:
    """Ferrando 2022: c_ij ∝ max(0, ‖y_i‖₁ − ‖y_i − T_i(x_j)‖₁), rows to one: [l s t]; y_i with all its biases.

    Multiply with `chain`. A row in which nothing is above 0 stays 0.
    """
    found = run(hf, ids, types)
    t = len(found.words)
    out = np.zeros((len(found.blocks), t, t))
    for layer, (w, b) in enumerate(zip(found.net.blocks, found.blocks, strict=True)):
        parts, _ = alti_parts(found.net, w, b)
        for i in range(t):
            for j in range(t):
                if np.isfinite(b.scores[:, i, j]).any():
                    y = b.middle[i]
                    out[layer, i, j] = max(
                        0.0, float(np.abs(y).sum() - np.abs(y - parts[i, j]).sum())
                    )
        out[layer] = rows_to_one(out[layer])
    return out


def alti_scores(hf: Any, ids: Sequence[int], *, types: Sequence[int] | None = None) -> Array:
    """The readout row of C_L ··· C_1 [t]."""
    return chain(list(alti(hf, ids, types=types)))[run(hf, ids, types).row]


# -- gradients and paths ---------------------------------------------------------------------------------


def gradient_norm(
    hf: Any,
    ids: Sequence[int],
    target: int,
    *,
    value: str = "logit",
    types: Sequence[int] | None = None,
) -> Array:
    """‖∂f/∂e_i‖₂ [t]."""
    return np.linalg.norm(gradients(hf, ids, target, value=value, types=types).words, axis=-1)


def input_x_gradient(
    hf: Any,
    ids: Sequence[int],
    target: int,
    *,
    value: str = "logit",
    positions: bool = False,
    types: Sequence[int] | None = None,
) -> Array:
    """⟨∂f/∂e_i, e_i⟩ [t], e the word embedding; `positions`: with position (and type) embedding added, as P0 does."""
    found = run(hf, ids, types)
    gradient = multipliers(GRADIENT, found, target, value).words
    e = found.words + found.constant if positions else found.words
    return (gradient * e).sum(-1)


def integrated_gradients(
    hf: Any,
    ids: Sequence[int],
    target: int,
    *,
    steps: int = 50,
    baseline: Array | None = None,
    quadrature: str = "midpoint",
    value: str = "logit",
    types: Sequence[int] | None = None,
) -> Array:
    """⟨e − e', mean_α ∂f(e' + α(e − e'))⟩ [t] over word embeddings; position embeddings stay; e' = 0 by default.

    midpoint: α = (k + ½)/N, k < N. ends: α = k/N, k ≤ N, mean of N+1 (as P0's code).
    """
    found = run(hf, ids, types)
    base = np.zeros_like(found.words) if baseline is None else np.asarray(baseline, float)
    if quadrature == "midpoint":
        path = [(k + 0.5) / steps for k in range(steps)]
    elif quadrature == "ends":
        path = [k / steps for k in range(steps + 1)]
    else:
        raise ValueError(f"no quadrature {quadrature!r}: midpoint or ends")
    mean = np.zeros_like(found.words)
    for alpha in path:
        there = run_words(found.net, base + alpha * (found.words - base), types)
        mean += multipliers(GRADIENT, there, target, value).words / len(path)
    return ((found.words - base) * mean).sum(-1)


def smooth_sigma(hf: Any, ids: Sequence[int], share: float = 0.15) -> float:
    """σ = 0.15·(max e − min e), over all numbers of this input's word embeddings."""
    words = weights_of(hf).words[list(map(int, ids))]
    return share * float(words.max() - words.min())


def smooth_grad(
    hf: Any,
    ids: Sequence[int],
    target: int,
    noise: Array,
    *,
    of: str = "gradient_norm",
    value: str = "logit",
    types: Sequence[int] | None = None,
) -> Array:
    """The mean over n of a gradient map at e + noise_n; noise [n t d], already scaled.

    gradient_norm: mean_n ‖g_n‖ [t].  input_x_gradient: mean_n ⟨g_n, e + noise_n⟩ [t].  gradient: mean_n g_n [t d].
    """
    found = run(hf, ids, types)
    maps = []
    for one in noise:
        there = run_words(found.net, found.words + one, types)
        g = multipliers(GRADIENT, there, target, value).words
        if of == "gradient_norm":
            maps.append(np.linalg.norm(g, axis=-1))
        elif of == "input_x_gradient":
            maps.append((g * there.words).sum(-1))
        elif of == "gradient":
            maps.append(g)
        else:
            raise ValueError(f"no map {of!r}: gradient_norm, input_x_gradient or gradient")
    return np.mean(maps, axis=0)


def deeplift_rescale(
    hf: Any,
    ids: Sequence[int],
    target: int,
    *,
    baseline: Array | None = None,
    value: str = "logit",
    types: Sequence[int] | None = None,
) -> Array:
    """Σ_d (e − e')·m [t], m by finite differences from the reference run on e' (default 0): sums to f(e) − f(e').

    Curves: Δg/Δx. Products: ab − a'b' = Δa·(b+b')/2 + Δb·(a+a')/2. Softmax and LayerNorm are taken apart into exp, sum,
    logarithm; mean, square, mean, 1/√, product. Not "linear at their output".
    """
    found = run(hf, ids, types)
    base = np.zeros_like(found.words) if baseline is None else np.asarray(baseline, float)
    reference = run_words(found.net, base, types)
    m = multipliers(DEEPLIFT, found, target, value, reference).words
    return ((found.words - base) * m).sum(-1)


# -- the oracle's own check ------------------------------------------------------------------------------


def main() -> None:
    from raison.testing.tiny import tiny_hf

    torch.set_num_threads(1)
    ids, masks = [1, 17, 60, 33, 90, 41, 2], np.array([[1, 0], [0, 1]])
    for family, task in (("bert", "classification"), ("gpt2", "causal")):
        hf, _ = tiny_hf(family, task)
        found = run(hf, ids)
        target = int(found.logits.argmax())
        rows = {
            "attention rows": np.abs(found.maps.sum(-1) - 1).max(),
            "two rollouts": np.abs(rollout_half(found.maps) - rollout_plus(found.maps)).max(),
            "LRP": np.abs(relevance(hf, ids, target).cuts.sum((1, 2)) - 1).max(),
            "LRP masked": np.abs(
                relevance(hf, ids, target, syntactic=masks).cuts.sum((1, 2)) - 1
            ).max(),
            "ALTI rows": np.abs(alti(hf, ids).sum(-1) - 1).max(),
        }
        empty = run_words(found.net, np.zeros_like(found.words))
        change = found.logits[target] - empty.logits[target]
        rows["DeepLIFT"] = abs(deeplift_rescale(hf, ids, target).sum() - change)
        print(family, *(f"{name} {float(gap):.1e}" for name, gap in rows.items()), sep="  ")
        assert all(gap < 1e-9 for gap in rows.values()), family
    print("all is well")


if __name__ == "__main__":
    main()
