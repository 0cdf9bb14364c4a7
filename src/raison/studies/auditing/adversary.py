"""Other attention, the same answer: how far can attention move before the prediction does?

For one text (Jain & Wallace 2019): K attentions, each a softmax of free logits, that differ from the model's own and
from each other while ŷ stays:

    min Σ_k [ −JSD(α, α_k) + 500 · relu(|ŷ − ŷ_k| − 0.01) ] − mean over pairs of JSD(α_k, α_l)

What is told is the largest JSD among those with |ŷ − ŷ_k| ≤ 0.05. Since logits = Σ α_t (W r_t + b), a step needs no
pass of the model. For a whole data set (Wiegreffe & Pinter 2019; P2 App. C): an adversary is trained with
TVD(ŷ, ŷ') − λ · JSD(α, α'); frozen: only its attention moves; unfrozen: a new model. TVD is that of all classes.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from raison import progress
from raison.selfexplaining.adapter import Attentive
from raison.selfexplaining.classifier import AttentionClassifier
from raison.selfexplaining.learning import fresh, measured
from raison.training.fit import Course, fit
from raison.training.labelled import Line, padded
from raison.training.material import Feed
from raison.training.seeds import generator
from raison.types import Encoding

__all__ = ["Adversary", "instance_divergence", "jsd", "trained_adversary", "tvd"]

KINDS = 5  # attentions for each text
STEPS = 500
POOL = 200  # texts searched at once
RATE = 0.01
CLOSE = 0.05  # |ŷ − ŷ_k| up to which an answer is the same
PENALTY, SLACK = 500.0, 0.01
TINY = 1e-30


def jsd(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """[..] Jensen-Shannon divergence in nats over the last axis; weights of 0 count as 0, and have finite slopes."""
    return entropy((first + second) / 2) - (entropy(first) + entropy(second)) / 2


def entropy(weights: torch.Tensor) -> torch.Tensor:
    return -(weights * weights.clamp(min=TINY).log()).sum(-1)


def tvd(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """[..] ½ Σ |p − q| over classes."""
    return (first - second).abs().sum(-1) / 2


def instance_divergence(
    model: Attentive, encodings: Sequence[Encoding], *, seed: int = 0, steps: int = STEPS, kinds: int = KINDS
) -> np.ndarray:
    """[n] of each text the largest JSD of an attention that leaves its answer as it is; 0 where none was found."""
    found = np.zeros(len(encodings))
    done = 0
    for pool in pooled(model.passes(encodings)):
        owners, parts = [], []
        for each in pool:
            told: Any = each.told
            with torch.no_grad():
                said = told.logits.softmax(-1).double()
                own = told.weights.double()
                words = model.view.decoder(told.read).double()  # [b t c] what each word says for itself
            random = generator(seed, len(each.owners), own.shape[1])
            start = 3 * torch.randn(len(own), own.shape[1], kinds, generator=random, dtype=torch.float64)
            owners += list(each.owners)
            parts.append((own, said, words, told.real, start))
        own, said, words, real, start = (side_by_side(tensors) for tensors in zip(*parts, strict=True))
        found[owners] = searched(own, said, words, real, start.transpose(1, 2), steps)
        done += len(owners)
        progress.report(done, len(encodings), "adversarial attention")
    return found


def pooled(passes: Iterable[Any]) -> Iterator[list[Any]]:
    """Passes together until they have enough texts: a step for one text costs as much as one for fifty."""
    waiting: list[Any] = []
    for each in passes:
        waiting.append(each)
        if sum(len(one.owners) for one in waiting) >= POOL:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def side_by_side(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """[b t ..] or [b c] of several passes in one, padded behind with zeros."""
    return pad_sequence([row for tensor in tensors for row in tensor], batch_first=True)


def searched(
    own: torch.Tensor, said: torch.Tensor, words: torch.Tensor, real: torch.Tensor, start: torch.Tensor, steps: int
) -> np.ndarray:
    """The search for a batch: attention [b t], answers [b c], words [b t c], free logits [b k t]."""
    with torch.inference_mode(False), torch.enable_grad():
        own, said, words, hidden = own.clone(), said.clone(), words.clone(), ~real.clone()[:, None, :]
        free = start.clone().requires_grad_()
        optimizer = torch.optim.Adam([free], lr=RATE, amsgrad=True)
        pairs = list(combinations(range(free.shape[1]), 2))
        left, right = ([pair[side] for pair in pairs] for side in (0, 1))
        settled = entropy(own)[:, None]

        def moved() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
            weights = free.masked_fill(hidden, -torch.inf).softmax(-1)
            answers = (weights @ words).softmax(-1)  # [b k c]
            alone = entropy(weights)  # once for all divergences in which an attention takes part
            apart = entropy((weights + own[:, None]) / 2) - (alone + settled) / 2
            return weights, alone, apart, tvd(answers, said[:, None])

        for _ in range(steps):
            weights, alone, apart, changed = moved()
            loss = (PENALTY * (changed - SLACK).relu() - apart).sum()
            if pairs:
                middle = entropy((weights[:, left] + weights[:, right]) / 2)
                loss = loss - (middle.mean(-1) - alone.mean(-1)).sum()  # each attention is in as many pairs
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            _, _, apart, changed = moved()
            best = torch.where(changed <= CLOSE, apart, torch.zeros_like(apart)).max(-1).values
    return np.asarray(best.numpy())


@dataclass(frozen=True)
class Adversary:
    """What a trained adversary reaches on texts that it was not trained on."""

    kind: str  # frozen or unfrozen
    lam: float
    jsd: float
    tvd: float
    accuracy: float
    f1: float


def trained_adversary(
    model: Attentive,
    train: Sequence[Line],
    test: Sequence[Line],
    *,
    kind: str,
    lam: float,
    epochs: int = 15,
    batch: int = 32,
    lr: float = 1e-3,
    seed: int = 0,
) -> Adversary:
    """Train an adversary on the base model's own answers and attention, and measure it on the test texts."""
    base: AttentionClassifier = model.hf
    if kind == "frozen":
        other = copy.deepcopy(base)
        # from the base's own attention nothing would ever move: JSD and TVD are both at rest there
        other.scorer = fresh(base.design, model.tokenizer, model.labels, base.words.weight.detach(), seed + 1).scorer
        moving = list(other.scorer.parameters())
    else:
        vectors = base.words.weight.detach().clone()
        other = fresh(base.design, model.tokenizer, model.labels, vectors, seed + 1)
        other.words.weight.requires_grad_(False)
        moving = [p for name, p in other.named_parameters() if name != "words.weight"]
    other.requires_grad_(False)
    for parameter in moving:
        parameter.requires_grad_()

    known = answers(base, train, states=kind == "frozen")

    def loss(learner: Any, lines: Sequence[Line], part: int) -> torch.Tensor:
        rows = zip(*(known[id(line)] for line in lines), strict=True)
        said, own, *states = (pad_sequence(list(row), batch_first=True) for row in rows)
        if kind == "frozen":  # its states are the base's
            logits, weights = reattended(learner, *states)
        else:
            ids, there, _ = padded(lines)
            mine = learner(ids, attention_mask=there)
            logits, weights = mine.logits, mine.weights
        return (tvd(logits.softmax(-1), said) - lam * jsd(weights, own)).mean()

    steps = epochs * (len(train) // batch)
    feed = Feed(train, batch, seed)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        course = Course(
            out=Path(folder),
            steps=steps,
            seed=seed,
            schedule="constant",
            warm=0.0,
            clip=5.0,
            decay=1e-5,
            save_every=1e9,
        )
        fit(other, [{"params": moving, "peak": lr}], feed, loss, course)
    apart, moved = compared(base, other, test)
    said = measured(other, test)
    return Adversary(kind, lam, apart, moved, said["accuracy"], said["f1"])


def reattended(model: AttentionClassifier, read: torch.Tensor, real: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits [b c] and attention [b t] of a model on states [b t d] that are already there."""
    weights = model.normalizer(model.scorer(read), real)
    return model.decoder((weights[:, None, :] @ read)[:, 0]), weights


@torch.no_grad()
def answers(
    base: Any, lines: Sequence[Line], batch: int = 256, states: bool = False
) -> dict[int, tuple[torch.Tensor, ...]]:
    """Line, by its identity -> the base's probabilities [c] and attention [t], and its `states` [t d] with the words
    [t] among them: asked once, not in every epoch."""
    found = {}
    order = sorted(lines, key=lambda line: len(line.ids))
    for start in range(0, len(order), batch):
        some = order[start : start + batch]
        ids, there, _ = padded(some)
        told = base(ids, attention_mask=there)
        rows = [told.weights, told.read, told.real] if states else [told.weights]
        for line, said, *every in zip(some, told.logits.softmax(-1), *rows, strict=True):
            found[id(line)] = (said, *(each[: len(line.ids)] for each in every))
    return found


@torch.inference_mode()
def compared(base: Any, other: Any, lines: Sequence[Line], batch: int = 256) -> tuple[float, float]:
    """Mean JSD of attentions and mean TVD of answers."""
    apart, moved = [], []
    for start in range(0, len(lines), batch):
        ids, there, _ = padded(lines[start : start + batch])
        one, two = base(ids, attention_mask=there), other(ids, attention_mask=there)
        apart.append(jsd(one.weights, two.weights))
        moved.append(tvd(one.logits.softmax(-1), two.logits.softmax(-1)))
    return float(torch.cat(apart).mean()), float(torch.cat(moved).mean())
