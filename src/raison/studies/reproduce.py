"""What the papers report, run again: named suites (suites/*.toml) that write into docs/reproduction.md.

A suite names runs (model, data, methods), the paper's values, what differs here, and the paper's claims, each of which
is a comparison of methods that is tested. Models that raison does not ship are made by a recipe and passed as
`--model name=folder`; a run whose model is not there is named in the page, with the command that makes it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from raison.api import load
from raison.datasets.opening import open_dataset
from raison.errors import InputError
from raison.evaluation import Cell, Evaluation
from raison.metrics.statistics import mean_interval
from raison.models.base import Model
from raison.registry import suggest
from raison.studies.compare import Verdict, tested
from raison.studies.evaluate import evaluate
from raison.types import Example

__all__ = ["Outcome", "Suite", "page_with", "reproduce", "section", "suites"]


@dataclass(frozen=True)
class Run:
    """One model on one data set."""

    name: str
    model: str
    data: str
    recipe: str = ""  # how the model is made, where raison does not ship it
    split: str | None = None
    limit: int = 200
    shortest: int = 0  # tokens; shorter texts are left out, as the paper does
    longest: int = 128  # tokens; longer texts are left out, to keep it feasible
    label: str = ""  # only texts of this label
    paper: dict[str, dict[str, float]] = field(default_factory=dict)  # number -> method -> value in the paper
    about: str = ""  # what differs here


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, as a comparison: the first is better than the second."""

    text: str
    first: str  # titles of methods
    second: str
    key: str


@dataclass(frozen=True)
class Suite:
    """A table or figure of a paper."""

    name: str
    title: str
    paper: str
    methods: dict[str, str]  # title -> spec
    metrics: tuple[str, ...]
    runs: tuple[Run, ...]
    claims: tuple[Claim, ...] = ()
    differs: tuple[str, ...] = ()
    target: str = "gold"
    units: str = "token"
    removal: str = "mask_token"
    seeds: dict[str, int] = field(default_factory=dict)  # methods that are run with several seeds and averaged
    missing: tuple[str, ...] = ()  # what can't be run here, with the command that runs it elsewhere


@dataclass
class Outcome:
    """A run of a suite: its numbers and the verdicts on the claims."""

    run: Run
    evaluation: Evaluation | None = None
    verdicts: list[tuple[Claim, Verdict]] = field(default_factory=list)
    spread: dict[tuple[str, str], float] = field(default_factory=dict)  # (title, number) -> deviation over seeds
    read: int = 0  # texts of the data set that were looked at


def suites() -> dict[str, Suite]:
    """All suites by name."""
    try:
        import tomllib
    except ImportError:  # before Python 3.11
        import tomli as tomllib  # type: ignore[no-redef]

    found = {}
    for file in sorted(files("raison.studies").joinpath("suites").iterdir(), key=lambda f: f.name):
        if file.name.endswith(".toml"):
            data = tomllib.loads(file.read_text(encoding="utf-8"))
            runs = tuple(Run(**run) for run in data.pop("run"))
            claims = tuple(Claim(**claim) for claim in data.pop("claim", []))
            lists = {key: tuple(value) for key, value in data.items() if isinstance(value, list)}
            suite = Suite(runs=runs, claims=claims, **{**data, **lists})
            found[suite.name] = suite
    return found


def suite_named(name: str) -> Suite:
    known = suites()
    if name not in known:
        raise InputError(f"There is no suite {name!r}.{suggest(name, list(known))} There are: {', '.join(known)}.")
    return known[name]


def reproduce(
    name: str,
    *,
    models: Mapping[str, str] | None = None,
    limit: int | None = None,
    data_dir: Any = None,
    seed: int = 0,
    step: Any = lambda said: None,
) -> tuple[Suite, list[Outcome]]:
    """Run a suite; `models` are folders of what the recipes made, `limit` makes every run shorter."""
    suite = suite_named(name)
    outcomes = []
    for run in suite.runs:
        place = (models or {}).get(run.model, None if run.recipe else run.model)
        outcome = Outcome(run)
        outcomes.append(outcome)
        if place is None:
            continue
        step(f"{suite.name}: {run.name}")
        model = load(place)
        examples, outcome.read = chosen_texts(model, run, min(limit or run.limit, run.limit), data_dir)
        outcome.evaluation, outcome.spread = measured(suite, model, examples, run, seed)
        pairs = [
            (claim.first, claim.second, next(c for c in outcome.evaluation.columns if c.key == claim.key))
            for claim in suite.claims
        ]
        outcome.verdicts = list(zip(suite.claims, tested(outcome.evaluation, pairs), strict=True)) if pairs else []
    return suite, outcomes


def chosen_texts(model: Model, run: Run, count: int, data_dir: Any) -> tuple[list[Example], int]:
    """The first texts of fitting length, and how many were looked at for them."""
    read = open_dataset(run.data, split=run.split, data=data_dir, skip_broken=True)
    found: list[Example] = []
    for number, example in enumerate(read.examples, 1):
        if run.label and str(example.label) != run.label:
            continue
        size = len(model.encode([example], truncate=True)[0])
        if run.shortest <= size <= run.longest:
            found.append(example)
        if len(found) == count:
            return found, number
    if not found:
        raise InputError(f"No text of {run.data} has {run.shortest} to {run.longest} tokens.")
    return found, len(read.examples)


def measured(
    suite: Suite, model: Model, examples: list[Example], run: Run, seed: int
) -> tuple[Evaluation, dict[tuple[str, str], float]]:
    """All methods of a suite under their titles; those with several seeds as the mean of their runs."""
    how: dict[str, Any] = {"target": suite.target, "units": suite.units, "removal": suite.removal}
    once = {title: spec for title, spec in suite.methods.items() if title not in suite.seeds}
    first = renamed(evaluate(model, examples, list(once.values()), suite.metrics, seed=seed, **how), list(once))
    cells, methods = list(first.cells), list(first.methods)
    curves = {key: dict(by) for key, by in first.curves.items()}
    spread: dict[tuple[str, str], float] = {}
    for title, count in suite.seeds.items():
        runs = [
            renamed(evaluate(model, examples, [suite.methods[title]], suite.metrics, seed=seed + k, **how), [title])
            for k in range(count)
        ]
        for column in first.columns:
            same = [each.cell(title, column.key) for each in runs]
            cells.append(averaged(same, column.pooled, seed))
            values = [float(cell.value or 0.0) for cell in same]
            spread[title, column.key] = float(np.std(values, ddof=1)) if count > 1 else 0.0
        for key in curves:
            curves[key][title] = np.mean([each.curves[key][title] for each in runs], axis=0).tolist()
        methods.append(title)
    order = [title for title in suite.methods if title in methods]
    cells.sort(key=lambda cell: order.index(cell.method))  # stable: columns keep their order
    settings = {**first.settings, "split": run.split, "limit": len(examples)}
    made = replace(
        first, data=run.data, methods=tuple(order), cells=tuple(cells), curves=curves, settings=settings, texts=()
    )
    return made, spread


def renamed(evaluation: Evaluation, titles: Sequence[str]) -> Evaluation:
    """Methods by the titles of the paper."""
    names = dict(zip(evaluation.methods, titles, strict=True))
    cells = tuple(replace(cell, method=names[cell.method]) for cell in evaluation.cells)
    curves = {key: {names[m]: curve for m, curve in by.items()} for key, by in evaluation.curves.items()}
    costs = {names.get(m, m): cost for m, cost in evaluation.costs.items()}
    return replace(evaluation, methods=tuple(titles), cells=cells, curves=curves, costs=costs)


def averaged(cells: Sequence[Cell], pooled: bool, seed: int) -> Cell:
    """Text by text the mean over seeds."""
    if pooled:
        raise InputError("Pooled numbers of several seeds have no mean text by text.")
    table = np.array([[np.nan if v is None else v for v in cell.each] for cell in cells])
    each = table.mean(0)
    found = mean_interval(each, seed=seed)
    told = tuple(None if math.isnan(v) else float(v) for v in each)
    return Cell(cells[0].method, cells[0].key, found.estimate, found.low, found.high, told)


# -- the page ------------------------------------------------------------------------------------------------------


def section(suite: Suite, outcomes: Sequence[Outcome], command: str) -> str:
    """The Markdown of one suite."""
    lines = [f"## {suite.name}: {suite.title}", "", f"{suite.paper}. `{command}`", ""]
    lines += [f"- {each}" for each in suite.differs]
    for outcome in outcomes:
        lines += ["", f"### {outcome.run.name}", ""]
        if outcome.evaluation is None:
            lines.append(f"Not run: it needs a model that raison does not ship. Make it with `{outcome.run.recipe}`.")
            continue
        lines += run_lines(suite, outcome)
    if suite.missing:
        lines += ["", "### Not run here", "", *(f"- {each}" for each in suite.missing)]
    return "\n".join(lines) + "\n"


def run_lines(suite: Suite, outcome: Outcome) -> list[str]:
    evaluation, run = outcome.evaluation, outcome.run
    assert evaluation is not None
    count = evaluation.settings["limit"]
    about = f"{count} texts of {run.data}"
    about += f" ({run.split})" if run.split else ""
    about += f", {run.shortest} to {run.longest} tokens, the first of {outcome.read:,}; model `{evaluation.model}`."
    lines = [f"{about} {run.about}".strip(), ""]
    keys = [c for c in evaluation.columns if c.key in run.paper or not run.paper]
    head = ["method", *(f"{c.key}: paper | ours, 95 % interval" for c in keys)]
    lines += ["| " + " | ".join(head) + " |", "|---" * (1 + 2 * len(keys)) + "|"]
    for title in evaluation.methods:
        row = [title]
        for column in keys:
            cell = evaluation.cell(title, column.key)
            paper = run.paper.get(column.key, {}).get(title)
            deviation = outcome.spread.get((title, column.key))
            seeds = f" ± {deviation:.3f}" if deviation is not None else ""
            row += [
                "–" if paper is None else f"{paper:.3f}",
                f"{cell.value:.3f}{seeds} ({cell.low:.3f} … {cell.high:.3f})",
            ]
        lines.append("| " + " | ".join(row) + " |")
    if outcome.verdicts:
        lines += ["", "| claim | difference | p, corrected | here |", "|---|---|---|---|"]
        for claim, verdict in outcome.verdicts:
            column = next(c for c in evaluation.columns if c.key == claim.key)
            lines.append(verdict_line(claim, verdict, bool(column.higher)))
    return lines


def verdict_line(claim: Claim, verdict: Verdict, higher: bool) -> str:
    """Whether a claim holds: significantly, not decided, or the contrary."""
    p = "< 0.001" if verdict.corrected < 0.001 else f"{verdict.corrected:.3f}"
    if verdict.better == claim.first:
        held = "holds"
    elif verdict.better == claim.second:
        held = "**the contrary holds**"
    else:
        held = "not decided"
    difference = 0.0 if verdict.difference is None else verdict.difference
    told = f"{claim.text} ({claim.key})"
    return f"| {told} | {difference:+.4f} ({'more' if higher else 'less'} is better) | {p} | {held} |"


def page_with(page: Path, suite: Suite, written: str) -> str:
    """The page with the section of this suite put in place of an older one."""
    head = (
        "# Reproduction\n\nWhat the papers report and what raison measures, suite by suite (`raison reproduce NAME`): "
        "other models and data than the papers had, so the order of methods is what can be compared. Written by the "
        "command in each section.\n"
    )
    old = page.read_text(encoding="utf-8") if page.is_file() else head
    parts = re.split(r"(?m)^(?=## )", old)
    kept = {part.split(":")[0].removeprefix("## ").strip(): part for part in parts[1:]}
    kept[suite.name] = written + "\n"
    return parts[0].rstrip() + "\n\n" + "".join(kept[name].rstrip() + "\n\n" for name in sorted(kept)).rstrip() + "\n"
