"""Texts with what a model says about them, and every question of an audit about them."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from raison.api import explain
from raison.attention_models.adapter import Attentive, numbers
from raison.core import progress
from raison.core.errors import InputError
from raison.core.records import Encoding, Example
from raison.core.registry import datasets
from raison.datasets.open import open_dataset, parse_data_spec
from raison.metrics.attention import (
    information_of_states,
    kendall_defined,
    kendall_tau,
    normalised_entropy,
    permuted_attention,
    token_probability,
    uniform_attention,
)
from raison.models.float64 import COARSE
from raison.models.load import load
from raison.studies.audit.adversary import Adversary, trained_adversary
from raison.studies.audit.importance import (
    influence,
    real_tokens,
    shares,
    state_gradients,
    state_removals,
    states_of,
)
from raison.studies.audit.instance import FAR, instance_divergence
from raison.studies.audit.report import Shown, Spread
from raison.studies.audit.result_cache import Kept
from raison.training.class_data import lines_of
from raison.training.f1 import f1_of

__all__ = ["Looked", "shown", "train_part", "with_names"]

FACETED = 8  # texts whose influence is measured facet by facet as well, which costs as many passes as a state is wide
SHORT = 64  # tokens of such a text, if there are such: the passes of a longer one take minutes
WORDS = 1000  # word types whose states are clustered
PAIRS = 20_000  # embeddings with their states, at most


class Looked:
    """Texts with what the model says about them; every question is asked once."""

    def __init__(self, model: Any, examples: Sequence[Example], encodings: Sequence[Encoding], seed: int):
        self.model, self.examples, self.encodings, self.seed = model, examples, encodings, seed
        self.real = [real_tokens(encoding, model) for encoding in encodings]
        self.gold = np.array([model.labels.index(e.label) for e in examples])
        predictions = model.predict(encodings)
        self.said = np.array([p.target.ids[0] for p in predictions])
        self.sure = [p.value for p in predictions]
        self.notes: list[str] = []
        self._kept: dict[str, list[np.ndarray]] = {}

    def once(self, name: str, made: Callable[[], list[np.ndarray]]) -> list[np.ndarray]:
        if name not in self._kept:
            self._kept[name] = made()
        return self._kept[name]

    def mark(self) -> str:
        """The model and the texts, known by what it says of them."""
        made = hashlib.sha256()
        for encoding, said, sure in zip(self.encodings, self.said, self.sure, strict=True):
            made.update(np.asarray(encoding.ids, np.int64).tobytes())
            made.update(f"{said} {sure:.5f}".encode())
        made.update(self.gold.tobytes())
        return made.hexdigest()[:16]

    def accuracy(self, said: np.ndarray) -> float:
        return float((said == self.gold).mean())

    def f1(self, said: np.ndarray) -> float:
        """NaN where it is that of a class that no text has."""
        classes = len(self.model.labels)
        return float("nan") if classes == 2 and 1 not in self.gold else f1_of(said, self.gold, classes)

    def scores(self, method: str) -> list[np.ndarray]:
        """[n] sizes of a method's scores for the probability of the predicted class, token by token, as shares."""
        plain = [Example(e.text, e.pair) for e in self.examples]
        found = explain(self.model, plain, method=method, units="token", output="prob", truncate=True)
        rows = []
        for one, real in zip(found, self.real, strict=True):
            units = one.units.of[real]  # -1: no unit of its own, as the last token of a decoder, from which it reads
            rows.append(shares(np.append(np.asarray(one.scores), 0.0)[units]))
        return rows

    @property
    def attention(self) -> list[np.ndarray]:
        if isinstance(self.model, Attentive):
            own = self.model.own
            return self.once("attention", lambda: [w[r] for w, r in zip(own(self.encodings), self.real, strict=True)])
        return self.once("attention", lambda: self.scores("attention_last"))

    @property
    def gradient(self) -> list[np.ndarray]:
        return self.once("gradient", lambda: self.scores("gradient_norm"))

    @property
    def alone(self) -> list[np.ndarray]:
        """[t c] what each real word of a text says for itself: weighted by attention they are the logits."""

        def made() -> list[np.ndarray]:
            rows: list[Any] = [None] * len(self.encodings)
            for each in self.model.passes(self.encodings):
                logits = numbers(self.model.view.decoder(each.told.read))
                for row, owner in enumerate(each.owners):
                    rows[owner] = logits[row][self.real[owner]]
            return rows

        return self.once("alone", made)

    def replaced(self, permutations: int) -> dict[str, Any]:
        """Accuracy and F1 with uniform attention and with shuffled weights (the mean over so many shuffles)."""
        own = self.model.own(self.encodings)
        masks = [np.isin(np.arange(len(e)), real) for e, real in zip(self.encodings, self.real, strict=True)]
        rows = {"uniform": [[uniform_attention(mask) for mask in masks]]}
        rows["permuted"] = [
            [
                permuted_attention(weights, mask, seed=1 + self.seed + 100_003 * number + index)
                for index, (weights, mask) in enumerate(zip(own, masks, strict=True))
            ]
            for number in range(permutations)
        ]
        found: dict[str, Any] = {}
        for name, versions in rows.items():
            said = [
                np.array(
                    [  # of a text without words no attention can be replaced
                        (w[r] @ words).argmax() if len(r) else own
                        for w, r, words, own in zip(weights, self.real, self.alone, self.said, strict=True)
                    ]
                )
                for weights in versions
            ]
            accuracies, f1s = [self.accuracy(s) for s in said], [self.f1(s) for s in said]
            found[name] = {
                "accuracy": float(np.mean(accuracies)),
                "f1": float(np.mean(f1s)),
                "accuracy drop": self.accuracy(self.said) - float(np.mean(accuracies)),
                "f1 drop": self.f1(self.said) - float(np.mean(f1s)),
                "versions": len(versions),
            }
        return found

    def agreement(self) -> dict[str, Spread]:
        """τ-b of attention with the importance of words and, where they are attended to directly, of hidden states."""
        importance = {
            "gradient of words": self.gradient,
            "leaving words out": self.once("removed", lambda: self.scores("leave_one_out")),
        }
        if isinstance(self.model, Attentive):
            importance["gradient of states"] = state_gradients(self.model, self.encodings)
            importance["leaving states out"] = state_removals(self.model, self.encodings)
        found = {}
        for name, rows in importance.items():
            taus = [
                kendall_tau(a, b) if kendall_defined(a, b) else float("nan")
                for a, b in zip(self.attention, rows, strict=True)
            ]
            found[name] = Spread.of(taus, self.seed)
        return found

    def entropy(self) -> dict[str, Spread]:
        """Normalised entropies: of attention, of words' importance, of words' influence on hidden states."""
        whole_texts = lambda rows: [entropy_of(row) for row in rows]  # noqa: E731
        found = {
            "attention": whole_texts(self.attention),
            "gradient of words": whole_texts(self.gradient),
            "leaving words out": whole_texts(self.once("removed", lambda: self.scores("leave_one_out"))),
        }
        # behind a LayerNorm hidden states are nearly of one size: what moves it is lost in float32
        hf = copy.deepcopy(self.model.hf)
        precise = load((hf.cpu() if self.model.device.type in COARSE else hf).double(), self.model.tokenizer)
        influences = []
        for number, encoding in enumerate(self.encodings):
            influences.append(mean_entropy(influence(precise, encoding)))
            progress.report(number + 1, len(self.encodings), "influence of words on hidden states")
        found["influence"] = influences
        middle = chosen_short([len(each) for each in self.encodings]) if isinstance(self.model, Attentive) else []
        found["influence, by facet"] = [
            mean_entropy(influence(precise, self.encodings[k], facets=True)) for k in middle
        ]
        found["influence, same texts"] = [influences[k] for k in middle]
        return {name: Spread.of(values, self.seed) for name, values in found.items() if values}

    def token_probability(self) -> Spread:
        """The probability of the predicted class from each word alone; of texts that are classified correctly."""
        values = [
            token_probability(words, int(said)) if said == gold else float("nan")
            for words, said, gold in zip(self.alone, self.said, self.gold, strict=True)
        ]
        return Spread.of(values, self.seed)

    def instance(self) -> Spread:
        """The largest JSD of an attention that leaves the answer as it is; of texts whose attention can move far at
        all, which that of one word can't, nor flat attention over three."""
        found, most = instance_divergence(self.model, self.encodings, self.real, seed=self.seed)
        return Spread.of(np.where(most > FAR, found, np.nan).tolist(), self.seed)

    def information(self) -> dict[str, Any]:
        """Mutual information of embeddings and hidden states, of frequent words and of words drawn by count^¾."""
        ids, embedded, states = self.pairs()
        if not len(ids):
            return {}
        counts = np.bincount(ids)
        known = np.flatnonzero(counts)
        order = known[np.argsort(-counts[known], kind="stable")]
        rng = np.random.default_rng(self.seed)
        odds = counts[known] ** 0.75
        drawn = rng.choice(known, min(WORDS, len(known)), replace=False, p=odds / odds.sum())
        found: dict[str, Any] = {}
        for name, chosen in (("frequent words", order[:WORDS]), ("drawn words", drawn)):
            rows = np.flatnonzero(np.isin(ids, chosen))
            if len(rows) > PAIRS:
                rows = rng.choice(rows, PAIRS, replace=False)
            if len(rows) < 20:
                continue
            told = information_of_states(embedded[rows], states[rows], seed=self.seed)
            found[name] = asdict(told)
        return found

    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Word numbers [n], embeddings [n d] and hidden states [n d'] of all real tokens."""
        ids, embedded, states = [], [], []
        if isinstance(self.model, Attentive):
            for each in self.model.passes(self.encodings):
                told: Any = each.told
                for row, owner in enumerate(each.owners):
                    real = self.real[owner]
                    ids.append(self.encodings[owner].ids[real])
                    embedded.append(numbers(told.embeddings[row])[real])
                    states.append(numbers(told.read[row])[real])
        else:
            for encoding, real in zip(self.encodings, self.real, strict=True):
                last, leaf = states_of(self.model, encoding)
                ids.append(encoding.ids[real])
                embedded.append(numbers(leaf[0])[real])
                states.append(numbers(last[0])[real])
        return np.concatenate(ids).astype(int), np.concatenate(embedded), np.concatenate(states)

    def adversaries(
        self, train: Sequence[Example], kinds: Sequence[str], lambdas: Sequence[float], epochs: int, kept: Kept
    ) -> tuple[Adversary, ...]:
        """Adversaries that learn from the `train` texts."""
        parts = {"train": list(train), "test": list(self.examples)}
        lines = lines_of(parts, self.model.tokenizer, self.model.labels, self.model.hf.design.longest).parts
        found = []
        for number, (kind, lam) in enumerate([(kind, lam) for kind in kinds for lam in lambdas]):
            progress.report(number, len(kinds) * len(lambdas), f"adversary: {kind}, λ = {lam:g}")
            name = f"adversary-{kind}-{lam:g}"
            learn = partial(
                trained_adversary, self.model, lines["train"], lines["test"], kind=kind, lam=lam, epochs=epochs,
                seed=self.seed, folder=kept.place(name),
            )  # fmt: skip
            found.append(kept(name, learn))
        return tuple(found)

    def shown(self, count: int) -> tuple[Shown, ...]:
        """Texts word by word: the first of medium length, where there are such."""
        lengths = np.array([len(real) for real in self.real])
        able = sorted(range(len(lengths)), key=lambda k: not 6 <= lengths[k] <= 30)[:count]
        found = []
        for k in able:
            encoding, real = self.encodings[k], self.real[k]
            alone: tuple[float, ...] = ()
            if isinstance(self.model, Attentive):
                (each,) = self.model.passes([encoding])
                said = self.model.view.decoder(each.told.read).softmax(-1)[0, :, self.said[k]]
                alone = tuple(round(float(v), 4) for v in numbers(said)[real])
            found.append(
                Shown(
                    tuple(encoding.tokens[t] for t in real),
                    tuple(round(float(v), 4) for v in self.attention[k]),
                    alone,
                    tuple(round(float(v), 4) for v in self.gradient[k]),
                    self.model.labels[self.said[k]],
                    str(self.examples[k].label),
                )
            )
        return tuple(found)


def shown(model: Any, texts: Sequence[str], seed: int) -> tuple[Shown, ...]:
    """Texts of the user's own, which have no label."""
    if not texts:
        return ()
    examples = [Example(text, label=model.labels[0]) for text in texts]
    looked = Looked(model, examples, model.encode([Example(text) for text in texts], truncate=True), seed)
    return tuple(replace(each, label=each.predicted) for each in looked.shown(len(texts)))


def with_names(model: Any, examples: Sequence[Example]) -> list[Example]:
    """The examples with their labels as the model writes them (positive, POSITIVE)."""
    known = {str(e.label): model.labels[model.runner.task.label_id(str(e.label))] for e in examples}
    return [replace(e, label=known[str(e.label)]) for e in examples]


def train_part(model: Any, data: Any, train: Any, data_dir: Any, skip_broken: bool) -> list[Example]:
    """What adversaries learn from: the texts that are given for it, or the train part of the data set."""
    if train is not None and not isinstance(train, (str, os.PathLike)):
        found = list(train)
    else:
        named = data if train is None else os.fspath(train)
        name = parse_data_spec(named)[0] if isinstance(named, str) else ""
        able = name in datasets and "train" in datasets[name].splits
        if train is None and not able:
            raise InputError(
                "Adversaries learn from texts that the model was trained on: name a data set with a train part, or "
                "give them (--train)."
            )
        found = open_dataset(named, "train" if able else None, None, data_dir, skip_broken).examples
    if not found or any(e.label is None for e in found):
        raise InputError("Adversaries learn from labelled texts, and there are none, or some without a label.")
    return with_names(model, found)


def entropy_of(row: np.ndarray) -> float:
    """NaN where there is none: one word, or no importance at all."""
    return float(normalised_entropy(row)) if len(row) > 1 and row.any() else float("nan")


def mean_entropy(rows: np.ndarray) -> float:
    """The mean over hidden states."""
    values = [entropy_of(row) for row in rows]
    known = [v for v in values if np.isfinite(v)]
    return float(np.mean(known)) if known else float("nan")


def chosen_short(lengths: Sequence[int]) -> list[int]:
    """A few texts, neither the shortest nor long ones; where all are long, the shortest."""
    order = sorted(range(len(lengths)), key=lambda k: lengths[k])
    reach = sum(length <= SHORT for length in lengths)
    start = max(0, min(len(order) // 4, reach - FACETED))
    return order[start:reach][:FACETED] or order[:1]
