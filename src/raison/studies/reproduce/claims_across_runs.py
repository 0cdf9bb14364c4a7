"""Claims about two runs of a suite: the runs' evaluations joined on the texts of both, and the verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from raison.core.evaluation import Cell, Evaluation
from raison.studies.compare_methods import Pair, Verdict, compare_pairs
from raison.studies.reproduce.suite import ClaimAcross, RunMethod

__all__ = ["join_runs", "verdicts_across"]


def join_runs(runs: Mapping[str, Evaluation]) -> Evaluation | None:
    """Methods as "run: method" on the texts and columns that all runs have; None where no text, known by its id, is."""
    ids = text_ids_in_all_runs(list(runs.values()))
    if not ids or len(set(ids)) != len(ids):
        return None
    keys = column_keys_in_all_runs(list(runs.values()))
    cells: list[Cell] = []
    methods: list[str] = []
    for name, run in runs.items():
        number_of = {text.id: number for number, text in enumerate(run.texts)}
        numbers = [number_of[text_id] for text_id in ids]
        for cell in run.cells:
            if cell.key in keys:
                title = str(RunMethod(name, cell.method))
                cells.append(replace(cell_of_joined_texts(cell, numbers), method=title))
        for method in run.methods:
            methods.append(str(RunMethod(name, method)))

    first = next(iter(runs.values()))
    columns = []
    for column in first.columns:
        if column.key in keys:
            columns.append(column)
    texts = []
    for text in first.texts:
        if text.id in set(ids):
            texts.append(text)
    return replace(
        first,
        methods=tuple(methods),
        columns=tuple(columns),
        cells=tuple(cells),
        texts=tuple(texts),
        curves={},
        costs={},
    )


def text_ids_in_all_runs(runs: Sequence[Evaluation]) -> list[str]:
    """Ids of the texts that all runs have, in the order of the first."""
    known: set[str] = set(text_ids_of_run(runs[0]))
    for run in runs[1:]:
        known &= set(text_ids_of_run(run))

    shared = []
    for text_id in text_ids_of_run(runs[0]):
        if text_id in known:
            shared.append(text_id)
    return shared


def text_ids_of_run(run: Evaluation) -> list[str]:
    """The ids of the texts of a run, in order."""
    return [text.id for text in run.texts]


def column_keys_in_all_runs(runs: Sequence[Evaluation]) -> set[str]:
    """Keys of the columns that all runs have."""
    every_key = []
    for run in runs:
        keys = {column.key for column in run.columns}
        every_key.append(keys)
    return set.intersection(*every_key)


def cell_of_joined_texts(cell: Cell, numbers: Sequence[int]) -> Cell:
    """The cell with some of its texts only; its mean stays that of all."""
    each = [cell.each[number] for number in numbers]
    return replace(
        cell,
        each=tuple(each),
        parts=values_of_joined_texts(cell.parts, numbers),
        wholes=values_of_joined_texts(cell.wholes, numbers),
        recall_parts=values_of_joined_texts(cell.recall_parts, numbers),
        recall_wholes=values_of_joined_texts(cell.recall_wholes, numbers),
    )


def values_of_joined_texts(
    values: tuple[float, ...] | None, numbers: Sequence[int]
) -> tuple[float, ...] | None:
    """The values of some texts, by the numbers of these; None where there are no values."""
    if values is None:
        return None
    chosen = [values[number] for number in numbers]
    return tuple(chosen)


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
        measured = [claim for claim in about_runs if joined.has_key(claim.key)]
        pairs = []
        for claim in measured:
            column = joined.column(claim.key)
            pairs.append(Pair(str(claim.first), str(claim.second), column))
        verdicts += zip(measured, compare_pairs(joined, pairs), strict=True)
    return verdicts
