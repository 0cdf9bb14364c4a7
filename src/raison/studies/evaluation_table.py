"""The table of an evaluation from the numbers of single texts: columns, cells with intervals, mean curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from raison.core.evaluation import Cell, Column
from raison.metrics.base import AveragedF1, Metric, Number, Numbers, Share
from raison.metrics.statistics import Interval, averaged_f1_interval, mean_interval, pooled_interval

__all__ = [
    "columns_of_metrics",
    "mean_curve",
    "names_of_curves",
    "table_cell",
    "table_numbers_by_key",
]


def columns_of_metrics(metrics: Sequence[Metric]) -> list[Column]:
    """A column for each number of each metric that is no curve."""
    columns = []
    for metric in metrics:
        for key in metric.scalar_keys():
            column = Column(
                key=key.name,
                metric=str(metric.spec()),
                higher=key.higher_is_better,
                pooled=key.pooled,
                paper=metric.paper,
            )
            columns.append(column)
    return columns


def names_of_curves(metrics: Sequence[Metric]) -> list[str]:
    """The names of all curves of all metrics."""
    return [key.name for metric in metrics for key in metric.curve_keys()]


def table_numbers_by_key(of_metrics: Iterable[Numbers]) -> Numbers:
    """The numbers of all metrics about one explanation, by their names."""
    numbers: Numbers = {}
    for of_metric in of_metrics:
        numbers.update(of_metric)
    return numbers


def mean_curve(rows: Sequence[Mapping[str, Number]], key: str) -> list[float]:
    """The mean of a curve over texts."""
    curves = [np.asarray(row[key]) for row in rows]
    mean: list[float] = np.mean(curves, axis=0).tolist()
    return mean


def table_cell(
    method: str, column: Column, values: Sequence[Number], *, level: float, seed: int
) -> Cell:
    """One number of a method over all texts, with its interval; `values` are those of the texts."""
    averaged = [value for value in values if isinstance(value, AveragedF1)]
    shares = [value for value in values if isinstance(value, Share)]
    each = [float(value) for value in values]

    if averaged:
        interval = averaged_f1_interval(averaged, level=level, seed=seed)
    elif column.pooled:
        interval = pooled_interval(shares, level=level, seed=seed)
    else:
        interval = mean_interval(each, level=level, seed=seed)

    cell = cell_with_interval(method, column, interval, each)
    if not column.pooled:
        return cell
    if averaged:
        return cell_with_averages(cell, averaged)
    return replace(
        cell, parts=parts_of_shares_in_cell(shares), wholes=wholes_of_shares_in_cell(shares)
    )


def cell_with_interval(
    method: str, column: Column, interval: Interval, each: Sequence[float]
) -> Cell:
    return Cell(
        method=method,
        key=column.key,
        value=table_number_or_none(interval.estimate),
        low=table_number_or_none(interval.low),
        high=table_number_or_none(interval.high),
        each=tuple(table_number_or_none(value) for value in each),
    )


def cell_with_averages(cell: Cell, values: Sequence[AveragedF1]) -> Cell:
    """The cell with the sums behind the F1 of averages, from which intervals and tests are computed anew."""
    precisions = [value.precision for value in values]
    recalls = [value.recall for value in values]
    return replace(
        cell,
        parts=parts_of_shares_in_cell(precisions),
        wholes=wholes_of_shares_in_cell(precisions),
        recall_parts=parts_of_shares_in_cell(recalls),
        recall_wholes=wholes_of_shares_in_cell(recalls),
    )


def parts_of_shares_in_cell(shares: Sequence[Share]) -> tuple[float, ...]:
    return tuple(float(share.part) for share in shares)


def wholes_of_shares_in_cell(shares: Sequence[Share]) -> tuple[float, ...]:
    return tuple(float(share.whole) for share in shares)


def table_number_or_none(value: float) -> float | None:
    """JSON has no NaN: what is not defined is None."""
    return None if np.isnan(value) else float(value)
