"""Models and questions on which methods that remove units are tried."""

from __future__ import annotations

import copy
import math
from itertools import combinations

import numpy as np
import torch

import raison
from raison.core.units import group_tokens
from raison.methods.base import Batch
from raison.models.protocol import Question, TargetSpec
from raison.testing import tiny_model

SAMPLERS = ["kernel_shap(samples=90)", "shapley_sampling(permutations=2)", "lime(samples=40)"]


REMOVERS = ["leave_one_out", "occlusion", *SAMPLERS]


TEXT = "The film is a lovely surprise, isn't it?"


WEIGHTS = {"good": 2.0, "bad": -3.0, "film": 0.5, "very": 0.25, "lovely": 1.5}


def bag(texts):
    """A linear bag of words: what a word is worth does not depend on the others."""
    return np.array([sum(WEIGHTS.get(word, 0.0) for word in text.split()) for text in texts])


def tangled(texts):
    """Words that act together, with no pattern that a method could profit from."""
    rows = []
    for text in texts:
        there = text.split()
        worth = sum(WEIGHTS.get(word, 0.1) for word in there)
        pairs = sum(
            math.sin(7 * len(a) + 3 * len(b) + ord(a[0]) * ord(b[-1]))
            for a, b in combinations(there, 2)
        )
        rows.append(math.tanh(worth / 2) * 3 + 0.3 * pairs)
    return np.array(rows)


def questioned(model, text, level="word", target_spec=None):
    """One text as a batch, and a slow way to ask about a set of its units: one by one."""
    encoding = model.encode([raison.Example(text) if isinstance(text, str) else text])[0]
    encoding, target = model.resolve_targets(encoding, target_spec or TargetSpec())[0]
    units = group_tokens(encoding, level, target.free(encoding))

    def worth(chosen) -> float:
        keep = np.array([u < 0 or u in chosen for u in units.of])
        return float(model.score([Question(encoding, target, keep[None])])[0].value.sum())

    return Batch([encoding], [target], [units]), units, worth


def shapley_values(size, worth) -> np.ndarray:
    """The definition: what a unit adds to each set of others, weighed by how often the set comes first."""
    known = {s: worth(s) for k in range(size + 1) for s in combinations(range(size), k)}
    values = np.zeros(size)
    for unit in range(size):
        others = [u for u in range(size) if u != unit]
        for k in range(size):
            weight = math.factorial(k) * math.factorial(size - 1 - k) / math.factorial(size)
            for before in combinations(others, k):
                after = tuple(sorted((*before, unit)))
                values[unit] += weight * (known[after] - known[before])
    return values


KINDS = {
    "classifier": ("bert", "classification"),
    "causal": ("gpt2", "causal"),
    "windowed": ("mistral", "causal"),
    "writer": ("marian", "seq2seq"),
    "tagger": ("modernbert", "tagging"),
    "function": (),
}


loaded = {}


def model_of(kind):
    """A tiny model, loaded once; a copy, whose settings a test may change."""
    if kind not in loaded:
        loaded[kind] = tiny_model(*KINDS[kind]) if KINDS[kind] else raison.load(tangled)
    return copy.copy(loaded[kind])


def vectors(model, text, target_spec=None):
    """What Captum explains: a function of keep-vectors [n u], and the batch that is the same for raison."""
    batch, units, _ = questioned(model, text, target_spec=target_spec)

    def forward(z):
        keep = units.keep(z.detach().numpy() > 0.5)
        scored = model.score([Question(batch.encodings[0], batch.targets[0], keep)])[0]
        return torch.from_numpy(scored.value.sum(-1))

    return batch, forward, torch.ones(1, len(units), dtype=torch.float64)
