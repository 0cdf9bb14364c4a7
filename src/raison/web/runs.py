"""Run folders that were named at the start: their examples as a list, and one example with all its explanations."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raison.core.errors import InputError
from raison.runs.rows import rows_of
from raison.runs.storage import Place, place_of
from raison.runs.store import records, spec_of

__all__ = ["Shelf"]

MOST = 200_000  # rows that are kept in memory; who has more asks them in SQL
SHORT = 240  # characters of a text in the list
PLAIN = ("index", "probability", "text", "label", "target", "method")


@dataclass(frozen=True)
class Opened:
    """A run as a list of light rows."""

    rows: list[dict[str, Any]]
    numbers: list[str]  # names of its metrics
    methods: list[str]
    about: dict[str, Any]


class Shelf:
    """Runs by name; each is read when it is first asked for."""

    def __init__(self, places: Mapping[str, str] | None = None):
        self.places: dict[str, Place] = {name: place_of(path) for name, path in (places or {}).items()}
        for place in self.places.values():
            spec_of(place)  # a folder that is no run is refused at the start
        self.opened: dict[str, Opened] = {}
        self.lock = threading.Lock()

    def names(self) -> list[str]:
        return list(self.places)

    def run(self, name: str) -> Opened:
        if name not in self.places:
            raise InputError(f"There is no run called {name[:80]!r} here: name it when the server starts (--run).")
        with self.lock:
            if name not in self.opened:
                self.opened[name] = opened(self.places[name])
            return self.opened[name]

    def page(self, name: str, method: str, sort: str, down: bool, find: str, start: int, count: int) -> dict[str, Any]:
        """A part of the list: of one method or all, with some words in the text, by any column."""
        run = self.run(name)
        if sort not in (*PLAIN, *run.numbers):
            raise InputError(f"A run is sorted by {', '.join((*PLAIN, *run.numbers))}, not by {sort[:80]!r}.")
        if not 0 <= start <= MOST or not 1 <= count <= 500:
            raise InputError("A part of a list begins at 0 or later and has 1 to 500 rows.")
        wanted = find.casefold()
        rows = [row for row in run.rows if (not method or row["method"] == method) and wanted in row["search"]]
        value = (lambda row: row["numbers"].get(sort)) if sort in run.numbers else (lambda row: row[sort])
        known = [row for row in rows if value(row) is not None]
        known.sort(key=lambda row: (value(row), row["index"]), reverse=down)
        ordered = known + [row for row in rows if value(row) is None]  # what is not known comes last
        part = [{key: each for key, each in row.items() if key != "search"} for row in ordered[start : start + count]]
        return {**run.about, "numbers": run.numbers, "methods": run.methods, "found": len(rows), "rows": part}

    def example(self, name: str, index: int) -> dict[str, Any]:
        """All explanations of one text, as records that the page draws."""
        self.run(name)
        model = spec_of(self.places[name]).model
        found = []
        for record in records(self.places[name]):
            if record.index != index:
                continue
            if record.failure is not None:
                raise InputError(f"This text could not be explained: {record.failure.reason}")
            for each in record.explanations:
                encoding = {**record.encodings[each["encoding"]], "id": record.example.id}
                found.append({**each, "encoding": encoding, "model": model, "cost": {}})
        if not found:
            raise InputError(f"This run has no example {str(index)[:20]}: it may not be done yet.")
        return {"explanations": found, "python": []}


def opened(place: Place) -> Opened:
    spec = spec_of(place)
    rows: list[dict[str, Any]] = []
    numbers: dict[str, None] = {}
    for record in records(place):
        for row in rows_of(record):
            if len(rows) >= MOST:
                raise InputError(
                    f"This run has more than {MOST} explanations: ask it in SQL instead (raison store query)."
                )
            told = {key: value for key, value in row.numbers.items() if isinstance(value, float)}
            told |= {k: v[0] / v[1] for k, v in row.numbers.items() if isinstance(v, list) and v[1]}
            numbers |= dict.fromkeys(told)
            text = row.text if row.pair is None else f"{row.text} ‖ {row.pair}"
            rows.append(
                {
                    "index": row.index, "id": row.id, "text": text[:SHORT], "label": row.label,
                    "method": row.method, "target": row.target, "predicted": row.predicted,
                    "probability": row.probability, "failed": row.failed, "numbers": told,
                    "search": text.casefold(),
                }
            )  # fmt: skip
    methods = list(dict.fromkeys(row["method"] for row in rows))
    return Opened(rows, list(numbers), methods, {"model": spec.model, "data": spec.data})
