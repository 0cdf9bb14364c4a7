"""Classes from scores between 0 and 1, and as many texts of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.rows import Broken, Row, Rows

__all__ = ["balance_labels", "drop_unclear", "label_of_score"]

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


def drop_unclear(rows: Iterable[Row[Example | None] | Broken]) -> Rows[Example]:
    """Without the reviews that say nothing clear, which are read as None."""
    for row in rows:
        if isinstance(row, Broken):
            yield row
        elif row.value is not None:
            yield Row(row.file, row.line, row.value, row.mended)


def balance_labels(rows: Rows[Example], labels: tuple[str, ...]) -> Rows[Example]:
    """One text of each label in turn, as long as there are some of all."""
    waiting: dict[object, deque[Row[Example]]] = {label: deque() for label in labels}
    for row in rows:
        if isinstance(row, Broken):
            yield row
            continue

        waiting[row.value.label].append(row)
        if all(waiting.values()):
            for label in labels:
                yield waiting[label].popleft()
