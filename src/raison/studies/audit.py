"""Can the attention of a classifier be read as an explanation? The tests of the literature in one report (P2, P3)."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from raison import progress
from raison.api import explain
from raison.datasets.base import DEVELOPMENT
from raison.datasets.opening import open_dataset, parted
from raison.errors import InputError, Unsupported
from raison.metrics.attention import (
    information_of_states,
    kendall_defined,
    kendall_tau,
    normalised_entropy,
    permuted_attention,
    token_probability,
    uniform_attention,
)
from raison.metrics.statistics import mean_interval
from raison.models.load import load
from raison.registry import datasets
from raison.selfexplaining.adapter import Attentive, numbers
from raison.selfexplaining.learning import f1_of, lines_of
from raison.spec import whole
from raison.studies.auditing.adversary import Adversary, instance_divergence, trained_adversary
from raison.studies.auditing.importance import influence, real_tokens, shares, state_gradients, state_removals
from raison.types import Encoding, Example

__all__ = ["Audit", "Shown", "Spread", "audit"]

FACETED = 8  # texts whose influence is measured facet by facet as well, which costs as many passes as a state is wide
WORDS = 1000  # word types whose states are clustered
PAIRS = 20_000  # embeddings with their states, at most


@dataclass(frozen=True)
class Spread:
    """A number of every text: mean with its interval, deviation, and how many texts it is not defined for."""

    mean: float
    low: float
    high: float
    deviation: float
    count: int
    left_out: int
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Sequence[float], seed: int) -> Spread:
        every = np.asarray(values, np.float64)
        kept = every[np.isfinite(every)]
        if not len(kept):
            return cls(float("nan"), float("nan"), float("nan"), float("nan"), 0, len(every))
        found = mean_interval(kept, seed=seed)
        spread = float(kept.std(ddof=1)) if len(kept) > 1 else float("nan")
        shown = tuple(round(float(v), 6) for v in kept)
        return cls(
            float(found.estimate), float(found.low), float(found.high), spread, len(kept), len(every) - len(kept), shown
        )


@dataclass(frozen=True)
class Shown:
    """A text with what each of its words gets and says."""

    tokens: tuple[str, ...]
    attention: tuple[float, ...]
    probability: tuple[float, ...]  # of the predicted class, from this word alone; empty where that is not defined
    gradient: tuple[float, ...]
    predicted: str
    label: str


@dataclass(frozen=True)
class Audit:
    """What was found; numbers that are not defined for a model are not there."""

    model: str
    data: str
    count: int
    accuracy: float
    f1: float
    replaced: dict[str, Any] = field(default_factory=dict)  # uniform, permuted: accuracy, f1 and how far they fall
    agreement: dict[str, Spread] = field(default_factory=dict)  # τ-b of attention with importance
    entropy: dict[str, Spread] = field(default_factory=dict)
    token_probability: Spread | None = None
    information: dict[str, Any] = field(default_factory=dict)
    instance: Spread | None = None  # the largest JSD of an attention with the same answer
    adversaries: tuple[Adversary, ...] = ()
    texts: tuple[Shown, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps(known({**asdict(self), "verdict": self.verdict()}), indent=1, ensure_ascii=False)

    # -- the verdict --------------------------------------------------------------------------------

    def verdict(self) -> list[str]:
        """What the numbers say, in sentences; the last one answers the question."""
        said, signs = [], []
        if "permuted" in self.replaced:
            drop = self.replaced["permuted"]["f1 drop"]
            strong, weak = drop >= 0.05, drop < 0.02
            how = "depend" if strong else "hardly depend" if weak else "depend somewhat"
            said.append(
                f"With its attention weights shuffled among the words F1 falls by {100 * drop:.1f} points: answers "
                f"{how} on where attention looks."
            )
            signs.append(strong - weak)
        if "gradient of words" in self.agreement and self.agreement["gradient of words"].count:
            tau = self.agreement["gradient of words"].mean
            how = "agrees with" if tau >= 0.5 else "has little to do with" if tau < 0.25 else "agrees in part with"
            said.append(f"Attention {how} the words' importance by gradients (mean τ-b {tau:.2f}).")
            signs.append(int(tau >= 0.5) - int(tau < 0.25))
        if "influence" in self.entropy and self.entropy["influence"].count:
            spread = self.entropy["influence"].mean
            how = (
                "mixes many words"
                if spread >= 0.7
                else "belongs to a few words"
                if spread < 0.4
                else "mixes some words"
            )
            said.append(f"A hidden state {how} (entropy of influence {spread:.2f}, where 1 is all alike).")
            signs.append(int(spread < 0.4) - int(spread >= 0.7))
        if self.instance is not None:
            far = float(np.mean(np.array(self.instance.values) > 0.4))
            said.append(
                f"For {far:.0%} of the texts there is an attention that is very different (JSD above 0.4 of at most "
                "0.69) and gives the same answer."
            )
            signs.append(int(far < 0.2) - int(far > 0.5))
        if not signs:
            return [*said, "Too little is defined for this model to say whether its attention explains it."]
        total = sum(signs)
        if total >= 2 and min(signs) >= 0:
            last = "Its attention can be read as an explanation of its answers."
        elif total <= 0:
            last = "Its attention should not be read as an explanation of its answers."
        else:
            last = "Its attention can be read as an explanation with care only: not all tests agree."
        return [*said, last]


def audit(
    model: Any,
    data: Any,
    *,
    split: str | None = None,
    limit: int | None = None,
    deep: int | None = None,
    data_dir: Any = None,
    permutations: int = 10,
    show: int = 6,
    texts: Sequence[str] = (),
    adversaries: Sequence[str] = (),
    lambdas: Sequence[float] = (1.0,),
    epochs: int = 15,
    seed: int = 0,
) -> Audit:
    """Every diagnostic that is defined for the model, on labelled texts.

    Of a Hugging Face encoder attention is that of its last layer, from the row that is read, and what needs one
    attention over words (replaced attention, hidden states, words alone, adversaries) is not defined. Importance,
    influence and adversaries of single texts are measured on `deep` of the texts, drawn by the seed. `show` of them,
    and all `texts`, are shown word by word. `adversaries` (frozen, unfrozen) are trained on the data set's train part,
    once for each of the `lambdas`.
    """
    whole("permutations", permutations, 1)
    whole("seed", seed, 0)
    if deep is not None:
        whole("deep", deep, 1)
    if bad := [lam for lam in lambdas if not 0 <= lam < float("inf")]:
        raise InputError(f"λ of an adversary is a number from 0 up, not {bad[0]}.")
    opened = load(model)
    if opened.task != "classification" or not hasattr(opened, "hf"):
        raise Unsupported(f"{opened.name} is no text classifier with an inside: an audit is about classifiers.")
    if not {"own", "attention"} & opened.offers:
        raise Unsupported(f"{opened.name} has no attention that could be audited.")
    if adversaries and not isinstance(opened, Attentive):
        raise Unsupported(
            "Adversaries are trained for raison's own attention classifiers: see raison train classifier."
        )
    data = os.fspath(data) if isinstance(data, os.PathLike) else data
    if wrong := [kind for kind in adversaries if kind not in ("frozen", "unfrozen")]:
        raise InputError(f"An adversary is frozen or unfrozen, not {wrong[0]!r}.")
    if adversaries:
        train_part(data)  # said before the long work
    examples = labelled(data, split, limit, data_dir)
    check_labels(opened, examples)
    encodings = opened.encode([Example(e.text, e.pair) for e in examples], truncate=True)
    every = Looked(opened, examples, encodings, seed)
    few = sorted(np.random.default_rng([seed, 3]).permutation(len(examples))[:deep].tolist())
    looked = Looked(opened, [examples[k] for k in few], [encodings[k] for k in few], seed)
    cut = sum(opened.limit is not None and len(encoding) >= opened.limit for encoding in encodings)
    if cut:
        looked.notes.append(f"{cut} texts are as long as the model reads, or were cut to that.")
    if len(few) < len(examples):
        looked.notes.append(f"Importance, influence and single adversaries: {len(few)} of {len(examples)} texts.")
    own = isinstance(opened, Attentive)
    return Audit(
        model=opened.name,
        data=str(data) if isinstance(data, str) else "texts in memory",
        count=len(examples),
        accuracy=every.accuracy(every.said),
        f1=f1_of(every.said, every.gold, len(opened.labels)),
        replaced=every.replaced(permutations) if own else {},
        agreement=looked.agreement(),
        entropy=looked.entropy(),
        token_probability=every.token_probability() if own else None,
        information=(every if own else looked).information(),
        instance=looked.instance() if own else None,
        adversaries=every.adversaries(data, data_dir, adversaries, lambdas, epochs) if adversaries else (),
        texts=(*shown(opened, texts, seed), *looked.shown(show)),
        notes=tuple(looked.notes),
    )


def train_part(data: Any) -> str:
    """The data set whose train part adversaries learn from."""
    name = parted(data)[0] if isinstance(data, str) else ""
    if name not in datasets or "train" not in datasets[name].splits:
        raise InputError("Adversaries are trained on the train part of a data set: name one that has it.")
    return str(data)


def labelled(data: Any, split: str | None, limit: int | None, data_dir: Any) -> list[Example]:
    if isinstance(data, str):
        name, _ = parted(data)
        if split is None and name in datasets:
            split = next((s for s in ("test", *DEVELOPMENT) if s in datasets[name].splits), None)
        found = open_dataset(data, split, limit, data_dir).examples
    else:
        found = list(data)[:limit]
    if not found:
        raise InputError("There are no texts to audit the model on.")
    if missing := sum(e.label is None for e in found):
        raise InputError(
            f"{missing} texts have no label, which an audit needs: name their column, as in (label=stars)."
        )
    return found


def check_labels(model: Any, examples: Sequence[Example]) -> None:
    strange = sorted({str(e.label) for e in examples} - set(model.labels))
    if strange:
        raise InputError(
            f"The texts have the label {strange[0]!r}, which {model.name} does not know: it has "
            f"{', '.join(model.labels)}."
        )


class Looked:
    """Texts with what the model says about them; every question is asked once."""

    def __init__(self, model: Any, examples: Sequence[Example], encodings: Sequence[Encoding], seed: int):
        self.model, self.examples, self.encodings, self.seed = model, examples, encodings, seed
        self.real = [real_tokens(encoding, model) for encoding in encodings]
        self.gold = np.array([model.labels.index(str(e.label)) for e in examples])
        self.said = np.array([p.target.ids[0] for p in model.predict(encodings)])
        self.notes: list[str] = []
        self._kept: dict[str, list[np.ndarray]] = {}

    def once(self, name: str, made: Callable[[], list[np.ndarray]]) -> list[np.ndarray]:
        if name not in self._kept:
            self._kept[name] = made()
        return self._kept[name]

    def accuracy(self, said: np.ndarray) -> float:
        return float((said == self.gold).mean())

    def scores(self, method: str) -> list[np.ndarray]:
        """[n] sizes of a method's scores for the probability of the predicted class, token by token, as shares."""
        plain = [Example(e.text, e.pair) for e in self.examples]
        found = explain(self.model, plain, method=method, units="token", output="prob", truncate=True)
        rows = []
        for one, encoding, real in zip(found, self.encodings, self.real, strict=True):
            free = np.flatnonzero(encoding.start >= 0)  # the axis of token units; somebody may have typed [SEP]
            rows.append(shares(np.asarray(one.scores)[np.isin(free, real)]))
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
            said = [self.model.answers(self.encodings, weights).argmax(-1) for weights in versions]
            accuracies, f1s = (
                [self.accuracy(s) for s in said],
                [f1_of(s, self.gold, len(self.model.labels)) for s in said],
            )
            found[name] = {
                "accuracy": float(np.mean(accuracies)),
                "f1": float(np.mean(f1s)),
                "accuracy drop": self.accuracy(self.said) - float(np.mean(accuracies)),
                "f1 drop": f1_of(self.said, self.gold, len(self.model.labels)) - float(np.mean(f1s)),
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
        precise = load(copy.deepcopy(self.model.hf).double(), self.model.tokenizer)
        influences = []
        for number, encoding in enumerate(self.encodings):
            influences.append(mean_entropy(influence(precise, encoding)))
            progress.report(number + 1, len(self.encodings), "influence of words on hidden states")
        found["influence"] = influences
        short = sorted(range(len(self.encodings)), key=lambda k: len(self.encodings[k]))
        middle = short[len(short) // 4 :][:FACETED] if isinstance(self.model, Attentive) else []
        found["influence, by facet"] = [
            mean_entropy(influence(precise, self.encodings[k], facets=True)) for k in middle
        ]
        found["influence, same texts"] = [influences[k] for k in middle]
        return {name: Spread.of(values, self.seed) for name, values in found.items() if values}

    def token_probability(self) -> Spread:
        """The probability of the predicted class from each word alone; of texts that are classified correctly."""
        values = [float("nan")] * len(self.encodings)
        for each in self.model.passes(self.encodings):
            logits = numbers(self.model.view.decoder(each.told.read))
            for row, owner in enumerate(each.owners):
                if self.said[owner] == self.gold[owner]:
                    values[owner] = token_probability(logits[row][self.real[owner]], int(self.said[owner]))
        return Spread.of(values, self.seed)

    def instance(self) -> Spread:
        """The largest JSD of an attention that leaves the answer as it is; not defined for fewer than two words."""
        found = instance_divergence(self.model, self.encodings, seed=self.seed)
        able = np.array([len(real) > 1 for real in self.real])
        return Spread.of(np.where(able, found, np.nan).tolist(), self.seed)

    def information(self) -> dict[str, Any]:
        """Mutual information of embeddings and hidden states, of frequent words and of words drawn by count^¾."""
        ids, embedded, states = self.pairs()
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
        from raison.studies.auditing.importance import states_of

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
                last, leaf = states_of(self.model, encoding, 1)
                ids.append(encoding.ids[real])
                embedded.append(numbers(leaf[0])[real])
                states.append(numbers(last[0])[real])
        return np.concatenate(ids).astype(int), np.concatenate(embedded), np.concatenate(states)

    def adversaries(
        self, data: Any, data_dir: Any, kinds: Sequence[str], lambdas: Sequence[float], epochs: int
    ) -> tuple[Adversary, ...]:
        """Trained adversaries, on the train part of the same data set."""
        parts = {"train": open_dataset(train_part(data), "train", None, data_dir).examples, "test": list(self.examples)}
        lines = lines_of(parts, self.model.tokenizer, self.model.labels, self.model.hf.design.longest).parts
        found = []
        for number, (kind, lam) in enumerate([(kind, lam) for kind in kinds for lam in lambdas]):
            progress.report(number, len(kinds) * len(lambdas), f"adversary: {kind}, λ = {lam:g}")
            found.append(
                trained_adversary(
                    self.model, lines["train"], lines["test"], kind=kind, lam=lam, epochs=epochs, seed=self.seed
                )
            )
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


def known(value: Any) -> Any:
    """What JSON can hold: a number that is not defined is null."""
    if isinstance(value, dict):
        return {key: known(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [known(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def entropy_of(row: np.ndarray) -> float:
    """NaN where there is none: one word, or no importance at all."""
    return float(normalised_entropy(row)) if len(row) > 1 and row.any() else float("nan")


def mean_entropy(rows: np.ndarray) -> float:
    """The mean over hidden states."""
    values = [entropy_of(row) for row in rows]
    known = [v for v in values if np.isfinite(v)]
    return float(np.mean(known)) if known else float("nan")
