"""Examples of the records of a user's file, made by its column mapping: texts, marked words, labels and meta."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from raison.core.errors import InputError
from raison.core.records import Example, Slot, Span
from raison.core.spec import index_in_spec
from raison.datasets.annotation_parser import parse_annotations
from raison.datasets.annotation_spans import Texts, spans_of_annotations, text_of_annotation_segment
from raison.datasets.annotations import Annotation, TokenizedText
from raison.datasets.column_mapping import Cells, ColumnMapping
from raison.datasets.dataset_rows import Row
from raison.datasets.faults import SEGMENTS
from raison.datasets.inline_marks import strip_marks
from raison.datasets.json_files import Json
from raison.datasets.nested_columns import RawRecord
from raison.datasets.parallel import parallel_example, parse_alignment

__all__ = ["MarkedTexts", "example_of_record", "marked_texts_of_record"]


@dataclass(frozen=True)
class MarkedTexts:
    """The texts of a record, and what people have marked in them, before numbers are read."""

    texts: Texts
    usual: str  # the text that marks are about which name none
    annotations: Sequence[Annotation] = ()
    spans: tuple[Span, ...] = ()  # what is marked in the texts themselves, or in a copy


def example_of_record(row: Row[RawRecord], columns: ColumnMapping) -> Example:
    """The example of a record."""
    record = row.value
    cells = columns.cells_of(record, row.file)
    text, pair = texts_of_record(cells, columns)
    marked = marked_texts(cells, columns, text=text, pair=pair)

    label = label_of_record(cells.label, columns, needed=columns.is_label_needed(record))
    spans = spans_of_annotations(
        marked.annotations,
        marked.texts,
        marked.usual,
        meaning=columns.meaning,
        vote=columns.annotators,
    )
    slots = record.get("slots") or ()
    without_id = cells.id is None or cells.id == ""

    example = Example(
        text,
        pair,
        id=str(row.line if without_id else cells.id),
        target=cells.target,
        label=label,
        gold=(*marked.spans, *spans),
        slots=tuple(map(Slot.from_dict, slots)),
        meta=meta_of_record(record, columns),
    )
    if cells.alignment is None:
        return example
    return record_example_with_alignment(example, cells.alignment, columns.base)


def marked_texts_of_record(record: RawRecord, file: str, columns: ColumnMapping) -> MarkedTexts:
    """The texts and the marks of a record."""
    cells = columns.cells_of(record, file, ("text", "pair", "gold"))
    text, pair = texts_of_record(cells, columns)
    return marked_texts(cells, columns, text=text, pair=pair)


# -- texts -------------------------------------------------------------------------------------------------------


def texts_of_record(cells: Cells, columns: ColumnMapping) -> tuple[str, str | None]:
    """The text and the other one of a pair, without the signs around marked words."""
    if cells.text is None:
        raise InputError("it has no text.")
    text = plain_text_of_record(cells.text, columns.marked)
    pair = plain_text_of_record(cells.pair, columns.marked)

    if not isinstance(text, str):
        raise record_text_is_no_string("text", text)
    if pair is not None and not isinstance(pair, str):
        raise record_text_is_no_string("pair", pair)
    return text, pair


def record_text_is_no_string(name: str, value: object) -> InputError:
    """What to say about a text that is none."""
    kind = type(value).__name__
    return InputError(f"The {name} of an example must be a string, not {kind}.")


def plain_text_of_record(cell: object, sign: str) -> object:
    """A text without the signs around marked words; a list of words becomes one, anything else stays."""
    if isinstance(cell, list) and all(isinstance(word, str) for word in cell):
        cell = " ".join(cell)
    if sign and isinstance(cell, str):
        cell, _ = strip_marks(cell, sign)
    return cell


def tokenized_text_of_record(cell: object, text: str | None) -> TokenizedText | None:
    """A text with its tokens, of which the cell may have been a list."""
    if text is None:
        return None
    words = tuple(cell) if isinstance(cell, list) else None
    return TokenizedText(text, words)


# -- marks -------------------------------------------------------------------------------------------------------


def marked_texts(
    cells: Cells,
    columns: ColumnMapping,
    *,
    text: str,
    pair: str | None,
) -> MarkedTexts:
    """What is marked in the texts, by signs in them or by the gold."""
    segments = segments_of_record(columns, has_pair=pair is not None)
    usual = columns.segment or segments[0]
    if columns.task == "qa" and not columns.segment:
        usual = segments[-1]  # the context

    texts: dict[str, TokenizedText | None] = {}
    spans: list[Span] = []
    written = ((cells.text, text), (cells.pair, pair))
    for segment, (cell, plain) in zip(segments, written, strict=False):
        texts[segment] = tokenized_text_of_record(cell, plain)
        spans += marked_spans_in_cell(cell, segment, columns.marked)

    gold = cells.gold
    original = texts.get(usual)
    if columns.marked and isinstance(gold, str) and original is not None:
        of_copy = spans_of_marked_copy(
            gold,
            original.text,
            segment=usual,
            sign=columns.marked,
        )
        return MarkedTexts(texts, usual, spans=of_copy)
    if gold is None or gold == "":
        return MarkedTexts(texts, usual, spans=tuple(spans))

    text_of_gold = text_of_annotation_segment(texts, usual)
    return MarkedTexts(
        texts,
        usual,
        annotations=annotations_of_record(gold, text_of_gold, columns),
        spans=tuple(spans),
    )


def segments_of_record(columns: ColumnMapping, *, has_pair: bool) -> tuple[str, ...]:
    """The names of the texts of a record."""
    if columns.task:
        return SEGMENTS[columns.task]
    return SEGMENTS["pair"] if has_pair else SEGMENTS["text"]


def marked_spans_in_cell(cell: object, segment: str, sign: str) -> list[Span]:
    """What is marked in a text by signs in it."""
    if not sign or not isinstance(cell, str):
        return []
    _, places = strip_marks(cell, sign)
    return [Span(start, end, segment) for start, end in places]


def spans_of_marked_copy(
    copy: str,
    text: str,
    *,
    segment: str,
    sign: str,
) -> tuple[Span, ...]:
    """What is marked in a copy of a text, which must be the same text."""
    plain, _ = strip_marks(copy, sign)
    if plain.strip() != text.strip():
        raise InputError("the gold is another text than the one that it marks.")

    # white space at the start may differ
    moved = leading_blank(text) - leading_blank(plain)
    spans = []
    for span in marked_spans_in_cell(copy, segment, sign):
        spans.append(Span(span.start + moved, span.end + moved, segment))
    return tuple(spans)


def leading_blank(text: str) -> int:
    """The number of characters of white space at the start of a text."""
    return len(text) - len(text.lstrip())


def annotations_of_record(
    gold: object, text: TokenizedText, columns: ColumnMapping
) -> list[Annotation]:
    """What each annotator has marked: several columns hold one each."""
    if not columns.has_several_gold_columns or not isinstance(gold, list):
        return parse_annotations(gold, text)

    annotations = []
    for number, cell in enumerate(gold, 1):
        people = parse_annotations(cell, text)
        if len(people) > 1:
            raise InputError(
                f"column {number} of the gold has marks of several annotators: name it alone."
            )
        annotations += people or [Annotation()]
    return annotations


# -- label and meta ----------------------------------------------------------------------------------------------


def label_of_record(value: object, columns: ColumnMapping, *, needed: bool) -> object:
    """The label that a cell names, by its name or its number; of a list, all of them."""
    if isinstance(value, list):
        if any(map(is_missing_number_in_record, value)):
            raise InputError("one of its labels is no number.")
        return [label_of_record(entry, columns, needed=True) for entry in value]

    if value is None or value == "":
        if needed or columns.labels:
            raise InputError("it has no label.")
        return None
    if not columns.labels or value in columns.labels:
        return value

    number = str(value).strip()
    place = index_in_spec(number, len(columns.labels))
    if place is not None:
        return columns.labels[place]
    if number == "-1":  # what Hugging Face writes where there is none
        raise InputError("it has no label.")
    known = ", ".join(columns.labels)
    raise InputError(f"the label {value!r} is none of {known}.")


def is_missing_number_in_record(value: object) -> bool:
    """Whether a value is the number that is none."""
    return isinstance(value, float) and math.isnan(value)


def meta_of_record(record: RawRecord, columns: ColumnMapping) -> Json:
    """The columns that no field has taken, and what the record calls its meta."""
    used = columns.used_columns()
    meta: Json = {}
    for name, value in record.items():
        if name not in used and name not in ("slots", "meta"):
            meta[str(name)] = record_value_to_json(value)

    own = record.get("meta")
    if isinstance(own, Mapping):
        for name, value in own.items():
            meta[str(name)] = record_value_to_json(value)
    return meta


def record_value_to_json(value: object) -> object:
    """What JSON can hold; anything else as text."""
    if value is None or isinstance(value, (str, int, bool)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, (list, tuple)):
        return [record_value_to_json(entry) for entry in value]
    if isinstance(value, Mapping):
        return {str(key): record_value_to_json(entry) for key, entry in value.items()}
    return str(value)


def record_example_with_alignment(example: Example, alignment: object, base: int) -> Example:
    """The example with the links between its words and those of its translation, the label."""
    if not isinstance(example.label, str):
        raise InputError(
            "an alignment needs a translation: say which column it is, as in (label=target)."
        )

    links = parse_alignment(alignment, base)
    aligned = parallel_example(
        example.text,
        example.label,
        links,
        id=example.id,
        base=base,
    )
    return replace(example, pair=None, meta={**example.meta, **aligned.meta})
