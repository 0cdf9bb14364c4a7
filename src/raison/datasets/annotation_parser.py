"""Parser of annotations: what people write as a rationale, as spans, lists of 0 and 1, numbers or words."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence

from raison.core import limits
from raison.core.errors import InputError
from raison.datasets.annotations import Annotation, TokenizedText, WrittenSpan
from raison.datasets.character_spans import quote_short

__all__ = ["parse_annotations"]

RawSpan = Mapping[object, object]  # an object that may be a span

# how objects name the ends of a span, and what these count, where the name says it
END_NAMES = (
    ("start", "end", ""),
    ("begin", "end", ""),
    ("start_char", "end_char", "characters"),
    ("start_offset", "end_offset", "characters"),
    ("start_token", "end_token", "tokens"),
    ("token_start", "token_end", "tokens"),
)


def parse_annotations(value: object, text: TokenizedText) -> list[Annotation]:
    """What each person has marked; an empty list where nobody was asked."""
    marks = decode_annotation(value, text)
    if marks is None:
        return []

    if isinstance(marks, Mapping):
        if keys_of_annotation_ends(marks) is None:
            return parse_people(marks, text)
        marks = split_annotation_columns(marks)

    if not isinstance(marks, (list, tuple)):
        raise InputError(f"the gold is no list of spans or of 0 and 1 but {type(marks).__name__}.")
    if not marks:
        return []
    if isinstance(marks, tuple) and is_annotation_pair(
        marks
    ):  # (3, 7) is a span, [3, 7] are two numbers
        marks = [marks]

    items = [decode_annotation(item, text) if looks_like_list(item) else item for item in marks]
    if is_of_several_people(items, text):
        return [parse_annotation(item) for item in items if item is not None]
    return [parse_annotation(items)]


def parse_people(entries: Mapping[object, object], text: TokenizedText) -> list[Annotation]:
    """What each person of an object with an entry for each has marked."""
    annotations = []
    for entry in entries.values():
        if entry is not None:
            marks = decode_annotation(entry, text)
            annotations.append(parse_annotation(marks))
    return annotations


# -- values that are written as text -----------------------------------------------------------------------------


def decode_annotation(value: object, text: TokenizedText) -> object:
    """A value that may be written as text: JSON, a Python or NumPy list, numbers, ranges, or words of the text."""
    if isinstance(value, float) and math.isnan(value):
        return None

    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, str):
        return value

    written = value.strip()
    if written.lower() in ("", "nan", "none", "null"):
        return None
    if written[0] in "[({":
        return decode_annotation_literal(written)
    if re.fullmatch(r"\d+([\s,;]+\d+)*", written):
        return list(map(int, re.findall(r"\d+", written)))
    if re.fullmatch(r"\d+[-:]\d+([\s,;]+\d+[-:]\d+)*", written):
        ranges = re.findall(r"(\d+)[-:](\d+)", written)
        return [(int(start), int(end)) for start, end in ranges]
    if written in text.text:
        return [written]

    words = [word.strip() for word in re.split(r"[;|,]", written)]
    return list(filter(None, words))


def decode_annotation_literal(written: str) -> object:
    """A list or an object in JSON, as Python prints it, or as NumPy prints it (without commas)."""
    try:
        return limits.read_json_text(written)
    except json.JSONDecodeError as error:
        why = error

    with_commas = re.sub(r"(?<=\d)\s+(?=\d)", ", ", written)
    with_commas = re.sub(r"(['\"\])])\s+(?=['\"\[(])", r"\1, ", with_commas)
    try:
        return ast.literal_eval(with_commas)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise InputError(f"the gold is no list of spans or of 0 and 1 ({why}).") from None


def looks_like_list(value: object) -> bool:
    """Whether a value is a list that is written as text."""
    return isinstance(value, str) and value.strip()[:1] in ("[", "(")


# -- one person or several ---------------------------------------------------------------------------------------


def is_of_several_people(items: Sequence[object], text: TokenizedText) -> bool:
    """Whether a list holds one list for each annotator; a list of pairs of numbers holds spans."""
    lists = []
    for item in items:
        if isinstance(item, (list, tuple)):
            lists.append(item)
        elif item is not None:
            return False
    if not lists:
        return False
    if not all(map(is_annotation_pair, lists)):
        return True

    # pairs are spans, unless the text has two tokens and the pairs are their flags, such as [1, 0]
    if len(text.tokens) != 2:
        return False
    backwards = any(start >= end for start, end, *_ in lists)
    return backwards and all({0, 1}.issuperset(pair) for pair in lists)


def is_annotation_pair(value: object) -> bool:
    """Whether a value is two numbers, and perhaps a name behind them."""
    if not isinstance(value, (list, tuple)) or len(value) not in (2, 3):
        return False
    start, end, *names = value
    if names and not isinstance(names[0], str):
        return False
    return is_annotation_number(start) and is_annotation_number(end)


def is_annotation_number(value: object) -> bool:
    """Whether a value is a number; True and False are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# -- what one person has marked ----------------------------------------------------------------------------------


def parse_annotation(items: object) -> Annotation:
    """What one person has marked."""
    if items is None:
        return Annotation()
    if isinstance(items, tuple) and is_annotation_pair(items):
        items = [items]
    if not isinstance(items, (list, tuple)):
        raise not_a_span(quote_short(str(items)))

    numbers = whole_annotation_numbers(items)
    if numbers is not None:
        return Annotation(numbers=numbers)

    spans: list[WrittenSpan] = []
    words: list[str] = []
    for item in items:
        if isinstance(item, str):
            words.append(item)
        elif isinstance(item, Mapping) and keys_of_annotation_ends(item) is not None:
            spans.append(annotation_span_of_object(item))
        elif is_annotation_pair(item):
            start, end, *_ = item
            spans.append(WrittenSpan(start, end))
        else:
            raise not_a_span(repr(item))
    return Annotation(spans=tuple(spans), words=tuple(words))


def not_a_span(shown: str) -> InputError:
    """What to say about a value that marks nothing."""
    return InputError(f"{shown} is no span: write [start, end].")


def whole_annotation_numbers(items: Sequence[object]) -> tuple[int, ...] | None:
    """The numbers of a list of nothing but whole numbers, else None."""
    numbers = []
    for item in items:
        number = annotation_number_from_notation(item)
        if number is None:
            return None
        numbers.append(number)
    return tuple(numbers)


def annotation_number_from_notation(value: object) -> int | None:
    """A number, also as 1.0 or "1"."""
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9]{1,9}\s*", value):
        return int(value)
    return None


def keys_of_annotation_ends(item: RawSpan) -> tuple[str, str, str] | None:
    """The keys of the ends of a span, and what they count; None for an object that is no span."""
    for names in END_NAMES:
        start, end, _ = names
        if start in item and end in item:
            return names
    return None


def annotation_span_of_object(item: RawSpan) -> WrittenSpan:
    """The span of an object that names its ends."""
    start, end, unit = keys_of_annotation_ends(item) or END_NAMES[0]
    segment = item.get("segment") or ""
    return WrittenSpan(
        item[start],
        item[end],
        unit,
        str(segment),
        item.get("text"),
    )


def split_annotation_columns(item: RawSpan) -> list[RawSpan]:
    """Spans of {"start": [0, 9], "end": [4, 12]}, or the one of {"start": 0, "end": 4}."""
    start, _, _ = keys_of_annotation_ends(item) or END_NAMES[0]
    if not isinstance(item[start], (list, tuple)):
        return [item]

    columns = {}
    for name, value in item.items():
        if isinstance(value, (list, tuple)):
            columns[name] = value
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]
