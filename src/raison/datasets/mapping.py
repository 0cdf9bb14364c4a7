"""Which column of a user's table is which field of an example."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from raison.datasets.base import SEGMENTS
from raison.datasets.rows import Row
from raison.datasets.spans import marked, stated, tokens
from raison.errors import InputError, RaisonError
from raison.spec import one_of, place_of
from raison.types import Example, Slot, Span

__all__ = ["FIELDS", "Columns", "WrongColumns"]

FIELDS = ("text", "pair", "id", "target", "label", "gold")  # what may be mapped


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

    def __post_init__(self) -> None:
        if self.task:
            one_of("task", self.task, tuple(SEGMENTS))

    def __call__(self, row: Row[Mapping[Any, Any]]) -> Example:
        record = row.value
        found = {name: self.value(record, name, row.file) for name in FIELDS}
        text, pair = words(found["text"]), words(found["pair"])
        if text is None:
            raise InputError("it has no text.")
        used = {self.names.get(name, name) for name in FIELDS}
        rest = {str(k): v for k, v in record.items() if k not in used and k not in ("slots", "meta")}
        meta = record.get("meta") if isinstance(record.get("meta"), Mapping) else None
        return Example(
            text,
            pair,
            id=str(row.line if found["id"] in (None, "") else found["id"]),
            target=found["target"],
            label=self.label(found["label"], "label" in self.names or (self.filled and "label" in record)),
            gold=self.gold(found["gold"], text, pair),
            slots=tuple(map(Slot.from_dict, record.get("slots") or ())),
            meta={**{k: writable(v) for k, v in rest.items()}, **writable(meta or {})},
        )

    def value(self, record: Mapping[Any, Any], name: str, file: str) -> Any:
        """What stands in the column of a field; nothing where the column is not there and nobody has named it."""
        column = self.names.get(name, name)
        if column not in record:
            if name in self.names or name == "text":
                known = ", ".join(map(str, record)) or "none"
                if self.filled:
                    first = next(iter(record), "COLUMN")
                    raise WrongColumns(
                        f"{file!r} has no column {column!r} for {name}; its columns are {known}. Say which one it is: "
                        f"{file}({name}={first})."
                    )
                raise InputError(f"there is no column {column!r} for {name}; the columns are {known}.")
            return None
        found = record[column]
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

    def gold(self, given: Any, text: str, pair: str | None) -> tuple[Span, ...]:
        """Spans of a list of [start, end], of objects with start and end, or of 0 and 1 for each token."""
        if isinstance(given, str) and given.strip():
            try:
                given = json.loads(given)
            except json.JSONDecodeError as error:
                raise InputError(f"the gold is no list of spans or of 0 and 1 ({error}).") from None
        if given is None or given in ("", []):
            return ()
        if not isinstance(given, list):
            raise InputError(f"the gold is no list of spans or of 0 and 1 but {type(given).__name__}.")
        names = SEGMENTS[self.task or ("pair" if pair is not None else "text")]
        usual = self.segment or (names[-1] if self.task == "qa" else names[0])
        texts = dict(zip(names, (text, pair), strict=False))
        if all(isinstance(mark, (bool, int)) for mark in given):
            return marked(tokens(known(texts, usual)), given, usual)
        return tuple(self.span(piece, texts, usual) for piece in given)

    def span(self, piece: Any, texts: dict[str, str | None], usual: str) -> Span:
        if isinstance(piece, Mapping) and {"start", "end"} <= set(piece):
            segment = piece.get("segment") or usual
            return stated(known(texts, segment), piece["start"], piece["end"], piece.get("text"), segment)
        if isinstance(piece, list) and len(piece) == 2:
            return stated(known(texts, usual), piece[0], piece[1], None, usual)
        raise InputError(f"{piece!r} is no span: write [start, end].")


def known(texts: dict[str, str | None], segment: str) -> str:
    text = texts.get(segment)
    if text is None:
        raise InputError(f"the gold is about {segment!r}, but the texts are {', '.join(texts)}.")
    return text


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
