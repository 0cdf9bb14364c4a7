"""raison reproduce: a suite of a paper run again, with its section and pictures in a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from raison.cli import options
from raison.core.errors import InputError
from raison.core.outputs import check_folder, check_outputs, replacing_output

if TYPE_CHECKING:
    from raison.studies.reproduce.run_suite import RunOutcome
    from raison.studies.reproduce.suite import Suite

Models = Annotated[
    Optional[list[str]],
    typer.Option("--model", help="A model that a recipe made: name=FOLDER; repeat it for more."),
]
Limit = Annotated[Optional[int], typer.Option("--limit", help="At most so many texts in each run.")]
Page = Annotated[
    Optional[Path],
    typer.Option(
        "--page",
        help="Put the section into this Markdown page, and its pictures into figures/ beside it.",
    ),
]
Keep = Annotated[
    Optional[Path],
    typer.Option(
        "--keep", help="Folder for the parts that are done; the same command goes on from there."
    ),
]


def reproduce_command(
    name: Annotated[
        Optional[str],
        typer.Argument(help="A suite, such as P4-table1; without one they are listed."),
    ] = None,
    model: Models = None,
    limit: Limit = None,
    data_dir: options.DataDir = None,
    seed: options.Seed = 0,
    page: Page = None,
    keep: Keep = None,
    force: options.Force = False,
) -> None:
    """Run what a paper reports, and say which of its claims hold here."""
    if limit is not None and limit < 2:
        raise InputError(f"--limit is a whole number from 2 up, not {limit}.")
    pairs = [each.partition("=") for each in model or []]
    for given, (key, equal, place) in zip(model or [], pairs, strict=True):
        if not (key and equal and place):
            raise InputError(f"--model takes name=FOLDER, such as imdb=models/imdb, not {given!r}.")
    from raison.cli.progress import waiting

    with waiting("loading the libraries") as wait:
        from raison.studies.reproduce import reproduction_page as pages
        from raison.studies.reproduce import run_suite as study
        from raison.studies.reproduce.suite import suites

        if name is None:
            for suite in suites().values():
                print(f"{suite.name}  {suite.title} ({suite.paper})")
            return
        models = {key: place for key, _, place in pairs}
        inputs: list[str | Path | None] = [*models.values(), data_dir]
        check_places_of_reproduction(name, page=page, keep=keep, force=force, inputs=inputs)
        suite, outcomes = study.reproduce(
            name, models=models, limit=limit, data_dir=data_dir, seed=seed, keep=keep, step=wait
        )
        words = ["raison reproduce", suite.name, *(f"--model {key}=FOLDER" for key in models)]
        if limit:
            words.append(f"--limit {limit}")
        pictures = {}
        if page is not None:
            pictures = draw_page_figures(page, suite, outcomes)
        written = pages.suite_section(suite, outcomes, " ".join(words), pictures)
    print(written)
    if page is not None:
        text = pages.page_with_section(page, suite, written)
        with replacing_output(page) as half:
            half.write_text(text, encoding="utf-8")


def check_places_of_reproduction(
    name: str,
    *,
    page: Path | None,
    keep: Path | None,
    force: bool,
    inputs: Sequence[str | Path | None],
) -> None:
    """Refuse what can't be written to. A page of reproductions gets its section and the pictures of it anew without
    being asked; of other pages and pictures there is no telling whose they are."""
    from raison.studies.reproduce.part_store import PART
    from raison.studies.reproduce.reproduction_page import read_reproduction_page
    from raison.studies.reproduce.suite import suites

    if keep is not None:
        check_folder(keep, lambda file: PART.fullmatch(file) is not None, "parts of reproductions")
    if page is None:
        return
    known: set[str] = set()
    if page.is_file():
        known = set(read_reproduction_page(page).sections)
    check_outputs([page], force=force or known <= set(suites()), inputs=inputs)
    pictures = sorted((page.parent / "figures").glob(f"{name}[-.]*svg"))
    check_outputs(pictures, force=force or name in known, inputs=inputs)


def draw_page_figures(page: Path, suite: Suite, outcomes: Sequence[RunOutcome]) -> dict[str, str]:
    """The pictures of a suite, beside the page; where they are by the name of the run that they stand behind."""
    from raison.show.figure.curves import draw_curves

    evaluations = {}
    for outcome in outcomes:
        if outcome.evaluation is not None:
            evaluations[outcome.run.name] = outcome.evaluation
    if not suite.figures or not evaluations:
        return {}
    pictures = []
    if suite.together:
        first, last_run = next(iter(evaluations.values())), list(evaluations)[-1]
        together = replace(first, curves=curves_of_suite_outcomes(outcomes))
        pictures.append((suite.name, last_run, together))
    else:
        for run, evaluation in evaluations.items():
            if all(evaluation.has_key(key) for key in suite.figures):
                pictures.append((f"{suite.name}.{run}", run, evaluation))
    (page.parent / "figures").mkdir(exist_ok=True)
    places = {}
    for name, run, evaluation in pictures:
        file_name = re.sub(r"[^A-Za-z0-9.]+", "-", name)
        places[run] = f"figures/{file_name}.svg"
        draw_curves(evaluation, suite.figures, page.parent / places[run], axis=suite.axis)
    return places


def curves_of_suite_outcomes(outcomes: Sequence[RunOutcome]) -> dict[str, dict[str, list[float]]]:
    """The curves of several runs together, each named by its run."""
    together: dict[str, dict[str, list[float]]] = {}
    for outcome in outcomes:
        if outcome.evaluation is None:
            continue
        for key, curves in outcome.evaluation.curves.items():
            of_key = together.setdefault(key, {})
            for title, curve in curves.items():
                of_key[f"{outcome.run.name}: {title}"] = curve
    return together
