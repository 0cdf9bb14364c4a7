"""Runs of a suite beside each other: two models on the texts that both were asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from raison.core.evaluation import Cell, Evaluation
from raison.studies.compare import Pair, Verdict, compare_pairs
from raison.studies.reproduce.suite import ClaimAcross, RunMethod

__all__ = ["join_runs", "verdicts_across"]


def join_runs(runs: Mapping[str, Evaluation]) -> Evaluation | None:
    """Methods as "run: method" on the texts and columns that all runs have; None where no text, known by its id, is."""
    ids = shared_ids(list(runs.values()))
    if not ids or len(set(ids)) != len(ids):
        return None
    keys = shared_keys(list(runs.values()))
    cells: list[Cell] = []
    methods: list[str] = []
    for name, run in runs.items():
        number_of = {text.id: number for number, text in enumerate(run.texts)}
        numbers = [number_of[each] for each in ids]
        for cell in run.cells:
            if cell.key in keys:
                title = str(RunMethod(name, cell.method))
                cells.append(replace(cell_of_texts(cell, numbers), method=title))
        methods += [str(RunMethod(name, method)) for method in run.methods]

    first = next(iter(runs.values()))
    return replace(
        first,
        methods=tuple(methods),
        columns=tuple(column for column in first.columns if column.key in keys),
        cells=tuple(cells),
        texts=tuple(text for text in first.texts if text.id in set(ids)),
        curves={},
        costs={},
    )


def shared_ids(runs: Sequence[Evaluation]) -> list[str]:
    """Ids of the texts that all runs have, in the order of the first."""
    ids = [text.id for text in runs[0].texts]
    for run in runs[1:]:
        known = {text.id for text in run.texts}
        ids = [each for each in ids if each in known]
    return ids


def shared_keys(runs: Sequence[Evaluation]) -> set[str]:
    """Keys of the columns that all runs have."""
    keys = {column.key for column in runs[0].columns}
    for run in runs[1:]:
        keys &= {column.key for column in run.columns}
    return keys


def cell_of_texts(cell: Cell, numbers: Sequence[int]) -> Cell:
    """The cell with some of its texts only; its mean stays that of all."""
    return replace(
        cell,
        each=tuple(cell.each[number] for number in numbers),
        parts=of_texts(cell.parts, numbers),
        wholes=of_texts(cell.wholes, numbers),
        recall_parts=of_texts(cell.recall_parts, numbers),
        recall_wholes=of_texts(cell.recall_wholes, numbers),
    )


def of_texts(values: tuple[float, ...] | None, numbers: Sequence[int]) -> tuple[float, ...] | None:
    return None if values is None else tuple(values[number] for number in numbers)


def verdicts_across(
    claims: Sequence[ClaimAcross], runs: Mapping[str, Evaluation]
) -> list[tuple[ClaimAcross, Verdict]]:
    """Claims about several runs, as far as these are there; those about the same two are corrected together."""
    by_runs: dict[tuple[str, str], list[ClaimAcross]] = {}
    for claim in claims:
        names = (claim.first.run, claim.second.run)
        if all(name in runs for name in names):
            by_runs.setdefault(names, []).append(claim)

    verdicts: list[tuple[ClaimAcross, Verdict]] = []
    for names, about_runs in by_runs.items():
        joined = join_runs({name: runs[name] for name in names})
        if joined is None:
            continue
        columns = {column.key: column for column in joined.columns}
        measured = [claim for claim in about_runs if claim.key in columns]
        pairs = [
            Pair(str(claim.first), str(claim.second), columns[claim.key]) for claim in measured
        ]
        verdicts += zip(measured, compare_pairs(joined, pairs), strict=True)
    return verdicts
