"""The column mapping of a user's table: which column is which field of an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from raison.core.errors import InputError, RaisonError
from raison.core.parameters import check_choice, check_integer
from raison.datasets.annotations import NUMBERS, VOTES, NumberMeaning
from raison.datasets.faults import SEGMENTS
from raison.datasets.inline_marks import inline_mark_patterns
from raison.datasets.nested_columns import MissingColumn, RawRecord, column_names, find_nested_cell

__all__ = ["FIELDS", "Cells", "ColumnMapping", "WrongColumns"]


@dataclass(frozen=True)
class Cells:
    """What stands in the columns of a record, by field; None: nothing."""

    text: object = None
    pair: object = None
    id: object = None
    target: object = None
    label: object = None
    gold: object = None  # of several columns a list
    alignment: object = None


FIELDS = tuple(item.name for item in fields(Cells))  # what may be mapped


class WrongColumns(RaisonError):
    """A table without a column that is needed: no line of it can be read, so none is merely broken."""

    exit_code = 2


@dataclass(frozen=True)
class ColumnMapping:
    """How a record with named (or numbered) values becomes an example."""

    names: Mapping[str, object] = field(
        default_factory=dict
    )  # field -> column; one that is not here has its own name
    task: str = ""  # one of SEGMENTS; empty: pair where there are two texts, classification where there is a label
    labels: tuple[str, ...] = ()  # names of classes: a label may be a name or its number
    segment: str = ""  # the text that gold spans without a name are about
    filled: bool = False  # a table: a column that is there must have a value for label
    # what the numbers of gold count; one of NUMBERS, empty: what the column shows
    numbers: str = ""
    annotators: str = "majority"  # which marks of several annotators count; one of VOTES
    marked: str = ""  # the sign around words that are marked in the text
    base: int = 0  # the number of the first word in alignments
    meaning: NumberMeaning = NumberMeaning()  # what the numbers of gold are taken for

    def __post_init__(self) -> None:
        if self.task:
            check_choice("task", self.task, tuple(SEGMENTS))
        if self.numbers:
            check_choice("numbers", self.numbers, NUMBERS)
        check_choice("annotators", self.annotators, VOTES)
        check_integer("base", self.base, 0, 1)
        if self.marked:
            inline_mark_patterns(self.marked)  # refuses what is no sign

    def column_of(self, name: str) -> object:
        """The column of a field: a name or a number, or for gold a tuple of them, one of each annotator."""
        return self.names.get(name, name)

    def columns_of(self, name: str) -> tuple[object, ...]:
        """The one column of a field, or all."""
        column = self.column_of(name)
        return column if isinstance(column, tuple) else (column,)

    @property
    def has_several_gold_columns(self) -> bool:
        return isinstance(self.names.get("gold"), tuple)

    def cells_of(self, record: RawRecord, file: str, wanted: tuple[str, ...] = FIELDS) -> Cells:
        """What stands in the columns of the fields that are wanted."""
        values = {name: self.value_of(record, name, file) for name in wanted}
        return Cells(**values)

    def value_of(self, record: RawRecord, name: str, file: str) -> object:
        """What stands in the column of a field; nothing where the column is not there and nobody has named it."""
        if name != "gold" or not self.has_several_gold_columns:
            column = self.column_of(name)
            return self.cell(record, column, name=name, file=file)

        values = []
        for column in self.columns_of(name):
            values.append(self.cell(record, column, name=name, file=file))
        if all(value is None for value in values):
            return None
        return values

    def cell(
        self,
        record: RawRecord,
        column: object,
        *,
        name: str,
        file: str,
    ) -> object:
        """What stands in one column of a field."""
        try:
            value = find_nested_cell(record, column)
        except MissingColumn:
            needed = name in self.names or name == "text"
            if not needed:
                return None
            raise self.missing_column(record, column, name=name, file=file) from None
        return None if self.filled and value == "" else value

    def missing_column(
        self,
        record: RawRecord,
        column: object,
        *,
        name: str,
        file: str,
    ) -> RaisonError:
        """What to say about a column that is needed and not there."""
        names = column_names(record)
        known = ", ".join(names) or "none"
        if not self.filled:
            return InputError(f"there is no column {column!r} for {name}; the columns are {known}.")

        first = next(iter(record), "COLUMN")
        return WrongColumns(
            f"{file!r} has no column {column!r} for {name}; its columns are {known}. Say which one it is: "
            f"{file}({name}={first})."
        )

    def numbers_of_columns(self) -> set[int]:
        """The columns that are named by number."""
        numbers: set[int] = set()
        for name in self.names:
            numbers |= {column for column in self.columns_of(name) if isinstance(column, int)}
        return numbers

    def used_columns(self) -> set[object]:
        """Columns that became a field; the others go to the meta."""
        used: set[object] = set()
        for name in FIELDS:
            for column in self.columns_of(name):
                used |= {column, str(column)}
        return used

    def is_label_needed(self, record: RawRecord) -> bool:
        """Whether a record without a label is broken."""
        return "label" in self.names or (self.filled and "label" in record)
