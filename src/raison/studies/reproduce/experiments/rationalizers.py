"""Tables of P1 from rationalizers of many kinds: recipes/rationalizers.py trains and judges them, a line for each.

A method of such a suite is the name of a kind of model (`plmr`), or `ordinary:METHOD`, rationales of equal length that
a method finds in an ordinary model. What is resampled and compared are test texts; the numbers of a text are those of
all seeds together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import Column, EvaluatedText, Evaluation
from raison.metrics.base import Share
from raison.studies.reproduce.experiment import NotMade, Number, Trial, experiment, found
from raison.studies.reproduce.experiments.lines import read_lines

__all__ = ["pooled_f1", "rationalizers"]

COLUMNS = (
    Column("accuracy", "on the test part", True),
    Column("rationale_f1", "tokens against what people marked, all texts together", True, True),
    Column("precision", "of the tokens that were kept", True, True),
    Column("recall", "of the tokens that people marked", True, True),
    Column("sparsity", "share of the tokens that is kept", None, True),
    Column("empty", "texts of which nothing would be kept, where two tokens might", False),
    Column("full", "texts of which everything is kept", False),
    Column("every_token", "accuracy of the same predictor when it reads all tokens", True),
    Column("front", "accuracy with a sentence of an encyclopedia in front", True),
    Column("behind", "accuracy with such a sentence behind", True),
    Column("words", "accuracy with 30 % of the neutral words replaced", True),
    Column("front_lost", "accuracy that such a sentence in front costs", False),
    Column("behind_lost", "likewise behind", False),
    Column("words_lost", "accuracy that other neutral words cost", False),
    Column("sparsity_first", "share of the tokens of a pair's first text that is kept", None, True),
    Column("sparsity_second", "likewise of its second text", None, True),
    Column("error", "squared error of a regression", False),
    Column("of_mean", "squared error of always telling the mean of the training texts", False),
    Column("chance", "share of the tokens that people marked: the precision of random ones", None, True),
    Column("lost", "marked tokens that were cut off with the end of a long text", None, True),
)
KEYS = tuple(column.key for column in COLUMNS)
WRITTEN = ("said", "picked", "more", "left", "regression")  # what a line has beside its name


@experiment("rationalizers")
def rationalizers(trial: Trial) -> Evaluation:
    """What the models say and select, text by text; the setting `columns` says which numbers."""
    place = Path(str(trial.model))
    made = {name: rows for (data, name), rows in read_lines(place).items() if data == trial.run.data}
    wanted = trial.run.settings.get("columns", KEYS[:7])
    columns = [column for column in COLUMNS if column.key in wanted]
    read = {title: judgements(made, name) for title, name in trial.methods.items()}
    there = {title: seeds for title, seeds in read.items() if seeds}
    if not there:
        raise NotMade(
            f"{str(place)!r} holds no rationalizers of {trial.run.data}: make them with recipes/rationalizers.py."
        )
    count = min(trial.count, max(len(seed.said) for seeds in there.values() for seed in seeds))
    numbers: dict[str, list[Mapping[str, Number]]] = {}
    for title in trial.methods:
        rows = [numbers_of(read[title], number) if read[title] else {} for number in range(count)]
        numbers[title] = [{column.key: row.get(column.key) for column in columns} for row in rows]
    about = [seeds_of(there)]
    if missing := [title for title in trial.methods if title not in there]:
        about.append(f"Not made yet: {', '.join(missing)}.")
    if apart := [told for title, seeds in there.items() if (told := spread_of(title, seeds))]:
        about.append(f"How far seeds lie apart in accuracy and F1: {'; '.join(apart)}.")
    about += [sentence for title, seeds in there.items() if (sentence := counted(title, seeds))][:1]
    evaluation = found(replace(trial, model=Many()), columns, numbers, data=trial.run.data, about=about)  # type: ignore[arg-type]
    return replace(evaluation, texts=tuple(EvaluatedText(str(k), f"test text {k}") for k in range(count)))


class Many:
    name = "many rationalizers"


@dataclass(frozen=True)
class Judged:
    """One seed of a kind of model, text by text: what it says, and how much it keeps of what people marked."""

    said: Sequence[float]  # 1 where it is right; of a regression its squared error
    picked: Mapping[str, Sequence[int]]  # words, kept, marked, both, and more: counts of tokens
    line: Mapping[str, Any]

    def at(self, key: str, number: int) -> float | None:
        values = self.line["more"].get(key, ())
        return values[number] if number < len(values) else None


def judgements(made: Mapping[str, Mapping[int, Any]], name: str) -> list[Judged]:
    """All seeds of a kind of model, or of a method on the ordinary ones."""
    kind, _, method = name.partition(":")
    lines = [line for _, line in sorted(made.get(kind, {}).items())]
    if any(key not in line for line in lines for key in WRITTEN):
        raise InputError(f"The lines of {kind!r} are not what recipes/rationalizers.py writes: make them again.")
    return [Judged(line["said"], line["picked"].get(method or "own", {}), line) for line in lines]


def numbers_of(seeds: Sequence[Judged], number: int) -> dict[str, Number]:
    """The numbers of one text over all seeds."""
    told = [seed for seed in seeds if number < len(seed.said)]
    if not told:
        return {}
    answered = "error" if told[0].line["regression"] else "accuracy"
    made: dict[str, Number] = {answered: float(np.mean([seed.said[number] for seed in told]))}
    rows = [{key: values[number] for key, values in seed.picked.items() if number < len(values)} for seed in told]
    if rows := [row for row in rows if row]:
        words, kept, marked, both, lost, others, other_kept = (
            sum(row.get(key, 0) for row in rows)
            for key in ("words", "kept", "marked", "both", "lost", "second_words", "second_kept")
        )
        made["sparsity"] = Share(kept, words)
        if others:
            made["sparsity_first"] = Share(kept - other_kept, words - others)
            made["sparsity_second"] = Share(other_kept, others)
        made["empty"] = float(np.mean([row.get("empty", row["kept"] == 0) for row in rows]))
        made["full"] = float(np.mean([row["kept"] == row["words"] > 1 for row in rows]))
        if marked:
            made["rationale_f1"] = Share(2 * both, kept + marked)
            made["precision"], made["recall"] = Share(both, kept), Share(both, marked)
            made["chance"] = Share(marked, words)
        if marked or lost:
            made["lost"] = Share(lost, marked + lost)
    for key in ("front", "behind", "words", "every_token", "of_mean"):
        if right := [value for seed in told if (value := seed.at(key, number)) is not None]:
            made[key] = float(np.mean(right))
    for key in ("front", "behind", "words"):
        if key in made:
            made[f"{key}_lost"] = float(made[answered]) - float(made[key])  # type: ignore[arg-type]
    return made


def pooled_f1(picked: Mapping[str, Sequence[int]]) -> float:
    """Of all texts together in which people marked something."""
    rows = np.array([picked[key] for key in ("both", "kept", "marked")])
    both, kept, marked = rows[:, rows[2] > 0].sum(1)
    return float(2 * both / max(1, kept + marked))


def seeds_of(there: Mapping[str, Sequence[Judged]]) -> str:
    """How many seeds the kinds of models have: most, and those that have another number."""
    counts = [len(seeds) for seeds in there.values()]
    most = max(set(counts), key=counts.count)
    others = [f"{title} {len(seeds)}" for title, seeds in there.items() if len(seeds) != most]
    return f"Seeds: {most} each{', but ' if others else ''}{', '.join(others)}."


def spread_of(title: str, seeds: Sequence[Judged]) -> str:
    """The smallest and the largest number of any seed."""
    if len(seeds) < 2:
        return ""
    accuracy = [float(np.mean(seed.said)) for seed in seeds if not seed.line["regression"]]
    f1 = [pooled_f1(seed.picked) for seed in seeds if any(seed.picked.get("marked", ()))]
    ranges = [f"{min(numbers):.3f} to {max(numbers):.3f}" for numbers in (accuracy, f1) if numbers]
    return f"{title} {', '.join(ranges)}" if ranges else ""


def counted(title: str, seeds: Sequence[Judged]) -> str:
    """Training texts that stand in other parts as well, and texts that were cut."""
    left, cut = seeds[0].line["left"], sum(tokens > 0 for tokens in seeds[0].picked.get("cut", ()))
    out = f"{left} training text{' was left out since it stands' if left == 1 else 's were left out since they stand'}"
    return f"{out} in dev or test as well; {cut} test text{' was' if cut == 1 else 's were'} cut."
