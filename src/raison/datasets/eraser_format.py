"""The format of the ERASER benchmark: annotations in JSON lines, documents of whitespace tokens beside them.

DeYoung et al. 2020, ERASER: A Benchmark to Evaluate Rationalized NLP Models. Evidence is given by token numbers and by
its text; both must agree. A record may name several documents; they are joined by a blank line. Documents stand in a
folder `docs` (or an archive of one), or as {"docid": ..., "document": ...} in the lines of `docs.jsonl`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from raison.core.eraser_documents import (
    ERASER_CLASSES,
    Document,
    documents_in_meta,
    spans_of_eraser_tokens,
)
from raison.core.errors import InputError
from raison.core.parameters import check_choice
from raison.core.records import Example, Span
from raison.datasets.character_spans import Places, quote_short
from raison.datasets.dataset_rows import Broken, Row, Rows, map_rows
from raison.datasets.json_files import Json, read_json_lines, required_json_field
from raison.datasets.text_archives import read_archive_texts
from raison.datasets.text_files import find_file

__all__ = ["DOCUMENTS", "LEVELS", "Documents", "EraserReader", "read_eraser"]

DOCUMENTS = (
    "docs.tar",
    "docs",
    "docs.jsonl",
)  # where the documents of a set may be, plain or packed (.gz)
LEVELS = ("span", "sentence")
BETWEEN = "\n\n"


class Documents:
    """Texts of an archive by name, read as far as anybody has asked."""

    def __init__(self, path: Path):
        self.path = path
        self.rest = (
            eraser_documents_in_lines(path)
            if path.suffixes[:1] == [".jsonl"]
            else eraser_documents_in_files(path)
        )
        self.texts: dict[str, str] = {}
        self.damage = ""

    def __getitem__(self, name: str) -> str:
        while name not in self.texts:
            row = next(self.rest, None)
            if row is None:
                raise InputError(
                    f"the document {name!r} is not in {str(self.path)!r}{self.damage}."
                )
            if isinstance(row, Broken):
                self.damage = f"; {row}"
                continue

            document, text = row.value
            self.texts[document] = text
        return self.texts[name]


def eraser_documents_in_files(path: Path) -> Rows[tuple[str, str]]:
    """Names and texts of the files in a folder or an archive."""

    def named_text(row: Row[tuple[str, str]]) -> tuple[str, str]:
        file, text = row.value
        return file.rpartition("/")[2], text

    return map_rows(read_archive_texts(path), named_text)


def eraser_documents_in_lines(path: Path) -> Rows[tuple[str, str]]:
    """Names and texts of the lines of `docs.jsonl`."""

    def named_text(row: Row[Json]) -> tuple[str, str]:
        return required_json_field(row.value, "docid", str), required_json_field(
            row.value, "document", str
        )

    return map_rows(read_json_lines(path), named_text)


@dataclass(frozen=True)
class JoinedDocuments:
    """The text of a record, joined of its documents."""

    text: str
    offsets: dict[str, int]  # where each document begins in it


@dataclass(frozen=True)
class EraserReader:
    """How records are read."""

    documents: Documents
    level: str = "span"  # span: evidence as it was marked; sentence: every line that holds some
    query: bool = False  # the query is the first text and the document the second
    labels: Mapping[str, str] | None = None  # other names for classes
    drop_empty: bool = False  # leave out evidence without a token, and count the record as mended

    def read_row(self, row: Row[Json]) -> Row[Example]:
        """The example of a record."""
        record = row.value
        id = required_json_field(record, "annotation_id", str)
        pieces = eraser_evidence(record)
        evidence = [
            piece for piece in pieces if not (self.drop_empty and is_empty_eraser_evidence(piece))
        ]
        joined = self.join_documents(record, pieces)
        gold = self.gold_spans(joined, evidence)

        example = Example(
            required_json_field(record, "query", str) if self.query else joined.text,
            joined.text if self.query else None,
            id=id,
            label=self.label_of(record),
            gold=gold,
            meta={
                **self.document_notes(joined),
                **self.class_notes(),
                "query": record.get("query"),
            },
        )

        mended = row.mended
        if len(evidence) < len(pieces):
            mended = (*mended, "empty evidence left out")
        return Row(row.file, row.line, example, mended)

    def join_documents(self, record: Json, pieces: list[Json]) -> JoinedDocuments:
        """The documents that a record names, else those of its evidence, else the one that is called as it is."""
        names = list(record.get("docids") or ())
        if not names:
            documents = [required_json_field(piece, "docid", str) for piece in pieces]
            names = list(dict.fromkeys(documents)) or [record["annotation_id"]]

        text = ""
        offsets: dict[str, int] = {}
        for name in names:
            if text:
                text += BETWEEN
            offsets[name] = len(text)
            text += self.documents[name]
        return JoinedDocuments(text, offsets)

    def label_of(self, record: Json) -> object:
        """The class of a record, by its own name where it has another one here."""
        label = record.get("classification")
        if self.labels is None or label is None:
            return label
        if label not in self.labels:
            known = ", ".join(self.labels)
            raise InputError(f"the label {label!r} is none of {known}.")
        return self.labels[label]

    def gold_spans(self, joined: JoinedDocuments, evidence: list[Json]) -> tuple[Span, ...]:
        """The spans of all evidence in the order of the text, each once."""
        tokens = {name: spans_of_eraser_tokens(self.documents[name]) for name in joined.offsets}
        segment = "second" if self.query else "text"

        places: set[tuple[int, int]] = set()
        for piece in evidence:
            name = required_json_field(piece, "docid", str)
            offset = joined.offsets.get(name)
            if offset is None:
                raise InputError(
                    f"there is evidence in {name!r}, which is no document of the record."
                )

            text = self.documents[name]
            start, end = eraser_evidence_place(
                piece,
                name=name,
                text=text,
                tokens=tokens[name],
            )
            if self.level == "sentence":
                start, end = eraser_lines_around(text, start, end)
            places.add((offset + start, offset + end))

        ordered = sorted(places)
        return tuple(Span(start, end, segment) for start, end in ordered)

    def document_notes(self, joined: JoinedDocuments) -> Json:
        """Where each document stands, which whoever writes explanations for ERASER's scorer has to know."""
        segment = 1 if self.query else 0
        documents = []
        for name, start in joined.offsets.items():
            end = start + len(self.documents[name])
            document = Document(
                name,
                segment=segment,
                start=start,
                end=end,
            )
            documents.append(document)
        return documents_in_meta(documents)

    def class_notes(self) -> Json:
        """What the publisher calls the classes, where they have other names here."""
        if self.labels is None:
            return {}
        return {ERASER_CLASSES: {ours: theirs for theirs, ours in self.labels.items()}}


def eraser_evidence(record: Json) -> list[Json]:
    """All pieces of evidence; which of them belong together is of no use here."""
    pieces: list[Json] = []
    for group in required_json_field(record, "evidences", list):
        for piece in group if isinstance(group, list) else [group]:
            if not isinstance(piece, dict):
                raise InputError("a piece of evidence is not an object with fields.")
            pieces.append(piece)
    return pieces


def is_empty_eraser_evidence(piece: Json) -> bool:
    """Whether a piece of evidence holds no token."""
    return piece.get("start_token") == piece.get("end_token") and not piece.get("text")


def eraser_evidence_place(
    piece: Json,
    *,
    name: str,
    text: str,
    tokens: Places,
) -> tuple[int, int]:
    """Characters of a piece of evidence in its document, compared with the words that it is said to hold."""
    first = required_json_field(piece, "start_token", int)
    last = required_json_field(piece, "end_token", int)
    evidence = f"the evidence {first}..{last}"

    if not 0 <= first < last <= len(tokens):
        raise InputError(f"{evidence} is not in {name!r}, which has {len(tokens)} tokens.")

    start, _ = tokens[first]
    _, end = tokens[last - 1]
    held = text[start:end]
    if piece.get("text") is None:
        return start, end

    stated = str(piece["text"])
    if stated.split() != held.split():
        words = f"{quote_short(held)}, not {quote_short(stated)}"
        raise InputError(f"{evidence} of {name!r} holds {words} as stated.")
    return start, end


def eraser_lines_around(text: str, start: int, end: int) -> tuple[int, int]:
    """The lines that hold a span, without white space at their ends."""
    first = text.rfind("\n", 0, start) + 1
    behind = text.find("\n", end)
    if behind < 0:
        behind = len(text)

    lines = text[first:behind]
    without_start = lines.lstrip()
    without_end = lines.rstrip()
    return behind - len(without_start), first + len(without_end)


def read_eraser(
    folder: Path,
    split: str,
    *,
    level: str = "span",
    query: bool = False,
    labels: Mapping[str, str] | None = None,
    drop_empty: bool = False,
) -> Rows[Example]:
    """Examples of a split; see `EraserReader` for how they may be read."""
    check_choice("level", level, LEVELS)
    documents = Documents(find_file(folder, *DOCUMENTS))
    reader = EraserReader(
        documents,
        level=level,
        query=query,
        labels=labels,
        drop_empty=drop_empty,
    )

    for row in read_json_lines(find_file(folder, f"{split}.jsonl")):
        if isinstance(row, Broken):
            yield row
            continue
        try:
            yield reader.read_row(row)
        except InputError as error:
            yield row.broken_by(error)
