"""Tables of P1 from rationalizers of many kinds: recipes/rationalizers.py trains and judges them, a line for each.

A method of such a suite is the name of a kind of model (`plmr`), or `ordinary:METHOD`, rationales of equal length that
a method finds in an ordinary model. What is resampled and compared are test texts; the numbers of a text are those of
all seeds together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from raison.core.evaluation import EvaluatedText, Evaluation
from raison.metrics.base import Share
from raison.studies.reproduce.experiment import (
    NotMade,
    ResultRow,
    Trial,
    build_evaluation,
    column_field,
    experiment,
)
from raison.studies.reproduce.rationalizer_lines import (
    OWN,
    RationalizerLine,
    TextCounts,
    TokenCounts,
    pooled_f1,
)
from raison.studies.reproduce.recipe_lines import read_recipe_lines

__all__ = ["RationalizerRow", "rationalizer_tables"]


@dataclass(frozen=True)
class RationalizerRow(ResultRow):
    """The numbers of one text over all seeds; None for what is not defined or was not made."""

    accuracy: float | None = column_field("on the test part", higher=True, default=None)
    rationale_f1: Share | None = column_field(
        "tokens against what people marked, all texts together",
        higher=True,
        pooled=True,
        default=None,
    )
    precision: Share | None = column_field(
        "of the tokens that were kept", higher=True, pooled=True, default=None
    )
    recall: Share | None = column_field(
        "of the tokens that people marked", higher=True, pooled=True, default=None
    )
    sparsity: Share | None = column_field(
        "share of the tokens that is kept", higher=None, pooled=True, default=None
    )
    empty: float | None = column_field(
        "texts of which nothing would be kept, where two tokens might", higher=False, default=None
    )
    full: float | None = column_field(
        "texts of which everything is kept", higher=False, default=None
    )
    every_token: float | None = column_field(
        "accuracy of the same predictor when it reads all tokens", higher=True, default=None
    )
    front: float | None = column_field(
        "accuracy with a sentence of an encyclopedia in front", higher=True, default=None
    )
    behind: float | None = column_field(
        "accuracy with such a sentence behind", higher=True, default=None
    )
    words: float | None = column_field(
        "accuracy with 30 % of the neutral words replaced", higher=True, default=None
    )
    front_lost: float | None = column_field(
        "accuracy that such a sentence in front costs", higher=False, default=None
    )
    behind_lost: float | None = column_field("likewise behind", higher=False, default=None)
    words_lost: float | None = column_field(
        "accuracy that other neutral words cost", higher=False, default=None
    )
    sparsity_first: Share | None = column_field(
        "share of the tokens of a pair's first text that is kept",
        higher=None,
        pooled=True,
        default=None,
    )
    sparsity_second: Share | None = column_field(
        "likewise of its second text", higher=None, pooled=True, default=None
    )
    error: float | None = column_field("squared error of a regression", higher=False, default=None)
    of_mean: float | None = column_field(
        "squared error of always telling the mean of the training texts", higher=False, default=None
    )
    chance: Share | None = column_field(
        "share of the tokens that people marked: the precision of random ones",
        higher=None,
        pooled=True,
        default=None,
    )
    lost: Share | None = column_field(
        "marked tokens that were cut off with the end of a long text",
        higher=None,
        pooled=True,
        default=None,
    )


DEFAULT_COLUMNS = ("accuracy", "rationale_f1", "precision", "recall", "sparsity", "empty", "full")


@dataclass(frozen=True)
class JudgedSeed:
    """One seed of a kind of model with one kind of rationale."""

    line: RationalizerLine
    counts: TokenCounts

    @property
    def texts(self) -> int:
        return len(self.line.said)


@experiment("rationalizers")
def rationalizer_tables(trial: Trial) -> Evaluation:
    """What the models say and select, text by text; the setting `columns` says which numbers."""
    place = Path(str(trial.model))
    seeds = judged_seeds(trial)
    made = {title: of_title for title, of_title in seeds.items() if of_title}
    if not made:
        raise NotMade(
            f"{str(place)!r} holds no rationalizers of {trial.run.data}: make them with recipes/rationalizers.py."
        )
    lengths: list[int] = []
    for of_title in made.values():
        lengths += [seed.texts for seed in of_title]
    count = min(trial.count, max(lengths))
    rows = {}
    for title, of_title in seeds.items():
        rows[title] = [row_of_text(of_title, number) for number in range(count)]

    wanted = trial.run.settings.get("columns", DEFAULT_COLUMNS)
    columns = [column for column in RationalizerRow.columns() if column.key in wanted]
    evaluation = build_evaluation(
        trial,
        columns,
        rows,
        data=trial.run.data,
        model="many rationalizers",
        notes=notes_on_seeds(trial, made),
    )
    texts = [EvaluatedText(str(number), f"test text {number}") for number in range(count)]
    return replace(evaluation, texts=tuple(texts))


def judged_seeds(trial: Trial) -> dict[str, list[JudgedSeed]]:
    """All seeds of each method: a kind of model, or kind:method for rationales that a method finds in it."""
    lines = read_recipe_lines(Path(str(trial.model)))
    seeds: dict[str, list[JudgedSeed]] = {}
    for title, spec in trial.methods.items():
        kind, _, method = spec.partition(":")
        by_seed = lines.get((trial.run.data, kind), {})
        seeds[title] = []
        for seed in sorted(by_seed):
            line = RationalizerLine.from_dict(by_seed[seed])
            counts = line.picked.get(method or OWN, TokenCounts())
            seeds[title].append(JudgedSeed(line, counts))
    return seeds


def row_of_text(seeds: Sequence[JudgedSeed], number: int) -> RationalizerRow:
    """The numbers of one text over all seeds."""
    asked = [seed for seed in seeds if number < seed.texts]
    if not asked:
        return RationalizerRow()
    answered = float(np.mean([seed.line.said[number] for seed in asked]))
    regression = asked[0].line.regression
    more = [seed.line.more for seed in asked]
    front = mean_at([answers.front for answers in more], number)
    behind = mean_at([answers.behind for answers in more], number)
    words = mean_at([answers.words for answers in more], number)
    row = RationalizerRow(
        accuracy=None if regression else answered,
        error=answered if regression else None,
        every_token=mean_at([answers.every_token for answers in more], number),
        front=front,
        behind=behind,
        words=words,
        front_lost=loss(answered, front),
        behind_lost=loss(answered, behind),
        words_lost=loss(answered, words),
        of_mean=mean_at([answers.of_mean for answers in more], number),
    )
    counts = [seed.counts.of_text(number) for seed in asked]
    counted = [each for each in counts if each is not None]
    return with_selection(row, counted) if counted else row


def mean_at(answers: Sequence[Sequence[float]], number: int) -> float | None:
    """The mean over the seeds that were asked about this text."""
    values = [of_seed[number] for of_seed in answers if number < len(of_seed)]
    return float(np.mean(values)) if values else None


def loss(before: float, after: float | None) -> float | None:
    """How much is lost, where it was measured."""
    return None if after is None else before - after


def with_selection(row: RationalizerRow, counts: Sequence[TextCounts]) -> RationalizerRow:
    """The row with what was selected in this text, all seeds together."""
    total = sum(counts, start=TextCounts())
    row = replace(
        row,
        sparsity=Share(total.kept, total.words),
        empty=float(np.mean([each.empty for each in counts])),
        full=float(np.mean([each.full for each in counts])),
    )
    if total.second_words:
        row = replace(
            row,
            sparsity_first=Share(total.kept - total.second_kept, total.words - total.second_words),
            sparsity_second=Share(total.second_kept, total.second_words),
        )
    if total.marked:
        row = replace(
            row,
            rationale_f1=Share(2 * total.both, total.kept + total.marked),
            precision=Share(total.both, total.kept),
            recall=Share(total.both, total.marked),
            chance=Share(total.marked, total.words),
        )
    if total.marked or total.lost:
        row = replace(row, lost=Share(total.lost, total.marked + total.lost))
    return row


def notes_on_seeds(trial: Trial, made: Mapping[str, Sequence[JudgedSeed]]) -> list[str]:
    """What a reader must know about the models."""
    notes = [number_of_seeds(made)]
    missing = [title for title in trial.methods if title not in made]
    if missing:
        notes.append(f"Not made yet: {', '.join(missing)}.")
    ranges = [ranges_over_seeds(title, seeds) for title, seeds in made.items()]
    told = [each for each in ranges if each]
    if told:
        notes.append(f"How far seeds lie apart in accuracy and F1: {'; '.join(told)}.")
    first = next(iter(made.values()))
    return [*notes, texts_left_out(first[0])]


def number_of_seeds(made: Mapping[str, Sequence[JudgedSeed]]) -> str:
    """How many seeds the kinds of models have: most, and those that have another number."""
    counts = [len(seeds) for seeds in made.values()]
    most = max(set(counts), key=counts.count)
    others = [f"{title} {len(seeds)}" for title, seeds in made.items() if len(seeds) != most]
    return f"Seeds: {most} each{', but ' if others else ''}{', '.join(others)}."


def ranges_over_seeds(title: str, seeds: Sequence[JudgedSeed]) -> str:
    """The smallest and the largest number of any seed."""
    if len(seeds) < 2:
        return ""
    accuracies = [float(np.mean(seed.line.said)) for seed in seeds if not seed.line.regression]
    f1s = [pooled_f1(seed.counts) for seed in seeds if any(seed.counts.marked)]
    ranges = [
        f"{min(numbers):.3f} to {max(numbers):.3f}" for numbers in (accuracies, f1s) if numbers
    ]
    return f"{title} {', '.join(ranges)}" if ranges else ""


def texts_left_out(seed: JudgedSeed) -> str:
    """Training texts that stand in other parts as well, and texts that were cut."""
    left = seed.line.left
    cut = sum(tokens > 0 for tokens in seed.counts.cut)
    out = "was left out since it stands" if left == 1 else "were left out since they stand"
    return (
        f"{left} training text{'' if left == 1 else 's'} {out} in dev or test as well; "
        f"{cut} test text{' was' if cut == 1 else 's were'} cut."
    )
