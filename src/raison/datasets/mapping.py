"""Which column of a user's table is which field of an example."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from raison.core.errors import InputError, RaisonError
from raison.core.records import Example, Slot, Span
from raison.core.spec import one_of, place_of, whole
from raison.datasets.base import SEGMENTS
from raison.datasets.gold import NUMBERS, VOTES, Annotation, Meaning, Place, annotators_in, spans_of
from raison.datasets.marked import signs, unmarked
from raison.datasets.nested import Missing, names_in, reach
from raison.datasets.parallel import aligned, links_of
from raison.datasets.rows import Row

__all__ = ["FIELDS", "Columns", "Written", "WrongColumns"]

FIELDS = ("text", "pair", "id", "target", "label", "gold", "alignment")  # what may be mapped


@dataclass(frozen=True)
class Written:
    """The texts of a record, and what people have marked in them, before numbers are read."""

    places: dict[str, Place | None]  # of each text by its name
    usual: str  # the text that marks are about which name none
    annotations: list[Annotation]
    marks: tuple[Span, ...] = ()  # what is marked in the texts themselves


class WrongColumns(RaisonError):
    """A table without a column that is needed: no line of it can be read, so none is merely broken."""

    exit_code = 2


@dataclass(frozen=True)
class Columns:
    """How a record with named (or numbered) values becomes an example."""

    names: Mapping[str, Any] = field(default_factory=dict)  # field -> column; a field that is not here has its own name
    task: str = ""  # one of SEGMENTS; empty: pair where there are two texts, classification where there is a label
    labels: tuple[str, ...] = ()  # names of classes: a label may be a name or its number
    segment: str = ""  # the text that gold spans without a name are about
    filled: bool = False  # a table: a column that is there must have a value for label
    numbers: str = ""  # what the numbers of gold count; one of NUMBERS, empty: what the column shows
    annotators: str = "majority"  # which marks of several annotators count; one of VOTES
    marked: str = ""  # the sign around words that are marked in the text
    base: int = 0  # the number of the first word in alignments
    meaning: Meaning = Meaning()  # what the numbers of gold are taken for

    def __post_init__(self) -> None:
        if self.task:
            one_of("task", self.task, tuple(SEGMENTS))
        if self.numbers:
            one_of("numbers", self.numbers, NUMBERS)
        one_of("annotators", self.annotators, VOTES)
        whole("base", self.base, 0, 1)
        if self.marked:
            signs(self.marked)  # refuses what is no sign

    def __call__(self, row: Row[Mapping[Any, Any]]) -> Example:
        record = row.value
        found = {name: self.value(record, name, row.file) for name in FIELDS}
        text, pair = self.texts(found)
        written = self.marks_on(text, pair, found)
        used = self.used()
        rest = {str(k): v for k, v in record.items() if k not in used and k not in ("slots", "meta")}
        meta = record.get("meta") if isinstance(record.get("meta"), Mapping) else None
        made = Example(
            text,
            pair,
            id=str(row.line if found["id"] in (None, "") else found["id"]),
            target=found["target"],
            label=self.label(found["label"], "label" in self.names or (self.filled and "label" in record)),
            gold=(
                *written.marks,
                *spans_of(written.annotations, written.places, written.usual, self.meaning, self.annotators),
            ),
            slots=tuple(map(Slot.from_dict, record.get("slots") or ())),
            meta={**{k: writable(v) for k, v in rest.items()}, **writable(meta or {})},
        )
        return made if found["alignment"] is None else self.with_links(made, found["alignment"])

    def written(self, record: Mapping[Any, Any], file: str) -> Written:
        """The texts and the marks of a record."""
        given = {name: self.value(record, name, file) for name in ("text", "pair", "gold")}
        text, pair = self.texts(given)
        return self.marks_on(text, pair, given)

    def marks_on(self, text: str, pair: str | None, given: Mapping[str, Any]) -> Written:
        """What is marked in the texts, by signs in them or by the gold."""
        names = SEGMENTS[self.task or ("pair" if pair is not None else "text")]
        usual = self.segment or (names[-1] if self.task == "qa" else names[0])
        places: dict[str, Place | None] = {}
        marks: list[Span] = []
        for name, field_name, plain in zip(names, ("text", "pair"), (text, pair), strict=False):
            places[name] = place_in(given[field_name], plain)
            if self.marked and isinstance(given[field_name], str):
                marks += [Span(start, end, name) for start, end in unmarked(given[field_name], self.marked)[1]]
        copy = given["gold"]
        if self.marked and isinstance(copy, str) and places.get(usual) is not None:
            return Written(places, usual, [], tuple(self.marks_of_copy(copy, places, usual)))
        if given["gold"] is None or given["gold"] == "":
            return Written(places, usual, [], tuple(marks))
        if usual not in places or places[usual] is None:
            raise InputError(f"the gold is about {usual!r}, but the texts are {', '.join(places)}.")
        return Written(places, usual, self.annotations(given["gold"], places[usual]), tuple(marks))

    def annotations(self, given: Any, place: Place | None) -> list[Annotation]:
        """What each annotator has marked: several columns hold one each."""
        if place is None:
            return []
        if not isinstance(self.names.get("gold"), tuple):
            return annotators_in(given, place)
        found = []
        for number, one in enumerate(given):
            people = annotators_in(one, place)
            if len(people) > 1:
                raise InputError(f"column {number + 1} of the gold has marks of several annotators: name it alone.")
            found += people or [Annotation()]
        return found

    def marks_of_copy(self, copy: str, places: Mapping[str, Place | None], usual: str) -> list[Span]:
        """What is marked in a copy of a text, which must be the same text."""
        plain, found = unmarked(copy, self.marked)
        place = places[usual]
        if place is None or plain.strip() != place.text.strip():
            raise InputError("the gold is another text than the one that it marks.")
        moved = (len(place.text) - len(place.text.lstrip())) - (len(plain) - len(plain.lstrip()))
        return [Span(start + moved, end + moved, usual) for start, end in found]

    def texts(self, found: Mapping[str, Any]) -> tuple[str, str | None]:
        """The text and the other one of a pair, without the signs around marked words."""
        text, pair = words(found["text"]), words(found["pair"])
        if text is None:
            raise InputError("it has no text.")
        if self.marked:
            text = unmarked(text, self.marked)[0] if isinstance(text, str) else text
            pair = unmarked(pair, self.marked)[0] if isinstance(pair, str) else pair
        if not isinstance(text, str) or not isinstance(pair, (str, type(None))):
            Example(text, pair)  # says which of them is no text
        return text, pair

    def with_links(self, made: Example, given: Any) -> Example:
        """The example with the links between its words and those of its translation, the label."""
        if not isinstance(made.label, str):
            raise InputError("an alignment needs a translation: say which column it is, as in (label=target).")
        found = aligned(made.text, made.label, links_of(given, self.base), id=made.id, base=self.base)
        return Example(
            made.text, id=made.id, target=made.target, label=made.label, gold=made.gold, slots=made.slots,
            meta={**made.meta, **found.meta},
        )  # fmt: skip

    def numbers_of_columns(self) -> set[int]:
        """The columns that are named by number."""
        found: set[int] = set()
        for column in self.names.values():
            every = column if isinstance(column, tuple) else (column,)
            found |= {each for each in every if isinstance(each, int)}
        return found

    def used(self) -> set[Any]:
        """Columns that became a field; the others go to the meta."""
        found: set[Any] = set()
        for name in FIELDS:
            column = self.names.get(name, name)
            for each in column if isinstance(column, tuple) else (column,):
                found |= {each, str(each)}
        return found

    def value(self, record: Mapping[Any, Any], name: str, file: str) -> Any:
        """What stands in the column of a field; nothing where the column is not there and nobody has named it.

        Gold may stand in several columns, one of each annotator.
        """
        column = self.names.get(name, name)
        if name == "gold" and isinstance(column, tuple):
            values = [self.cell(record, name, each, file) for each in column]
            return None if all(value is None for value in values) else values
        return self.cell(record, name, column, file)

    def cell(self, record: Mapping[Any, Any], name: str, column: Any, file: str) -> Any:
        try:
            found = reach(record, column)
        except Missing:
            if name not in self.names and name != "text":
                return None
            known = ", ".join(names_in(record)) or "none"
            if self.filled:
                first = next(iter(record), "COLUMN")
                raise WrongColumns(
                    f"{file!r} has no column {column!r} for {name}; its columns are {known}. Say which one it is: "
                    f"{file}({name}={first})."
                ) from None
            raise InputError(f"there is no column {column!r} for {name}; the columns are {known}.") from None
        return None if self.filled and found == "" else found

    def label(self, given: Any, wanted: bool) -> Any:
        if isinstance(given, list):
            if any(isinstance(each, float) and math.isnan(each) for each in given):
                raise InputError("one of its labels is no number.")
            return [self.label(each, True) for each in given]
        if given is None or given == "":
            if wanted or self.labels:
                raise InputError("it has no label.")
            return None
        if not self.labels or given in self.labels:
            return given
        number = str(given).strip()
        if (place := place_of(number, len(self.labels))) is not None:
            return self.labels[place]
        if number == "-1":  # what Hugging Face writes where there is none
            raise InputError("it has no label.")
        raise InputError(f"the label {given!r} is none of {', '.join(self.labels)}.")


def place_in(given: Any, plain: str | None) -> Place | None:
    """A text and its tokens."""
    if plain is None:
        return None
    return Place(plain, tuple(given) if isinstance(given, list) else None)


def words(value: Any) -> Any:
    """A text; a list of words becomes one."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return " ".join(value)
    return value


def writable(value: Any) -> Any:
    """What JSON can hold; anything else as text."""
    if value is None or isinstance(value, (str, int, bool)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, (list, tuple)):
        return [writable(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): writable(each) for key, each in value.items()}
    return str(value)
