"""Other attention, the same answer: how far can the attention of one text move before its prediction does?

Jain & Wallace (2019) ask for

    max JSD(α, α')  over all attentions α' with  TVD(ŷ, ŷ') ≤ 0.05

and search for it by gradients from five random starts. Logits are Σ α_t (W r_t + b), so no pass of the model is needed,
and for two classes no search either: the answer depends on one number that is linear in α', so what is allowed is a
slice of the simplex; JSD is convex in α', so it is largest in a corner of that slice; and a corner has all attention on
one word, or on two words with the answer at the edge of what is allowed. n words have at most n² corners.

With more classes what is allowed has no such shape: the pairs of words are looked at on a grid, the search is theirs,

    min Σ_k [ −JSD(α, α_k) + 500 · relu(TVD(ŷ, ŷ_k) − 0.01) ] − mean over pairs of JSD(α_k, α_l)

and what is told is the largest that was found.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from raison.attention_models.adapter import AttentionModel, to_numpy
from raison.core import progress
from raison.core.records import Encoding
from raison.studies.audit.divergence import entropy, jsd, tvd
from raison.training.seeds import generator

__all__ = ["FAR", "instance_divergence"]

CLOSE = 0.05  # TVD up to which an answer is the same
FAR = 0.4  # JSD from which an attention is very different
STARTS = 5  # attentions that are searched for at once
STEPS = 500
POOL = 200  # texts that are searched at once
RATE = 0.01
PENALTY, SLACK = 500.0, 0.01
GRID = np.linspace(0, 1, 41)  # shares of the first of two words
ROOM = 1 << 22  # numbers of a grid at once


def instance_divergence(
    model: AttentionModel,
    encodings: Sequence[Encoding],
    real: Sequence[np.ndarray],
    *,
    seed: int = 0,
    steps: int = STEPS,
) -> tuple[np.ndarray, np.ndarray]:
    """[n] of each text the largest JSD of an attention that leaves its answer as it is, and [n] of any attention;
    `real` are the places of the words, which alone are attended to. 0 where there are none."""
    own: list[np.ndarray] = [np.zeros(0)] * len(encodings)
    words: list[np.ndarray] = [np.zeros((0, 2))] * len(encodings)
    for each in model.passes(encodings):
        told: Any = each.output
        with torch.no_grad():
            every = to_numpy(model.view.decoder(told.read)).astype(np.float64)  # [b t c] what each word says for itself
        weights = to_numpy(told.weights).astype(np.float64)
        for row, owner in enumerate(each.owners):
            own[owner], words[owner] = weights[row][real[owner]], every[row][real[owner]]
    there = [k for k in range(len(encodings)) if len(own[k])]
    found, most = np.zeros(len(encodings)), np.zeros(len(encodings))
    for start in range(0, len(there), POOL):
        some = there[start : start + POOL]
        if len(model.labels) == 2:
            found[some] = [corners(own[k], words[k][:, 1] - words[k][:, 0]) for k in some]
        else:
            drawn = [first(encodings[k], len(own[k]), seed) for k in some]
            by_search = searched([own[k] for k in some], [words[k] for k in some], drawn, steps)
            found[some] = np.maximum(by_search, [pairs(own[k], words[k]) for k in some])
        most[some] = [one_word(own[k]).max() for k in some]  # JSD is convex: nothing is farther than one word
        progress.report(start + len(some), len(encodings), "adversarial attention")
    return found, most


def first(encoding: Encoding, count: int, seed: int) -> torch.Tensor:
    """[k t] logits to start from; of the text alone, whatever others stand beside it."""
    random = generator(seed, zlib.crc32(np.asarray(encoding.ids, np.int64).tobytes()))
    return 3 * torch.randn(STARTS, count, generator=random, dtype=torch.float64)


def corners(own: np.ndarray, lean: np.ndarray) -> float:
    """Two classes: [t] how much each word leans to the second one."""
    said = 1 / (1 + np.exp(-(own @ lean)))
    edges = [logit(max(0.0, said - CLOSE)), logit(min(1.0, said + CLOSE))]
    inside = (lean >= edges[0]) & (lean <= edges[1])
    found = [0.0, *one_word(own)[inside]]
    apart = lean[:, None] - lean[None, :]
    for edge in edges:
        if np.isfinite(edge):
            first = lean[:, None] > lean[None, :]  # each pair once
            share = np.divide(edge - lean[None, :], apart, out=np.full_like(apart, -1.0), where=first)
            able = (share >= 0) & (share <= 1)
            found += two_words(own, np.where(able, share, 0.0))[able].tolist()
    return float(max(found))


def logit(share: float) -> float:
    with np.errstate(divide="ignore"):
        return float(np.log(share) - np.log1p(-share))


def parts(x: Any) -> Any:
    """−x ln x."""
    return -x * np.log(np.where(x > 0, x, 1.0))


def one_word(own: np.ndarray) -> np.ndarray:
    """[t] JSD of attention and all attention on one word."""
    half = own / 2
    found: np.ndarray = parts(half).sum() - parts(half) + parts(half + 0.5) - parts(own).sum() / 2
    return found


def two_words(own: np.ndarray, share: np.ndarray) -> np.ndarray:
    """[.. t t] JSD of attention and of attention on two words, of which the first has `share` [.. t t]."""
    half, here = own / 2, parts(own / 2)
    mixed = parts(half[:, None] + share / 2) + parts(half[None, :] + (1 - share) / 2)
    middle = here.sum() - here[:, None] - here[None, :] + mixed
    found: np.ndarray = middle - (parts(own).sum() + parts(share) + parts(1 - share)) / 2
    return found


def pairs(own: np.ndarray, words: np.ndarray) -> float:
    """The largest JSD on a grid between any two words, where the answer stays."""
    said = shares_of(own @ words)
    best = 0.0
    rows = max(1, ROOM // max(1, words.size * len(GRID)))
    for start in range(0, len(own), rows):
        some = words[start : start + rows]
        mixed = GRID[:, None, None, None] * some[None, :, None] + (1 - GRID[:, None, None, None]) * words[None, None]
        same = np.abs(shares_of(mixed) - said).sum(-1) / 2 <= CLOSE  # [g i j]
        which = np.arange(start, start + len(some))
        same &= which[None, :, None] != np.arange(len(own))[None, None, :]
        for number in np.flatnonzero(same.any((1, 2))):
            values = two_words(own, np.full((len(own), len(own)), GRID[number]))[which]
            best = max(best, float(values[same[number]].max()))
    return best


def shares_of(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    found: np.ndarray = raised / raised.sum(-1, keepdims=True)
    return found


def searched(
    owns: Sequence[np.ndarray], words: Sequence[np.ndarray], starts: Sequence[torch.Tensor], steps: int
) -> np.ndarray:
    """[b] by Jain & Wallace's search, all texts at once: a step for one costs as much as one for fifty."""
    with torch.inference_mode(False), torch.enable_grad():
        own = pad_sequence([torch.from_numpy(row) for row in owns], batch_first=True)[:, None]  # [b 1 t]
        heard = pad_sequence([torch.from_numpy(row) for row in words], batch_first=True)  # [b t c]
        hidden = torch.arange(own.shape[-1]) >= torch.tensor([len(row) for row in owns])[:, None]  # [b t]
        free = pad_sequence([start.T for start in starts], batch_first=True).transpose(1, 2).clone().requires_grad_()
        optimizer = torch.optim.Adam([free], lr=RATE, amsgrad=True)
        left, right = (list(side) for side in zip(*combinations(range(STARTS), 2), strict=True))
        said = (own @ heard).softmax(-1)  # [b 1 c]

        def moved() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            weights = free.masked_fill(hidden[:, None], -torch.inf).softmax(-1)  # [b k t]
            return weights, jsd(weights, own), tvd((weights @ heard).softmax(-1), said)

        for _ in range(steps):
            weights, apart, changed = moved()
            middle = entropy((weights[:, left] + weights[:, right]) / 2)
            between = (middle.mean(-1) - entropy(weights).mean(-1)).sum()  # each attention is in as many pairs
            loss = (PENALTY * (changed - SLACK).relu() - apart).sum() - between
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad():
            _, apart, changed = moved()
            best = torch.where(changed <= CLOSE, apart, torch.zeros_like(apart)).max(-1).values
    return np.asarray(best.numpy())
