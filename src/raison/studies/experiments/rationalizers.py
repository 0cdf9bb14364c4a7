"""Tables of P1 from rationalizers of many kinds: recipes/rationalizers.py trains and judges them, a folder for each.

A method of such a suite is the name of a kind of model (`plmr`), or `ordinary:METHOD`, rationales of equal length that
a method finds in an ordinary model. What is resampled and compared are test texts; the numbers of a text are those of
all seeds together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from raison.evaluation import Column, Evaluation, Seen
from raison.metrics.base import Share
from raison.studies.experiment import NotMade, Number, Trial, experiment, found

__all__ = ["rationalizers"]

COLUMNS = (
    Column("accuracy", "on the test part", True),
    Column("rationale_f1", "tokens against what people marked, all texts together", True, True),
    Column("precision", "of the tokens that were kept", True, True),
    Column("recall", "of the tokens that people marked", True, True),
    Column("sparsity", "share of the tokens that is kept", None, True),
    Column("empty", "texts of which nothing would be kept", False),
    Column("full", "texts of which everything is kept", False),
    Column("every_token", "accuracy of the same predictor when it reads all tokens", True),
    Column("front", "accuracy with a sentence of an encyclopedia in front", True),
    Column("behind", "accuracy with such a sentence behind", True),
    Column("words", "accuracy with 30 % of the neutral words replaced", True),
    Column("error", "squared error of a regression", False),
    Column("lost", "marked tokens that were cut off with the end of a long text", None, True),
)
KEYS = tuple(column.key for column in COLUMNS)


@dataclass(frozen=True)
class Judged:
    """One seed of one kind of model: its texts, what it is said to do beside, and its report of training."""

    texts: list[dict[str, Any]]
    robust: dict[str, list[int]]
    every: list[float]  # 1 where the same predictor is right when it reads all tokens
    training: dict[str, Any]


@experiment("rationalizers")
def rationalizers(trial: Trial) -> Evaluation:
    """What the models say and select, text by text; the setting `columns` says which numbers."""
    folder = Path(str(trial.model)) / trial.run.data
    wanted = trial.run.settings.get("columns", KEYS[:7])
    columns = [column for column in COLUMNS if column.key in wanted]
    read = {title: judgements(folder, name) for title, name in trial.methods.items()}
    there = {title: seeds for title, seeds in read.items() if seeds}
    if not there:
        raise NotMade(f"{str(folder)!r} holds no rationalizers: make them with recipes/rationalizers.py.")
    count = max(len(seed.texts) for seeds in there.values() for seed in seeds)
    numbers: dict[str, list[Mapping[str, Number]]] = {}
    for title in trial.methods:
        rows = [numbers_of(read[title], number) if read[title] else {} for number in range(count)]
        numbers[title] = [{column.key: row.get(column.key) for column in columns} for row in rows]
    about = [f"Seeds: {', '.join(f'{title} {len(seeds)}' for title, seeds in there.items())}."]
    if missing := [title for title in trial.methods if title not in there]:
        about.append(f"Not made yet: {', '.join(missing)}.")
    about += [sentence for title, seeds in there.items() if (sentence := spread_of(title, seeds))]
    about += [sentence for title, seeds in there.items() if (sentence := counted(title, seeds))][:1]
    evaluation = found(replace(trial, model=Many()), columns, numbers, data=trial.run.data, about=about)  # type: ignore[arg-type]
    return replace(evaluation, texts=tuple(Seen(str(k), f"test text {k}") for k in range(count)))


class Many:
    name = "many rationalizers"


def judgements(folder: Path, name: str) -> list[Judged]:
    """All seeds of a kind of model, or of a method on the ordinary ones."""
    kind, _, method = name.partition(":")
    found_ = []
    for path in sorted((folder / kind).glob("seed-*/judged.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        training = json.loads(path.with_name("training.json").read_text(encoding="utf-8"))
        if kind == "ordinary":
            answers = [{"said": s, "label": g} for s, g in zip(told["said"], told["label"], strict=True)]
            picked = told["methods"].get(method, []) if method else []
            texts = [{**row, **(picked[k] if k < len(picked) else {})} for k, row in enumerate(answers)]
        else:
            texts = told["texts"]
        found_.append(Judged(texts, told.get("robust", {}), told.get("every token", []), training))
    return found_


def numbers_of(seeds: Sequence[Judged], number: int) -> dict[str, Number]:
    """The numbers of one text over all seeds."""
    rows = [seed.texts[number] for seed in seeds if number < len(seed.texts)]
    if not rows:
        return {}
    made: dict[str, Number] = {}
    if isinstance(rows[0]["said"], str):
        made["accuracy"] = float(np.mean([row["said"] == row["label"] for row in rows]))
    else:
        made["error"] = float(np.mean([(row["said"] - float(row["label"])) ** 2 for row in rows]))
    picked = [row for row in rows if "kept" in row]
    if picked:
        kept, words = (sum(row[key] for row in picked) for key in ("kept", "words"))
        made["sparsity"] = Share(kept, words)
        made["empty"] = float(np.mean([row.get("empty", row["kept"] == 0) for row in picked]))
        made["full"] = float(np.mean([row["kept"] == row["words"] > 1 for row in picked]))
        if marked := sum(row["marked"] for row in picked):
            both = sum(row["both"] for row in picked)
            made["rationale_f1"] = Share(2 * both, kept + marked)
            made["precision"], made["recall"] = Share(both, kept), Share(both, marked)
        lost = sum(row.get("lost", 0) for row in picked)
        if marked or lost:
            made["lost"] = Share(lost, marked + lost)
    for key in ("front", "behind", "words"):
        right = [seed.robust[key][number] for seed in seeds if number < len(seed.robust.get(key, []))]
        if right:
            made[key] = float(np.mean(right))
    every = [seed.every[number] for seed in seeds if number < len(seed.every)]
    if every and "accuracy" in made:
        made["every_token"] = float(np.mean(every))
    return made


def spread_of(title: str, seeds: Sequence[Judged]) -> str:
    """How far seeds lie apart, in a sentence."""
    if len(seeds) < 2:
        return ""
    accuracy = [seed.training["test"]["accuracy"] for seed in seeds if "accuracy" in seed.training.get("test", {})]
    f1 = [seed.training["test"]["rationale f1"] for seed in seeds if "rationale f1" in seed.training.get("test", {})]
    told = [f"accuracy {min(accuracy):.3f} to {max(accuracy):.3f}"] if accuracy else []
    told += [f"F1 {min(f1):.3f} to {max(f1):.3f}"] if f1 else []
    return f"{title}: seeds differ, {', '.join(told)}." if told else ""


def counted(title: str, seeds: Sequence[Judged]) -> str:
    """Training texts that stand in other parts as well, and texts that were cut."""
    counts = seeds[0].training.get("counts", {})
    left = counts.get("train, left out: in dev or test as well", 0)
    cut = counts.get("test, cut", 0)
    return f"{left} training texts were left out since they stand in dev or test as well; {cut} test texts were cut."
