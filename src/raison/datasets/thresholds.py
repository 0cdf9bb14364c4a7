"""Thresholds that make classes of scores between 0 and 1, and balanced labels."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.dataset_rows import Broken, Row, Rows

__all__ = ["examples_with_clear_scores", "label_of_score"]

LOW, HIGH = 0.4, 0.6


def label_of_score(score: str | float, labels: tuple[str, ...]) -> str | None:
    """The first label up to 0.4, the second from 0.6 on, None between (P1 2.3)."""
    try:
        value = float(score)
    except (TypeError, ValueError):
        value = float("nan")
    if not 0 <= value <= 1:
        raise InputError(f"the score {score!r} is no number from 0 to 1.")

    if value <= LOW:
        return labels[0]
    if value >= HIGH:
        return labels[1]
    return None


def drop_unclear_scores(rows: Iterable[Row[Example | None] | Broken]) -> Rows[Example]:
    """Without the reviews that say nothing clear, which are read as None."""
    for row in rows:
        if isinstance(row, Broken):
            yield row
        elif row.value is not None:
            yield row.with_value(row.value)


def examples_with_clear_scores(
    rows: Iterable[Row[Example | None] | Broken],
    labels: tuple[str, ...],
    *,
    balanced: bool,
) -> Rows[Example]:
    """The reviews that say something clear; `balanced`: as many of each label."""
    clear = drop_unclear_scores(rows)
    if not balanced:
        return clear
    return balance_labels(clear, labels)


def balance_labels(rows: Rows[Example], labels: tuple[str, ...]) -> Rows[Example]:
    """One text of each label in turn, as long as there are some of all."""
    waiting: dict[object, deque[Row[Example]]] = {label: deque() for label in labels}
    for row in rows:
        if isinstance(row, Broken):
            yield row
            continue

        of_class = waiting[row.value.label]
        of_class.append(row)
        if all(waiting.values()):
            for rows_of_class in waiting.values():
                yield rows_of_class.popleft()
