"""Runs of a suite beside each other: two models on the texts that both were asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from raison.core.evaluation import Cell, Evaluation
from raison.studies.compare import Pair, Verdict, compare_pairs
from raison.studies.reproduce.suite import Across

__all__ = ["compared", "joined"]


def joined(runs: Mapping[str, Evaluation]) -> Evaluation | None:
    """Methods as "run: method" on the texts and columns that all runs have; None where no text, known by its id, is."""
    first, *others = runs.values()
    ids = [text.id for text in first.texts]
    for other in others:
        known = {text.id for text in other.texts}
        ids = [each for each in ids if each in known]
    if not ids or len(set(ids)) != len(ids):
        return None
    keys = set.intersection(*({column.key for column in run.columns} for run in runs.values()))
    cells: list[Cell] = []
    for name, run in runs.items():
        place = {text.id: number for number, text in enumerate(run.texts)}
        chosen = [place[each] for each in ids]
        for cell in (cell for cell in run.cells if cell.key in keys):
            parts, wholes, recall_parts, recall_wholes = (
                None if values is None else tuple(values[k] for k in chosen)
                for values in (cell.parts, cell.wholes, cell.recall_parts, cell.recall_wholes)
            )
            each = tuple(cell.each[k] for k in chosen)
            made = replace(cell, method=f"{name}: {cell.method}", each=each, parts=parts, wholes=wholes)
            cells.append(replace(made, recall_parts=recall_parts, recall_wholes=recall_wholes))
    methods = tuple(f"{name}: {method}" for name, run in runs.items() for method in run.methods)
    texts = tuple(text for text in first.texts if text.id in set(ids))
    columns = tuple(column for column in first.columns if column.key in keys)
    return replace(first, methods=methods, columns=columns, cells=tuple(cells), texts=texts, curves={}, costs={})


def compared(claims: Sequence[Across], runs: Mapping[str, Evaluation]) -> list[tuple[Across, Verdict]]:
    """Claims about several runs, as far as these are there; those about the same two are corrected together."""
    found: list[tuple[Across, Verdict]] = []
    ready = [claim for claim in claims if claim.first[0] in runs and claim.second[0] in runs]
    both: dict[tuple[str, str], Evaluation | None] = {}
    for claim in ready:
        names = (claim.first[0], claim.second[0])
        both.setdefault(names, joined({name: runs[name] for name in names}))
    for names, evaluation in both.items():
        if evaluation is None:
            continue
        columns = {column.key: column for column in evaluation.columns}
        own = [claim for claim in ready if (claim.first[0], claim.second[0]) == names and claim.key in columns]
        pairs = [Pair(": ".join(claim.first), ": ".join(claim.second), columns[claim.key]) for claim in own]
        found += zip(own, compare_pairs(evaluation, pairs), strict=True)
    return found
