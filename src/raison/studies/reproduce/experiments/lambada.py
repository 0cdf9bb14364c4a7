"""Rationales of LAMBADA's last words beside those that people marked (P0, Table 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import Column, EvaluatedText, Evaluation
from raison.core.records import Encoding, Example, Target
from raison.datasets.open import open_dataset
from raison.metrics.base import Share
from raison.models.protocol import Model, Question, TargetSpec
from raison.studies.reproduce.experiment import Number, Trial, experiment, found
from raison.studies.reproduce.experiments.searched import Aim, Rationale, check_task, searched, setting, summed

__all__ = ["Passage", "gold_tokens", "lambada", "own_tokens", "pieces_of"]

COLUMNS = (
    Column("length", "tokens of the rationale, those of the target left out", False),
    Column("iou", "|S ∩ G| / |S ∪ G| of tokens, the mean over passages", True),
    Column("f1", "2 |S ∩ G| / (|S| + |G|) of tokens, pooled over passages", True, True),
    Column("reached", "the rationale is enough, for every token of the target", True),
)
FIRST = 20  # tokens of a method's ranking, at most
CURVES = ("iou_at_k_curve", "f1_at_k_curve")


@dataclass(frozen=True)
class Passage:
    """A passage, an aim for each token of its last word, and the tokens that people marked."""

    example: Example
    aims: tuple[Aim, ...]
    gold: frozenset[int]

    @property
    def begins(self) -> int:
        """Where the last word begins: what is there or later is no part of a rationale."""
        return self.aims[0].target.positions[0]

    def united(self, sets: Sequence[Sequence[int]]) -> set[int]:
        """What the rationales of the word's tokens have before the word."""
        return {t for each in sets for t in each if t < self.begins}

    def overlap(self, chosen: set[int]) -> tuple[float, Share]:
        """IOU, and the parts of F1."""
        both = len(chosen & self.gold)
        return both / len(chosen | self.gold), Share(2 * both, len(chosen) + len(self.gold))

    def numbers(self, rationales: Sequence[Rationale]) -> dict[str, Number]:
        chosen = self.united([each.order for each in rationales])
        iou, f1 = self.overlap(chosen)
        reached = all(each.reached for each in rationales)
        return {"length": float(len(chosen)), "iou": iou, "f1": f1, "reached": float(reached)}


@experiment("lambada")
def lambada(trial: Trial) -> Evaluation:
    """Rationales of the last words of annotated passages: length, IOU and F1 against what people marked.

    The setting `own` says which passages: those whose last word is the model's own choice, token by token (true), or
    the others (false). A word of several tokens has the union of their rationales. The curves tell IOU and F1 of each
    method's first k tokens, k = 1 … 20, the previous token being the first; a search that has fewer gives all of them.
    """
    check_task(trial, "causal", "a causal language model")
    own = setting(trial, "own", True)
    passages, told = passages_of(trial, own)
    aims = [aim for passage in passages for aim in passage.aims]
    numbers, costs = {}, {}
    curves: dict[str, dict[str, list[float]]] = {key: {} for key in CURVES}
    for title, spec in trial.methods.items():
        made, spent = searched(trial, title, spec, aims, first=FIRST)
        rest = iter(made)
        by_passage = [[next(rest) for _ in passage.aims] for passage in passages]
        numbers[title] = [passage.numbers(each) for passage, each in zip(passages, by_passage, strict=True)]
        for key, curve in along(passages, by_passage).items():
            curves[key][title] = curve
        costs[title] = summed(spent, len(passages))
    evaluation = found(trial, COLUMNS, numbers, data="lambada_rationales", about=[told])
    seen = tuple(
        EvaluatedText(each.example.id, each.example.text, target=str(each.example.target)) for each in passages
    )
    return replace(evaluation, curves=curves, costs=costs, texts=seen)


def passages_of(trial: Trial, own: bool) -> tuple[list[Passage], str]:
    """The first passages whose last word is (or is not) what the model would write, and how many there are."""
    read = open_dataset("lambada_rationales", data=trial.data_dir).examples
    chosen: list[Passage] = []
    count = 0
    for number, example in enumerate(read):
        trial.step(f"{trial.run.name}: passage {number} of {len(read)}")
        passage, hers = looked_at(trial.model, example)
        count += hers
        if hers == own and len(chosen) < trial.count:
            chosen.append(passage)
    if not chosen:
        raise InputError(f"{trial.model.name} writes {'none' if own else 'all'} of the last words: nothing is left.")
    share = f"{count} of {len(read)} passages ({count / len(read):.0%})"
    which = "such" if own else "other"
    told = f"The last word is the model's own choice in {share}; these are {len(chosen)} {which} passages."
    return chosen, told


def looked_at(model: Model, example: Example) -> tuple[Passage, bool]:
    """A passage, and whether every token of its last word is the model's first choice."""
    (encoding,) = model.encode([example])
    ((longer, target),) = model.resolve_targets(encoding, TargetSpec(target=example.target, output="log_prob"))
    aims = tuple(Aim(longer, piece) for piece in pieces_of(target, longer))
    return Passage(example, aims, gold_tokens(encoding, example)), bool(own_tokens(model, longer, target).all())


def own_tokens(model: Model, encoding: Encoding, target: Target) -> np.ndarray:
    """[m] whether each token of a target is the model's first choice after the text and the target's tokens before."""
    (scored,) = model.score([Question(encoding, target, np.ones((1, len(encoding)), bool))])
    return np.asarray(scored.margin[0] > 0)


def pieces_of(target: Target, encoding: Encoding) -> list[Target]:
    """Every token of a written target as a target of its own."""
    return [
        Target("token", (token,), (position,), encoding.tokens[position], target.output)
        for token, position in zip(target.ids, target.positions, strict=True)
    ]


def gold_tokens(encoding: Encoding, example: Example) -> frozenset[int]:
    """Tokens that end in a marked span: start < end of the token ≤ end (P0's rule)."""
    ends = encoding.end
    marked = [t for t in range(len(encoding)) if any(span.start < ends[t] <= span.end for span in example.gold)]
    return frozenset(marked)


def along(passages: Sequence[Passage], made: Sequence[Sequence[Rationale]]) -> Mapping[str, list[float]]:
    """IOU (mean) and F1 (pooled) of the first k tokens, k = 1 … FIRST."""
    ious, f1s = [], []
    for k in range(1, FIRST + 1):
        pairs = [
            passage.overlap(passage.united([each.ranking[:k] for each in rationales]))
            for passage, rationales in zip(passages, made, strict=True)
        ]
        ious.append(float(np.mean([iou for iou, _ in pairs])))
        f1s.append(sum(f1.part for _, f1 in pairs) / sum(f1.whole for _, f1 in pairs))
    return dict(zip(CURVES, (ious, f1s), strict=True))
