"""Experiment: rationales of LAMBADA's last words beside those that people marked (P0, Table 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import EvaluatedText, Evaluation
from raison.core.records import Encoding, Example
from raison.datasets.open import open_dataset
from raison.metrics.base import Share
from raison.models.protocol import Model, TargetSpec
from raison.studies.reproduce.experiment import (
    ResultRow,
    Trial,
    check_task_of_trial,
    evaluation_of_rows,
    experiment,
    experiment_column,
    setting_of_trial,
)
from raison.studies.reproduce.target_rationales import (
    TargetInText,
    TargetRationale,
    find_rationales_of_targets,
    target_is_own_token,
    token_targets,
)

__all__ = [
    "GoldOverlap",
    "LambadaPassage",
    "LambadaRow",
    "gold_tokens_of_lambada",
    "lambada_overlap_along_rankings",
    "lambada_rationales",
]

FIRST = 20  # tokens of a method's ranking, at most


@dataclass(frozen=True)
class LambadaRow(ResultRow):
    """The numbers of one passage."""

    length: float = experiment_column(
        "tokens of the rationale, those of the target left out", higher=False
    )
    iou: float = experiment_column(
        "|S ∩ G| / |S ∪ G| of tokens, the mean over passages", higher=True
    )
    f1: Share = experiment_column(
        "2 |S ∩ G| / (|S| + |G|) of tokens, pooled over passages", higher=True, pooled=True
    )
    reached: float = experiment_column(
        "the rationale is enough, for every token of the target", higher=True
    )


@dataclass(frozen=True)
class GoldOverlap:
    """How much of a set is gold: IOU, and the parts of F1."""

    iou: float
    f1: Share


@dataclass(frozen=True)
class LambadaPassage:
    """A passage, a target for each token of its last word, and the tokens that people marked."""

    example: Example
    targets: tuple[TargetInText, ...]
    gold: frozenset[int]

    @property
    def begins(self) -> int:
        """Where the last word begins: what is there or later is no part of a rationale."""
        return self.targets[0].target.positions[0]

    def before_word(self, sets: Iterable[Sequence[int]]) -> set[int]:
        """What the rationales of the word's tokens have before the word, together."""
        before: set[int] = set()
        for tokens in sets:
            for token in tokens:
                if token < self.begins:
                    before.add(token)
        return before

    def overlap(self, chosen: set[int]) -> GoldOverlap:
        both = len(chosen & self.gold)
        return GoldOverlap(
            iou=both / len(chosen | self.gold),
            f1=Share(2 * both, len(chosen) + len(self.gold)),
        )

    def row(self, rationales: Sequence[TargetRationale]) -> LambadaRow:
        chosen = self.before_word(rationale.order for rationale in rationales)
        overlap = self.overlap(chosen)
        reached = all(rationale.reached for rationale in rationales)
        return LambadaRow(
            length=float(len(chosen)), iou=overlap.iou, f1=overlap.f1, reached=float(reached)
        )


@experiment("lambada")
def lambada_rationales(trial: Trial) -> Evaluation:
    """Rationales of the last words of annotated passages: length, IOU and F1 against what people marked.

    The setting `own` says which passages: those whose last word is the model's own choice, token by token (true), or
    the others (false). A word of several tokens has the union of their rationales. The curves tell IOU and F1 of each
    method's first k tokens, k = 1 … 20, the previous token being the first; a search that has fewer gives all of them.
    """
    check_task_of_trial(trial, "causal", "a causal language model")
    passages, note = read_lambada_passages(trial, own=setting_of_trial(trial, "own", True))
    targets: list[TargetInText] = []
    for passage in passages:
        targets += passage.targets

    targets_of_passages = [len(passage.targets) for passage in passages]
    rows, costs = {}, {}
    ious: dict[str, list[float]] = {}
    f1s: dict[str, list[float]] = {}
    for title, spec in trial.methods.items():
        found = find_rationales_of_targets(trial, title, spec, targets, ranked=FIRST)
        rationales = found.by_text(targets_of_passages)
        rows_of_method = []
        for passage, each in zip(passages, rationales, strict=True):
            rows_of_method.append(passage.row(each))
        rows[title] = rows_of_method
        ious[title], f1s[title] = lambada_overlap_along_rankings(passages, rationales)
        costs[title] = found.total_cost(len(passages))

    evaluation = evaluation_of_rows(
        trial, LambadaRow.columns(), rows, data="lambada_rationales", notes=[note]
    )
    texts = []
    for passage in passages:
        example = passage.example
        texts.append(EvaluatedText(example.id, example.text, target=str(example.target)))
    curves = {"iou_at_k_curve": ious, "f1_at_k_curve": f1s}
    return replace(evaluation, curves=curves, costs=costs, texts=tuple(texts))


def read_lambada_passages(trial: Trial, *, own: bool) -> tuple[list[LambadaPassage], str]:
    """The first passages whose last word is (or is not) what the model would write, and how many there are."""
    examples = open_dataset("lambada_rationales", data=trial.data_dir).examples
    chosen: list[LambadaPassage] = []
    own_count = 0
    for number, example in enumerate(examples):
        trial.step(f"{trial.run.name}: passage {number} of {len(examples)}")
        passage, is_own = lambada_passage_of_example(trial.model, example)
        own_count += is_own
        if is_own == own and len(chosen) < trial.count:
            chosen.append(passage)

    if not chosen:
        how_many = "none" if own else "all"
        raise InputError(
            f"{trial.model.name} writes {how_many} of the last words: nothing is left."
        )
    share = own_count / len(examples)
    which = "such" if own else "other"
    note = (
        f"The last word is the model's own choice in {own_count} of {len(examples)} passages ({share:.0%}); "
        f"these are {len(chosen)} {which} passages."
    )
    return chosen, note


def lambada_passage_of_example(model: Model, example: Example) -> tuple[LambadaPassage, bool]:
    """A passage, and whether every token of its last word is the model's first choice."""
    (encoding,) = model.encode([example])
    spec = TargetSpec(target=example.target, output="log_prob")
    ((longer, target),) = model.resolve_targets(encoding, spec)
    targets = [TargetInText(longer, token) for token in token_targets(target, longer)]
    passage = LambadaPassage(example, tuple(targets), gold_tokens_of_lambada(encoding, example))
    is_own = target_is_own_token(model, longer, target)
    return passage, bool(is_own.all())


def gold_tokens_of_lambada(encoding: Encoding, example: Example) -> frozenset[int]:
    """Tokens that end in a marked span: start < end of the token ≤ end (P0's rule)."""
    marked: set[int] = set()
    for span in example.gold:
        inside = (span.start < encoding.end) & (encoding.end <= span.end)
        marked.update(np.flatnonzero(inside).tolist())
    return frozenset(marked)


def lambada_overlap_along_rankings(
    passages: Sequence[LambadaPassage], rationales: Sequence[Sequence[TargetRationale]]
) -> tuple[list[float], list[float]]:
    """IOU (mean) and F1 (pooled) of the first k tokens, k = 1 … FIRST."""
    ious, f1s = [], []
    for count in range(1, FIRST + 1):
        ious_of_passages = []
        both = sizes = 0.0
        for passage, of_passage in zip(passages, rationales, strict=True):
            first = passage.before_word(rationale.ranking[:count] for rationale in of_passage)
            overlap = passage.overlap(first)
            ious_of_passages.append(overlap.iou)
            both += overlap.f1.part
            sizes += overlap.f1.whole
        ious.append(float(np.mean(ious_of_passages)))
        f1s.append(both / sizes)
    return ious, f1s
