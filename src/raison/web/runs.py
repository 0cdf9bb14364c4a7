"""Run folders that the server shows: a table of rows, sorted and filtered by page, and single examples."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

from raison.core.errors import InputError
from raison.core.json_record import JsonObject
from raison.core.records import Explanation
from raison.runs.result_records import ExplanationRow, StoredNumbers, explanation_rows
from raison.runs.storage import Place, place_of
from raison.runs.store import records_of_run, spec_of_run
from raison.show.html.page_data import page_data

__all__ = ["PageRequest", "RunFolders"]

MOST = 200_000  # rows that are kept in memory; who has more asks them in SQL
SHORT = 240  # characters of a text in the list
LONGEST_PAGE = 500  # rows
SORTED_BY = ("index", "probability", "text", "label", "target", "method")


@dataclass(frozen=True)
class RunRow:
    """One explanation of a run, as the list shows it."""

    index: int
    id: str
    text: str  # its beginning
    label: str | None
    method: str
    target: str | None
    predicted: str | None
    probability: float | None
    failed: str | None
    numbers: dict[str, float]


@dataclass(frozen=True)
class RunTable:
    """A run as a list of light rows."""

    model: str
    data: str
    numbers: list[str]  # names of its metrics
    methods: list[str]
    rows: list[RunRow]
    searched: list[str]  # the text of each row in small letters


@dataclass(frozen=True, kw_only=True)
class PageRequest:
    """A part of the list: of one method or all, with some words in the text, by any column."""

    method: str = ""
    sort: str = "index"
    down: bool = False
    find: str = ""
    start: int = 0
    count: int = 50


@dataclass(frozen=True)
class RunPage:
    """A part of the list, with what the page says above it."""

    model: str
    data: str
    numbers: list[str]
    methods: list[str]
    found: int
    rows: list[RunRow]


class RunFolders:
    """Runs by name; each is read when it is first asked for."""

    def __init__(self, places: Mapping[str, str] | None = None):
        self.places: dict[str, Place] = {}
        for name, path in (places or {}).items():
            place = place_of(path)
            spec_of_run(place)  # a folder that is no run is refused at the start
            self.places[name] = place
        self.tables: dict[str, RunTable] = {}
        self.lock = threading.Lock()

    def names(self) -> list[str]:
        return list(self.places)

    def place_named(self, name: str) -> Place:
        if name not in self.places:
            raise InputError(
                f"There is no run called {name[:80]!r} here: name it when the server starts (--run)."
            )
        return self.places[name]

    def table(self, name: str) -> RunTable:
        """The rows of a run, which are read once."""
        place = self.place_named(name)
        with self.lock:
            if name not in self.tables:
                self.tables[name] = read_run_table(place)
            return self.tables[name]

    def page(self, name: str, request: PageRequest) -> JsonObject:
        """A part of the list."""
        table = self.table(name)
        if request.sort not in (*SORTED_BY, *table.numbers):
            known = ", ".join((*SORTED_BY, *table.numbers))
            raise InputError(f"A run is sorted by {known}, not by {request.sort[:80]!r}.")
        if not 0 <= request.start <= MOST or not 1 <= request.count <= LONGEST_PAGE:
            raise InputError("A part of a list begins at 0 or later and has 1 to 500 rows.")
        rows = sorted_run_rows(matching_run_rows(table, request), table, request)
        page = RunPage(
            model=table.model,
            data=table.data,
            numbers=table.numbers,
            methods=table.methods,
            found=len(rows),
            rows=rows[request.start : request.start + request.count],
        )
        return asdict(page)

    def example(self, name: str, index: int) -> JsonObject:
        """All explanations of one text, as records that the page draws."""
        place = self.place_named(name)
        model = spec_of_run(place).model
        explanations = []
        for record in records_of_run(place):
            if record.index != index:
                continue
            if record.failure is not None:
                raise InputError(f"This text could not be explained: {record.failure.reason}")
            for stored in record.explanations:
                encoding = {**record.encodings[stored["encoding"]], "id": record.example.id}
                explanations.append({**stored, "encoding": encoding, "model": model, "cost": {}})
        if not explanations:
            raise InputError(f"This run has no example {str(index)[:20]}: it may not be done yet.")
        return {**page_data([Explanation.from_dict(each) for each in explanations]), "python": []}


def matching_run_rows(table: RunTable, request: PageRequest) -> list[RunRow]:
    """The rows of a method, or of all, with the words that are looked for."""
    words = request.find.casefold()
    matching = []
    for row, searched in zip(table.rows, table.searched, strict=True):
        if words in searched and request.method in ("", row.method):
            matching.append(row)
    return matching


def sorted_run_rows(rows: list[RunRow], table: RunTable, request: PageRequest) -> list[RunRow]:
    """The rows by a column; what is not known comes last."""
    value_of: Callable[[RunRow], Any] = attrgetter(request.sort)
    if request.sort in table.numbers:
        value_of = number_in_run_row(request.sort)
    known = [row for row in rows if value_of(row) is not None]
    known.sort(key=lambda row: (value_of(row), row.index), reverse=request.down)
    return known + [row for row in rows if value_of(row) is None]


def number_in_run_row(key: str) -> Callable[[RunRow], float | None]:
    """What reads one number of a row."""

    def number_of(row: RunRow) -> float | None:
        return row.numbers.get(key)

    return number_of


def read_run_table(place: Place) -> RunTable:
    """All rows of a run."""
    spec = spec_of_run(place)
    rows: list[RunRow] = []
    searched: list[str] = []
    numbers: dict[str, None] = {}
    for record in records_of_run(place):
        for stored in explanation_rows(record):
            if len(rows) >= MOST:
                raise InputError(
                    f"This run has more than {MOST} explanations: ask it in SQL instead (raison store query)."
                )
            text = stored.text if stored.pair is None else f"{stored.text} ‖ {stored.pair}"
            row = run_row_for_list(stored, text[:SHORT])
            rows.append(row)
            searched.append(text.casefold())
            numbers.update(dict.fromkeys(row.numbers))
    methods = dict.fromkeys(row.method for row in rows)
    return RunTable(
        model=spec.model,
        data=spec.data,
        numbers=list(numbers),
        methods=list(methods),
        rows=rows,
        searched=searched,
    )


def run_row_for_list(stored: ExplanationRow, text: str) -> RunRow:
    """What the list shows of an explanation."""
    return RunRow(
        index=stored.index,
        id=stored.id,
        text=text,
        label=stored.label,
        method=stored.method,
        target=stored.target,
        predicted=stored.predicted,
        probability=stored.probability,
        failed=stored.failed,
        numbers=single_numbers(stored.numbers),
    )


def single_numbers(stored: StoredNumbers) -> dict[str, float]:
    """The numbers of a row that are no curves; of a share the ratio, where there is one."""
    numbers = {}
    for key, value in stored.items():
        if isinstance(value, float):
            numbers[key] = value
    for key, value in stored.items():
        if isinstance(value, list) and value[1]:
            numbers[key] = value[0] / value[1]
    return numbers
