"""The format of the ERASER benchmark: annotations in JSON lines, documents of whitespace tokens beside them.

DeYoung et al. 2020, ERASER: A Benchmark to Evaluate Rationalized NLP Models. Evidence is given by token numbers and by
its text; both must agree. A record may name several documents; they are joined by a blank line. Documents stand in a
folder `docs` (or an archive of one), or as {"docid": ..., "document": ...} in the lines of `docs.jsonl`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raison.core.documents import CLASSES, Document, noted, tokens_of
from raison.core.errors import InputError
from raison.core.records import Example, Span
from raison.core.spec import one_of
from raison.datasets.archive import texts
from raison.datasets.jsonl import objects, value_of
from raison.datasets.rows import Broken, Row, Rows, each, present
from raison.datasets.spans import short

__all__ = ["DOCUMENTS", "LEVELS", "Documents", "records"]

DOCUMENTS = ("docs.tar", "docs", "docs.jsonl")  # where the documents of a set may be, plain or packed (.gz)
LEVELS = ("span", "sentence")
BETWEEN = "\n\n"


class Documents:
    """Texts of an archive by name, read as far as anybody has asked."""

    def __init__(self, path: Path):
        self.path = path
        self.rest = documents_in_lines(path) if path.suffixes[:1] == [".jsonl"] else documents_in_files(path)
        self.known: dict[str, str] = {}
        self.damage = ""

    def __getitem__(self, name: str) -> str:
        while name not in self.known and (row := next(self.rest, None)) is not None:
            if isinstance(row, Broken):
                self.damage = f"; {row}"
            else:
                self.known[row.value[0]] = row.value[1]
        if name not in self.known:
            raise InputError(f"the document {name!r} is not in {str(self.path)!r}{self.damage}.")
        return self.known[name]


def documents_in_files(path: Path) -> Rows[tuple[str, str]]:
    """Names and texts of the files in a folder or an archive."""
    return each(texts(path), lambda row: (row.value[0].rpartition("/")[2], row.value[1]))


def documents_in_lines(path: Path) -> Rows[tuple[str, str]]:
    """Names and texts of the lines of `docs.jsonl`."""
    return each(objects(path), lambda row: (value_of(row.value, "docid", str), value_of(row.value, "document", str)))


@dataclass(frozen=True)
class Eraser:
    """How records are read."""

    documents: Documents
    level: str = "span"  # span: evidence as it was marked; sentence: every line that holds some
    query: bool = False  # the query is the first text and the document the second
    labels: Mapping[str, str] | None = None  # other names for classes
    drop_empty: bool = False  # leave out evidence without a token, and count the record as mended

    def example(self, row: Row[dict[str, Any]]) -> Row[Example]:
        record = row.value
        name = value_of(record, "annotation_id", str)
        given = evidence_of(record)
        evidence = [piece for piece in given if not (self.drop_empty and empty(piece))]
        offsets, text = self.text_of(record, given)
        gold = {(span.start, span.end): span for span in self.spans(offsets, evidence)}
        made = Example(
            value_of(record, "query", str) if self.query else text,
            text if self.query else None,
            id=name,
            label=self.label_of(record),
            gold=tuple(gold[place] for place in sorted(gold)),
            meta={**self.documents_noted(offsets), **self.classes_noted(), "query": record.get("query")},
        )
        dropped = ("empty evidence left out",) if len(evidence) < len(given) else ()
        return Row(row.file, row.line, made, (*row.mended, *dropped))

    def documents_noted(self, offsets: dict[str, int]) -> dict[str, Any]:
        """Where each document stands, which whoever writes explanations for ERASER's scorer has to know."""
        segment = 1 if self.query else 0
        return noted([Document(name, segment, at, at + len(self.documents[name])) for name, at in offsets.items()])

    def classes_noted(self) -> dict[str, Any]:
        """What the publisher calls the classes, where they have other names here."""
        return {} if self.labels is None else {CLASSES: {ours: theirs for theirs, ours in self.labels.items()}}

    def label_of(self, record: dict[str, Any]) -> Any:
        label = record.get("classification")
        if self.labels is None or label is None:
            return label
        if label not in self.labels:
            raise InputError(f"the label {label!r} is none of {', '.join(self.labels)}.")
        return self.labels[label]

    def text_of(self, record: dict[str, Any], evidence: list[dict[str, Any]]) -> tuple[dict[str, int], str]:
        """Where each document begins in the text of the record, and the text."""
        named = record.get("docids") or dict.fromkeys(value_of(piece, "docid", str) for piece in evidence)
        offsets: dict[str, int] = {}
        text = ""
        for name in list(named) or [record["annotation_id"]]:
            text += BETWEEN if text else ""
            offsets[name] = len(text)
            text += self.documents[name]
        return offsets, text

    def spans(self, offsets: dict[str, int], evidence: list[dict[str, Any]]) -> list[Span]:
        """Characters of each piece of evidence, compared with the words that it is said to hold."""
        places = {name: tokens_of(self.documents[name]) for name in offsets}
        found = []
        for piece in evidence:
            name = value_of(piece, "docid", str)
            if name not in offsets:
                raise InputError(f"there is evidence in {name!r}, which is no document of the record.")
            text, where = self.documents[name], places[name]
            first, last = value_of(piece, "start_token", int), value_of(piece, "end_token", int)
            if not 0 <= first < last <= len(where):
                raise InputError(f"the evidence {first}..{last} is not in {name!r}, which has {len(where)} tokens.")
            start, end = where[first][0], where[last - 1][1]
            said = piece.get("text")
            if said is not None and str(said).split() != text[start:end].split():
                held = short(text[start:end])
                raise InputError(f"the evidence {first}..{last} of {name!r} holds {held}, not {short(said)} as stated.")
            if self.level == "sentence":
                start, end = line_around(text, start, end)
            found.append(Span(offsets[name] + start, offsets[name] + end, "second" if self.query else "text"))
        return found


def evidence_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """All pieces of evidence; which of them belong together is of no use here."""
    pieces = []
    for group in value_of(record, "evidences", list):
        for piece in group if isinstance(group, list) else [group]:
            if not isinstance(piece, dict):
                raise InputError("a piece of evidence is not an object with fields.")
            pieces.append(piece)
    return pieces


def empty(piece: dict[str, Any]) -> bool:
    return piece.get("start_token") == piece.get("end_token") and not piece.get("text")


def line_around(text: str, start: int, end: int) -> tuple[int, int]:
    """The lines that hold a span, without white space at their ends."""
    start = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    line = text[start : stop if stop >= 0 else len(text)]
    return start + len(line) - len(line.lstrip()), start + len(line.rstrip())


def records(folder: Path, split: str, *, level: str = "span", **how: Any) -> Rows[Example]:
    """Examples of a split; see `Eraser` for how they may be read."""
    one_of("level", level, LEVELS)
    reading = Eraser(Documents(present(folder, *DOCUMENTS)), level, **how)
    for row in objects(present(folder, f"{split}.jsonl")):
        if isinstance(row, Broken):
            yield row
            continue
        try:
            yield reading.example(row)
        except InputError as error:
            yield Broken(row.file, row.line, str(error).rstrip("."))
