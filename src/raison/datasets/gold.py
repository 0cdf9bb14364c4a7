"""Human rationales as people write them: spans, lists of 0 and 1, numbers of tokens, words; by one person or several.

What is written is taken apart first (`annotators_in`), then put on a text (`spans_of`). Numbers alone do not say what
they count, so a column is looked at as a whole (`decide`).
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from raison.core import limits
from raison.core.errors import InputError
from raison.core.records import Span
from raison.datasets.spans import joined, marked, runs, short, stated, tokens

__all__ = ["NUMBERS", "VOTES", "Annotation", "Meaning", "Place", "Range", "annotators_in", "decide", "spans_of"]

NUMBERS = ("characters", "tokens", "flags")  # what numbers count; flags: 0 or 1 for each token
VOTES = ("majority", "union", "any", "all")  # which marks of several annotators count; any is another name of union

RANGE_KEYS = (  # how objects name the ends of a span, and what these count, where the name says it
    ("start", "end", ""),
    ("begin", "end", ""),
    ("start_char", "end_char", "characters"),
    ("start_offset", "end_offset", "characters"),
    ("start_token", "end_token", "tokens"),
    ("token_start", "token_end", "tokens"),
)


@dataclass(frozen=True)
class Range:
    """A span as it is written: from `start` up to, but not including, `end`."""

    start: Any
    end: Any
    unit: str = ""  # characters or tokens; empty: it does not say
    segment: str = ""  # the text that it is about; empty: it does not say
    said: str | None = None  # the words that it is said to hold


@dataclass(frozen=True)
class Annotation:
    """What one person has marked, in one of three ways."""

    numbers: tuple[int, ...] = ()  # a list of numbers
    ranges: tuple[Range, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.numbers or self.ranges or self.words)


@dataclass(frozen=True)
class Place:
    """A text and where its tokens stand: between white space, or the `words` of which the file has a list."""

    text: str
    words: tuple[str, ...] | None = None

    @cached_property
    def tokens(self) -> list[tuple[int, int]]:
        return tokens(self.text) if self.words is None else joined(self.words)[1]


@dataclass(frozen=True)
class Meaning:
    """What the numbers of a column count."""

    numbers: str = "flags"  # of a list of numbers: one of NUMBERS
    ranges: str = "characters"  # of spans: characters or tokens
    doubtful: bool = False  # they could be characters or tokens


# -- taking apart ------------------------------------------------------------------------------------------------


def annotators_in(given: Any, place: Place) -> list[Annotation]:
    """What each person has marked; an empty list where nobody was asked."""
    found = decoded(given, place)
    if found is None:
        return []
    if isinstance(found, Mapping):
        if ends_of(found) is None:  # one entry for each annotator
            return [annotation(decoded(each, place)) for each in found.values() if each is not None]
        found = ranges_in_columns(found)
    if not isinstance(found, (list, tuple)):
        raise InputError(f"the gold is no list of spans or of 0 and 1 but {type(found).__name__}.")
    if not found:
        return []
    if isinstance(found, tuple) and is_pair(found):  # (3, 7) is a span, [3, 7] are two numbers
        found = [found]
    items = [decoded(each, place) if looks_like_a_list(each) else each for each in found]
    if several(items, place):
        return [annotation(each) for each in items if each is not None]
    return [annotation(items)]


def decoded(given: Any, place: Place) -> Any:
    """A value that may be written as text: JSON, a Python or NumPy list, numbers, ranges, or words of the text."""
    if isinstance(given, float) and math.isnan(given):
        return None
    if hasattr(given, "tolist"):
        given = given.tolist()
    if not isinstance(given, str):
        return given
    written = given.strip()
    if written.lower() in ("", "nan", "none", "null"):
        return None
    if written[0] in "[({":
        return literal(written)
    if re.fullmatch(r"\d+([\s,;]+\d+)*", written):
        return [int(number) for number in re.findall(r"\d+", written)]
    if re.fullmatch(r"\d+[-:]\d+([\s,;]+\d+[-:]\d+)*", written):
        pairs = re.findall(r"(\d+)[-:](\d+)", written)
        return [(int(start), int(end)) for start, end in pairs]
    if written in place.text:
        return [written]
    return [word.strip() for word in re.split(r"[;|,]", written) if word.strip()]


def literal(written: str) -> Any:
    """A list or an object in JSON, as Python prints it, or as NumPy prints it (without commas)."""
    try:
        return limits.from_json(written)
    except json.JSONDecodeError as error:
        why = error
    commas = re.sub(r"(?<=\d)\s+(?=\d)", ", ", written)
    commas = re.sub(r"(['\"\])])\s+(?=['\"\[(])", r"\1, ", commas)
    try:
        return ast.literal_eval(commas)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise InputError(f"the gold is no list of spans or of 0 and 1 ({why}).") from None


def looks_like_a_list(value: Any) -> bool:
    return isinstance(value, str) and value.strip()[:1] in ("[", "(")


def several(items: Sequence[Any], place: Place) -> bool:
    """Whether a list holds one list for each annotator; a list of pairs of numbers holds spans."""
    lists = [each for each in items if each is not None]
    if not lists or not all(isinstance(each, (list, tuple)) for each in lists):
        return False
    if not all(map(is_pair, lists)):
        return True
    backwards = any(each[0] >= each[1] for each in lists)
    flags = backwards and all(set(each) <= {0, 1} for each in lists)
    return flags and len(place.tokens) == 2


def is_pair(value: Any) -> bool:
    """Two numbers, and perhaps a name behind them."""
    if not isinstance(value, (list, tuple)) or len(value) not in (2, 3):
        return False
    named = len(value) == 2 or isinstance(value[2], str)
    return named and all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in value[:2])


def annotation(items: Any) -> Annotation:
    """What one person has marked."""
    if items is None:
        return Annotation()
    if isinstance(items, tuple) and is_pair(items):
        items = [items]
    if not isinstance(items, (list, tuple)):
        raise InputError(f"{short(str(items))} is no span: write [start, end].")
    numbers = [whole_number(each) for each in items]
    known = [number for number in numbers if number is not None]
    if len(known) == len(items):
        return Annotation(numbers=tuple(known))
    ranges: list[Range] = []
    words: list[str] = []
    for item in items:
        if isinstance(item, str):
            words.append(item)
        elif isinstance(item, Mapping) and ends_of(item) is not None:
            ranges.append(range_of(item))
        elif is_pair(item):
            ranges.append(Range(item[0], item[1]))
        else:
            raise InputError(f"{item!r} is no span: write [start, end].")
    return Annotation(ranges=tuple(ranges), words=tuple(words))


def whole_number(value: Any) -> int | None:
    """A number, also as 1.0 or "1"."""
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9]{1,9}\s*", value):
        return int(value)
    return None


def ends_of(item: Mapping[Any, Any]) -> tuple[str, str, str] | None:
    """The keys of the ends of a span, and what they count; None for an object that is no span."""
    return next((keys for keys in RANGE_KEYS if keys[0] in item and keys[1] in item), None)


def range_of(item: Mapping[Any, Any]) -> Range:
    start, end, unit = ends_of(item) or RANGE_KEYS[0]
    return Range(item[start], item[end], unit, item.get("segment") or "", item.get("text"))


def ranges_in_columns(item: Mapping[Any, Any]) -> list[Mapping[Any, Any]]:
    """Spans of {"start": [0, 9], "end": [4, 12]}, or the one of {"start": 0, "end": 4}."""
    if not isinstance(item[(ends_of(item) or RANGE_KEYS[0])[0]], (list, tuple)):
        return [item]
    lists = {key: list(value) for key, value in item.items() if isinstance(value, (list, tuple))}
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


# -- what numbers count ------------------------------------------------------------------------------------------


def decide(samples: Sequence[tuple[Place, Annotation]], declared: str = "") -> Meaning:
    """What the numbers of a column count, from some of its records; `declared` is what the user says."""
    lists = [(place, each.numbers) for place, each in samples if each.numbers]
    ranges = [(place, one) for place, each in samples for one in each.ranges if not one.unit]
    if declared:
        return Meaning(declared, "tokens" if declared == "tokens" else "characters")
    numbers, unsure = decide_lists(lists)
    counted, doubtful = decide_ranges(ranges)
    return Meaning(numbers, counted, unsure or doubtful)


def decide_lists(lists: Sequence[tuple[Place, tuple[int, ...]]]) -> tuple[str, bool]:
    """0 and 1 for each token, where a list has as many or says something twice; else the numbers of what is marked."""
    flags = all(set(numbers) <= {0, 1} for _, numbers in lists)
    if flags and any(len(numbers) == len(place.tokens) or repeats(numbers) for place, numbers in lists):
        return "flags", False
    if not lists:
        return "flags", False
    fitting = [(place, numbers) for place, numbers in lists if fits(numbers, len(place.text))]
    characters = any(not fits(numbers, len(place.tokens)) for place, numbers in fitting)
    if characters:
        edges = [on_edges(place.text, *run) for place, numbers in fitting for run in runs_of(numbers)]
        return "characters", sum(edges) < len(edges) / 2
    differ = [list_spans(p, n, "tokens", "") != list_spans(p, n, "characters", "") for p, n in fitting]
    return "tokens", any(differ)


def repeats(numbers: Sequence[int]) -> bool:
    return len(set(numbers)) < len(numbers)


def fits(numbers: Sequence[int], size: int) -> bool:
    return not repeats(numbers) and min(numbers) >= 0 and max(numbers) < size


def runs_of(numbers: Sequence[int]) -> list[tuple[int, int]]:
    inside = set(numbers)
    return runs(number in inside for number in range(max(numbers) + 1))


def on_edges(text: str, start: int, end: int) -> bool:
    """Whether a span of characters cuts no word at its ends."""
    before, after = text[start - 1 : start + 1] if start else "", text[end - 1 : end + 1]
    return not (len(before) == 2 and before.isalnum()) and not (len(after) == 2 and after.isalnum())


def decide_ranges(ranges: Sequence[tuple[Place, Range]]) -> tuple[str, bool]:
    """Characters, unless they do not fit and tokens do, or both fit and characters would cut words."""
    only_characters = only_tokens = differ = False
    edges: list[bool] = []
    for place, one in ranges:
        as_characters, as_tokens = (range_span(place, one, unit, "") for unit in ("characters", "tokens"))
        only_characters |= as_tokens is None and as_characters is not None
        only_tokens |= as_characters is None and as_tokens is not None
        differ |= as_characters != as_tokens
        if as_characters is not None:
            edges.append(on_edges(place.text, as_characters.start, as_characters.end))
    if only_characters or only_tokens or not differ:
        return ("tokens" if only_tokens and not only_characters else "characters"), False
    return ("tokens" if sum(edges) < len(edges) / 2 else "characters"), True


# -- putting on a text -------------------------------------------------------------------------------------------


def spans_of(
    found: Sequence[Annotation], places: Mapping[str, Place | None], usual: str, meaning: Meaning, vote: str
) -> tuple[Span, ...]:
    """The spans of a rationale; those of several people are put to the vote, each text by itself."""
    each = [annotation_spans(one, places, usual, meaning) for one in found]
    if len(each) < 2:
        return tuple(span for spans in each for span in spans)
    by_tokens = not any(one.words for one in found) and (meaning.ranges == "tokens" or not any_ranges(found))
    by_tokens = by_tokens and (meaning.numbers != "characters" or not any(one.numbers for one in found))
    least = {"majority": len(each) // 2 + 1, "all": len(each)}.get(vote, 1)
    spans: list[Span] = []
    for segment, place in places.items():
        mine = [[span for span in spans if (span.segment or usual) == segment] for spans in each]
        if place is not None and any(mine):
            spans += voted(place, mine, least, segment, by_tokens)
    return tuple(spans)


def any_ranges(found: Sequence[Annotation]) -> bool:
    return any(one.ranges for one in found)


def voted(place: Place, each: Sequence[Sequence[Span]], least: int, segment: str, by_tokens: bool) -> list[Span]:
    """What at least so many have marked; neighbouring tokens make one span."""
    votes = [0] * len(place.text)
    for spans in each:
        inside = {index for span in spans for index in range(span.start, span.end)}
        for index in inside:
            votes[index] += 1
    if by_tokens:
        return list(marked(place.tokens, [votes[start] >= least for start, _ in place.tokens], segment))
    chosen = runs(vote >= least for vote in votes)
    return [Span(start, end, segment) for start, end in chosen if place.text[start:end].strip()]


def annotation_spans(
    one: Annotation, places: Mapping[str, Place | None], usual: str, meaning: Meaning
) -> tuple[Span, ...]:
    """The spans of one person, in the order in which they are written."""
    if one.empty:
        return ()
    if one.numbers:
        return list_spans(known(places, usual), one.numbers, meaning.numbers, usual)
    spans = []
    for written in one.ranges:
        segment = written.segment or usual
        unit = written.unit or meaning.ranges
        place = known(places, segment)
        span = range_span(place, written, unit, segment)
        spans.append(refused(place, written, unit, segment) if span is None else span)
    return (*spans, *word_spans(known(places, usual).text, one.words, usual))


def known(places: Mapping[str, Place | None], segment: str) -> Place:
    place = places.get(segment)
    if place is None:
        raise InputError(f"the gold is about {segment!r}, but the texts are {', '.join(places)}.")
    return place


def list_spans(place: Place, numbers: Sequence[int], unit: str, segment: str) -> tuple[Span, ...]:
    """Spans of a list of numbers: 0 and 1 for each token, or the numbers of what is marked, counted from 0."""
    if unit == "flags":
        return marked(place.tokens, numbers, segment)
    if repeats(numbers):
        raise InputError(f"the numbers of {unit} name one twice.")
    size = len(place.tokens) if unit == "tokens" else len(place.text)
    if not fits(numbers, size):
        wrong = min(numbers) if min(numbers) < 0 else max(numbers)
        raise InputError(f"there is no {unit.removesuffix('s')} {wrong} in a text of {size}, counted from 0.")
    if unit == "tokens":
        inside = set(numbers)
        return marked(place.tokens, [index in inside for index in range(size)], segment)
    chosen = [run for run in runs_of(numbers) if place.text[run[0] : run[1]].strip()]
    return tuple(Span(start, end, segment) for start, end in chosen)


def range_span(place: Place, written: Range, unit: str, segment: str) -> Span | None:
    """A written span on the text; None where it does not fit."""
    start, end = written.start, written.end
    if any(isinstance(number, bool) or not isinstance(number, int) for number in (start, end)):
        return None
    if unit == "characters":
        fitting = 0 <= start < end <= len(place.text) and written.said in (None, place.text[start:end])
        return Span(start, end, segment) if fitting else None
    if not 0 <= start < end <= len(place.tokens):
        return None
    first, last = place.tokens[start][0], place.tokens[end - 1][1]
    same = written.said is None or str(written.said).split() == place.text[first:last].split()
    return Span(first, last, segment) if same else None


def refused(place: Place, written: Range, unit: str, segment: str) -> Span:
    """Say what is wrong with a span."""
    if unit == "tokens" and isinstance(written.start, int) and isinstance(written.end, int):
        size = len(place.tokens)
        if 0 <= written.start < written.end <= size:
            raise InputError(f"the tokens {written.start}..{written.end} do not hold {short(str(written.said))}.")
        raise InputError(f"the tokens {written.start}..{written.end} are not in the text, which has {size}.")
    return stated(place.text, written.start, written.end, written.said, segment)


def word_spans(text: str, words: Sequence[str], segment: str) -> list[Span]:
    """Where marked words stand: each where it comes next as a whole word, else first in the text; once each."""
    taken: list[tuple[int, int]] = []
    cursor = 0
    for word in words:
        if not word.strip():
            raise InputError("a marked word is empty.")
        place = next_place(text, word.strip(), cursor, taken)
        if place is None:
            raise InputError(
                f"the marked word {short(word)} is no span of the text {short(text)}: it does not stand there."
            )
        taken.append(place)
        cursor = place[1]
    return [Span(start, end, segment) for start, end in sorted(taken)]


def next_place(text: str, word: str, cursor: int, taken: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    exact = re.escape(word)
    whole = rf"(?<!\w){exact}(?!\w)"
    for pattern, flags in ((whole, 0), (whole, re.IGNORECASE), (exact, 0), (exact, re.IGNORECASE)):
        places = [match.span() for match in re.finditer(pattern, text, flags)]
        free = [place for place in places if not any(a < place[1] and place[0] < b for a, b in taken)]
        behind = [place for place in free if place[0] >= cursor]
        if behind or free:
            return (behind or free)[0]
    return None
