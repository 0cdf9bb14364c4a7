"""The same training with several seeds: a folder for each, and mean and deviation over them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raison.core import limits, progress
from raison.core.errors import InputError
from raison.core.json_record import Record
from raison.core.outputs import check_folder
from raison.core.spec import whole
from raison.training.fit import SEEDS, check_free, saved

__all__ = ["REPORT", "RUNS", "RepeatedTraining", "repeated"]

REPORT = "training.json"
RUNS = "runs.json"
RUN = re.compile(r"run-\d+|runs\.json(\.half)?")  # what is in a folder of several


@dataclass(frozen=True, eq=False)
class RepeatedTraining(Record):
    """What several trainings with different seeds report: mean and deviation of each number, by its name."""

    what: str  # classifier or rationalizer
    runs: int
    seeds: tuple[int, ...]
    dev: Mapping[str, Mapping[str, float]]  # name -> {"mean": …, "deviation": …}
    test: Mapping[str, Mapping[str, float]] | None = None
    troubles: tuple[str, ...] = ()


def repeated(
    one: Callable[[Path, int], dict[str, Any]],
    folder: Path,
    runs: int,
    seed: int,
    same: Callable[[dict[str, Any]], bool],
) -> dict[str, Any]:
    """What `one(folder, seed)` reports; for several runs their mean and deviation, which runs.json holds too.

    Run k has the seed `seed + k` and the folder run-k. One that is done is not done again; `same` says of its report
    whether it is of this experiment.
    """
    whole("runs", runs, 1)
    whole("seed", seed, 0, SEEDS)
    if runs == 1:
        return one(folder, seed)
    check_folder(folder, lambda name: RUN.fullmatch(name) is not None, "several runs (--out)")
    for number in range(runs):  # before the first is trained
        place = folder / f"run-{number}"
        if finished(place, seed + number, same) is None:
            check_free(place, REPORT)
    reports = []
    for number in range(runs):
        place = folder / f"run-{number}"
        progress.report(number, runs, f"run {number + 1} of {runs}")
        reports.append(finished(place, seed + number, same) or one(place, seed + number))
    told = {"what": reports[0]["what"], "runs": runs, "seeds": [r["seed"] for r in reports]}
    for part in ("dev", "test"):
        if reports[0].get(part):
            told[part] = {
                key: {
                    "mean": float(np.mean([r[part][key] for r in reports])),
                    "deviation": float(np.std([r[part][key] for r in reports], ddof=1)),
                }
                for key in reports[0][part]
                if all(key in r[part] for r in reports)
            }
    if any(r.get("troubles") for r in reports):
        told["troubles"] = [f"run {k}: {trouble}" for k, r in enumerate(reports) for trouble in r["troubles"]]
    with saved(folder / RUNS) as half:
        half.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return told


def finished(place: Path, seed: int, same: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
    """The report of a run that is done, if there is one; it must be of the same experiment."""
    if not (place / REPORT).exists():
        return None
    try:
        told: dict[str, Any] = limits.from_json((place / REPORT).read_text(encoding="utf-8"))
        alike = told["seed"] == seed and same(told)
    except (ValueError, KeyError, TypeError):
        alike = False
    if not alike:
        raise InputError(f"{str(place)!r} holds a run of another experiment: delete it, or choose another out (--out).")
    return told
