"""Classes from scores between 0 and 1, and as many texts of each."""

from __future__ import annotations

from collections import deque
from typing import Any

from raison.core.errors import InputError
from raison.datasets.rows import Broken, Row, Rows

__all__ = ["as_many", "decided", "with_label"]

LOW, HIGH = 0.4, 0.6


def decided(score: Any, labels: tuple[str, ...]) -> str | None:
    """The first label up to 0.4, the second from 0.6 on, None between (P1 2.3)."""
    try:
        value = float(score)
    except (TypeError, ValueError):
        value = float("nan")
    if not 0 <= value <= 1:
        raise InputError(f"the score {score!r} is no number from 0 to 1.")
    return labels[0] if value <= LOW else labels[1] if value >= HIGH else None


def with_label(rows: Rows[Any]) -> Rows[Any]:
    """Without the reviews that say nothing clear, which are read as None."""
    return (row for row in rows if isinstance(row, Broken) or row.value is not None)


def as_many(rows: Rows[Any], labels: tuple[str, ...]) -> Rows[Any]:
    """One text of each label in turn, as long as there are some of all."""
    waiting: dict[Any, deque[Row[Any]]] = {label: deque() for label in labels}
    for row in rows:
        if isinstance(row, Broken):
            yield row
            continue
        waiting[row.value.label].append(row)
        if all(waiting.values()):
            for label in labels:
                yield waiting[label].popleft()
