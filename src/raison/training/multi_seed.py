"""The same training with several seeds: a folder for each run, and mean and deviation over the runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from raison.core import limits, progress
from raison.core.errors import InputError
from raison.core.json_record import Record
from raison.core.outputs import check_folder
from raison.core.parameters import check_integer
from raison.training.fit_settings import SEEDS
from raison.training.training_folder import check_training_folder, write_training_file

__all__ = ["REPORT", "RUNS", "RepeatedTraining", "train_with_seeds"]

REPORT = "training.json"
RUNS = "runs.json"
RUN = re.compile(r"run-\d+|runs\.json")  # what is in a folder of several

Report: TypeAlias = dict[str, Any]  # what training.json holds; each kind of training has its own


@dataclass(frozen=True, eq=False)
class RepeatedTraining(Record):
    """What several trainings with different seeds report: mean and deviation of each number, by its name."""

    what: str  # classifier or rationalizer
    runs: int
    seeds: tuple[int, ...]
    dev: Mapping[str, Mapping[str, float]]  # name -> {"mean": …, "deviation": …}
    test: Mapping[str, Mapping[str, float]] | None = None
    troubles: tuple[str, ...] = ()


def train_with_seeds(
    one: Callable[[Path, int], Report],
    folder: Path,
    runs: int,
    seed: int,
    same: Callable[[Report], bool],
) -> Report:
    """What `one(folder, seed)` reports; for several runs their mean and deviation, which runs.json holds too.

    Run k has the seed `seed + k` and the folder run-k. One that is done is not done again; `same` says of its report
    whether it is of this experiment.
    """
    check_integer("runs", runs, 1)
    check_integer("seed", seed, 0, SEEDS)
    if runs == 1:
        return one(folder, seed)
    check_folder(folder, lambda name: RUN.fullmatch(name) is not None, "several runs (--out)")
    places = [folder / f"run-{number}" for number in range(runs)]
    for number, place in enumerate(places):  # before the first is trained
        if report_of_finished_seed(place, seed + number, same) is None:
            check_training_folder(place, REPORT)

    reports = []
    for number, place in enumerate(places):
        progress.report(number, runs, f"run {number + 1} of {runs}")
        report = report_of_finished_seed(place, seed + number, same)
        reports.append(report or one(place, seed + number))
    summary = summary_of_seeds(reports)
    with write_training_file(folder / RUNS) as half:
        half.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    return summary


def summary_of_seeds(reports: list[Report]) -> Report:
    """Mean and deviation of several runs."""
    first = reports[0]
    summary: Report = {
        "what": first["what"],
        "runs": len(reports),
        "seeds": [report["seed"] for report in reports],
    }
    for part in ("dev", "test"):
        if first.get(part):
            numbers = [report[part] for report in reports]
            summary[part] = mean_and_deviation_of_runs(numbers)
    if any(report.get("troubles") for report in reports):
        summary["troubles"] = troubles_of_seeds(reports)
    return summary


def mean_and_deviation_of_runs(measured: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Mean and deviation of each number that all runs have."""
    found = {}
    for key in measured[0]:
        values = [numbers[key] for numbers in measured if key in numbers]
        if len(values) == len(measured):
            found[key] = {
                "mean": float(np.mean(values)),
                "deviation": float(np.std(values, ddof=1)),
            }
    return found


def troubles_of_seeds(reports: list[Report]) -> list[str]:
    """What went wrong, run by run."""
    troubles = []
    for number, report in enumerate(reports):
        troubles += [f"run {number}: {trouble}" for trouble in report["troubles"]]
    return troubles


def report_of_finished_seed(
    place: Path, seed: int, same: Callable[[Report], bool]
) -> Report | None:
    """The report of a run that is done, if there is one; it must be of the same experiment."""
    if not (place / REPORT).exists():
        return None
    try:
        report: Report = limits.read_json_text((place / REPORT).read_text(encoding="utf-8"))
        alike = report["seed"] == seed and same(report)
    except (ValueError, KeyError, TypeError):
        alike = False
    if not alike:
        raise InputError(
            f"{str(place)!r} holds a run of another experiment: delete it, or choose another out (--out)."
        )
    return report
