"""Experiment: tables of P1 from rationalizers of many kinds, which recipes/rationalizers.py trains, a line for each.

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
    ModelsNotMade,
    ResultRow,
    Trial,
    evaluation_of_rows,
    experiment,
    experiment_column,
    titles_missing_in_trial,
)
from raison.studies.reproduce.rationalizer_lines import (
    OWN,
    RationalizerLine,
    TextCounts,
    TokenCounts,
    pooled_f1_of_rationalizer,
)
from raison.studies.reproduce.recipe_lines import read_recipe_lines

__all__ = ["RationalizerRow", "rationalizer_tables"]


@dataclass(frozen=True)
class RationalizerRow(ResultRow):
    """The numbers of one text over all seeds; None for what is not defined or was not made."""

    accuracy: float | None = experiment_column("on the test part", higher=True, default=None)
    rationale_f1: Share | None = experiment_column(
        "tokens against what people marked, all texts together",
        higher=True,
        pooled=True,
        default=None,
    )
    precision: Share | None = experiment_column(
        "of the tokens that were kept", higher=True, pooled=True, default=None
    )
    recall: Share | None = experiment_column(
        "of the tokens that people marked", higher=True, pooled=True, default=None
    )
    sparsity: Share | None = experiment_column(
        "share of the tokens that is kept", higher=None, pooled=True, default=None
    )
    empty: float | None = experiment_column(
        "texts of which nothing would be kept, where two tokens might", higher=False, default=None
    )
    full: float | None = experiment_column(
        "texts of which everything is kept", higher=False, default=None
    )
    every_token: float | None = experiment_column(
        "accuracy of the same predictor when it reads all tokens", higher=True, default=None
    )
    front: float | None = experiment_column(
        "accuracy with a sentence of an encyclopedia in front", higher=True, default=None
    )
    behind: float | None = experiment_column(
        "accuracy with such a sentence behind", higher=True, default=None
    )
    words: float | None = experiment_column(
        "accuracy with 30 % of the neutral words replaced", higher=True, default=None
    )
    front_lost: float | None = experiment_column(
        "accuracy that such a sentence in front costs", higher=False, default=None
    )
    behind_lost: float | None = experiment_column("likewise behind", higher=False, default=None)
    words_lost: float | None = experiment_column(
        "accuracy that other neutral words cost", higher=False, default=None
    )
    sparsity_first: Share | None = experiment_column(
        "share of the tokens of a pair's first text that is kept",
        higher=None,
        pooled=True,
        default=None,
    )
    sparsity_second: Share | None = experiment_column(
        "likewise of its second text", higher=None, pooled=True, default=None
    )
    error: float | None = experiment_column(
        "squared error of a regression", higher=False, default=None
    )
    of_mean: float | None = experiment_column(
        "squared error of always telling the mean of the training texts", higher=False, default=None
    )
    chance: Share | None = experiment_column(
        "share of the tokens that people marked: the precision of random ones",
        higher=None,
        pooled=True,
        default=None,
    )
    lost: Share | None = experiment_column(
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
    seeds = judged_rationalizer_seeds(trial)
    made = {}
    for title, of_title in seeds.items():
        if of_title:
            made[title] = of_title
    if not made:
        raise ModelsNotMade(
            f"{str(place)!r} holds no rationalizers of {trial.run.data}: make them with recipes/rationalizers.py."
        )
    longest = 0
    for of_title in made.values():
        for seed in of_title:
            longest = max(longest, seed.texts)
    count = min(trial.count, longest)
    rows = {}
    for title, of_title in seeds.items():
        rows_of_method = []
        for number in range(count):
            rows_of_method.append(rationalizer_row_of_text(of_title, number))
        rows[title] = rows_of_method

    wanted = trial.run.settings.get("columns", DEFAULT_COLUMNS)
    evaluation = evaluation_of_rows(
        trial,
        RationalizerRow.chosen_columns(wanted),
        rows,
        data=trial.run.data,
        model="many rationalizers",
        notes=notes_on_rationalizer_seeds(trial, made),
    )
    texts = []
    for number in range(count):
        texts.append(EvaluatedText(str(number), f"test text {number}"))
    return replace(evaluation, texts=tuple(texts))


def judged_rationalizer_seeds(trial: Trial) -> dict[str, list[JudgedSeed]]:
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


def rationalizer_row_of_text(seeds: Sequence[JudgedSeed], number: int) -> RationalizerRow:
    """The numbers of one text over all seeds."""
    asked = [seed for seed in seeds if number < seed.texts]
    if not asked:
        return RationalizerRow()
    answers = [seed.line.said[number] for seed in asked]
    answered = float(np.mean(answers))
    front = mean_of_other_rationalizer_answers(asked, number, "front")
    behind = mean_of_other_rationalizer_answers(asked, number, "behind")
    words = mean_of_other_rationalizer_answers(asked, number, "words")
    row = RationalizerRow(
        every_token=mean_of_other_rationalizer_answers(asked, number, "every_token"),
        front=front,
        behind=behind,
        words=words,
        front_lost=accuracy_lost_by_rationalizer(answered, front),
        behind_lost=accuracy_lost_by_rationalizer(answered, behind),
        words_lost=accuracy_lost_by_rationalizer(answered, words),
        of_mean=mean_of_other_rationalizer_answers(asked, number, "of_mean"),
    )
    if asked[0].line.regression:
        row = replace(row, error=answered)
    else:
        row = replace(row, accuracy=answered)

    counts = []
    for seed in asked:
        of_text = seed.counts.of_text(number)
        if of_text is not None:
            counts.append(of_text)
    if counts:
        return row_with_rationalizer_selection(row, counts)
    return row


def mean_of_other_rationalizer_answers(
    seeds: Sequence[JudgedSeed], number: int, kind: str
) -> float | None:
    """The mean of one kind of `OtherAnswers` over the seeds that were asked about this text so."""
    values = []
    for seed in seeds:
        of_seed = vars(seed.line.more)[kind]
        if number < len(of_seed):
            values.append(of_seed[number])
    if values:
        return float(np.mean(values))
    return None


def accuracy_lost_by_rationalizer(before: float, after: float | None) -> float | None:
    """How much is lost, where it was measured."""
    return None if after is None else before - after


def row_with_rationalizer_selection(
    row: RationalizerRow, counts: Sequence[TextCounts]
) -> RationalizerRow:
    """The row with what was selected in this text, all seeds together."""
    total = TextCounts()
    empty, full = [], []
    for counts_of_seed in counts:
        total += counts_of_seed
        empty.append(counts_of_seed.empty)
        full.append(counts_of_seed.full)
    row = replace(
        row,
        sparsity=Share(total.kept, total.words),
        empty=float(np.mean(empty)),
        full=float(np.mean(full)),
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


def notes_on_rationalizer_seeds(
    trial: Trial, made: Mapping[str, Sequence[JudgedSeed]]
) -> list[str]:
    """What a reader must know about the models."""
    notes = [number_of_rationalizer_seeds(made)]
    if missing := titles_missing_in_trial(trial, made):
        notes.append(missing)
    ranges = []
    for title, seeds in made.items():
        if of_title := ranges_over_rationalizer_seeds(title, seeds):
            ranges.append(of_title)
    if ranges:
        all_ranges = "; ".join(ranges)
        notes.append(f"How far seeds lie apart in accuracy and F1: {all_ranges}.")
    first = next(iter(made.values()))
    notes.append(texts_left_out_by_rationalizer(first[0]))
    return notes


def number_of_rationalizer_seeds(made: Mapping[str, Sequence[JudgedSeed]]) -> str:
    """How many seeds the kinds of models have: most, and those that have another number."""
    counts = [len(seeds) for seeds in made.values()]
    most = max(set(counts), key=counts.count)
    others = []
    for title, seeds in made.items():
        if len(seeds) != most:
            others.append(f"{title} {len(seeds)}")
    if not others:
        return f"Seeds: {most} each."
    exceptions = ", ".join(others)
    return f"Seeds: {most} each, but {exceptions}."


def ranges_over_rationalizer_seeds(title: str, seeds: Sequence[JudgedSeed]) -> str:
    """The smallest and the largest number of any seed."""
    if len(seeds) < 2:
        return ""
    accuracies = []
    for seed in seeds:
        if not seed.line.regression:
            accuracies.append(float(np.mean(seed.line.said)))
    f1s = []
    for seed in seeds:
        if any(seed.counts.marked):
            f1s.append(pooled_f1_of_rationalizer(seed.counts))
    ranges = []
    for numbers in (accuracies, f1s):
        if numbers:
            ranges.append(f"{min(numbers):.3f} to {max(numbers):.3f}")
    if ranges:
        return f"{title} {', '.join(ranges)}"
    return ""


def texts_left_out_by_rationalizer(seed: JudgedSeed) -> str:
    """Training texts that stand in other parts as well, and texts that were cut."""
    left = seed.line.left
    if left == 1:
        left_out = "1 training text was left out since it stands in dev or test as well"
    else:
        left_out = f"{left} training texts were left out since they stand in dev or test as well"
    cut = sum(tokens > 0 for tokens in seed.counts.cut)
    cut_texts = "1 test text was cut" if cut == 1 else f"{cut} test texts were cut"
    return f"{left_out}; {cut_texts}."
