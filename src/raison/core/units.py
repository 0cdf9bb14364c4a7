"""Grouping the tokens of an encoding into units: words, sentences, passages, or slots of a prompt.

Grouping goes by character offsets, never by how a tokenizer marks its pieces, so it is the same for
WordPiece, byte-level BPE, SentencePiece and byte fallback. A token that straddles two words joins them:
neither can be removed without the other.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter

import numpy as np

from raison.core.errors import InputError
from raison.core.records import Encoding, Units
from raison.core.text_splitting import (
    Spans,
    split_passages,
    split_sentences,
    split_words,
    stripped_span,
)

__all__ = ["LEVELS", "group_tokens", "visible_space_in_unit_name"]

SPLITTERS = {"word": split_words, "sentence": split_sentences, "passage": split_passages}
LEVELS = ("token", "word", "sentence", "passage", "slot")
START_OF_SPAN, END_OF_SPAN = itemgetter(0), itemgetter(1)
SIGNS_OF_SPACE = str.maketrans({"\n": "⏎", "\t": "⇥", " ": "␣"})


def group_tokens(encoding: Encoding, level: str, free: np.ndarray | None = None) -> Units:
    """The units of `level` over the tokens that may be removed (`free` [t]; by default all not fixed)."""
    if level not in LEVELS:
        levels = ", ".join(LEVELS)
        raise InputError(f"There are no units called {level!r}: use one of {levels}.")
    if level == "slot" and not encoding.slots:
        raise InputError(
            "This text has no slots: build it with Example.from_template, or use other units."
        )
    removable = ~encoding.fixed
    if free is not None:
        removable = removable & free
    first, last = groups_touched(encoding, level)
    owner = merge_groups(first, last)

    size = len(encoding)
    unit_of_token = np.full(size, -1)
    unit_of_owner: dict[int, int] = {}  # units are numbered in reading order
    for t in np.flatnonzero(removable):
        group = int(owner[t])
        next_unit = len(unit_of_owner)
        unit_of_token[t] = unit_of_owner.setdefault(group, next_unit)

    names = []
    spans = []
    count = len(unit_of_owner)
    for unit in range(count):
        in_unit = unit_of_token == unit
        tokens = np.flatnonzero(in_unit)
        name, span = name_and_span_of_unit(encoding, tokens, level)
        names.append(name)
        spans.append(span)
    return Units(level=level, of=unit_of_token, names=tuple(names), spans=tuple(spans))


def groups_touched(encoding: Encoding, level: str) -> tuple[np.ndarray, np.ndarray]:
    """For each token the first and last group it touches, numbered over all segments in reading order."""
    size = len(encoding)
    first = np.arange(size)
    last = first.copy()
    if level == "token":
        return first, last

    base = 0  # the number of the first group of the segment
    for segment, text in enumerate(encoding.texts):
        in_segment = encoding.segment == segment
        tokens = np.flatnonzero(in_segment)
        spans = spans_of_groups(encoding, segment, level)
        if not spans:
            whole_text = (0, len(text))
            spans = [whole_text]
        group_count = len(spans)
        for place, t in enumerate(tokens.tolist()):
            low, high = groups_of_token(encoding, t, spans)
            if low < 0:  # a special token is a unit of its own, behind the groups of the segment
                low = group_count + place
                high = low
            first[t] = base + low
            last[t] = base + high
        base += group_count
        base += len(tokens)
    return first, last


def groups_of_token(encoding: Encoding, t: int, spans: Spans) -> tuple[int, int]:
    """The first and the last group of its text that a token touches; -1 for a special token."""
    start = int(encoding.start[t])
    end = int(encoding.end[t])
    if start < 0:
        return -1, -1
    segment = encoding.segment[t]
    text = encoding.texts[segment]
    core = stripped_span(text, start, end)
    if core is not None:
        start, end = core

    last_character = end - 1
    groups_before = bisect_right(spans, start, key=END_OF_SPAN)
    groups_begun = bisect_right(spans, last_character, key=START_OF_SPAN)
    # white space between two groups goes with the next one, at the end with the last
    low = min(groups_before, len(spans) - 1)
    high = groups_begun - 1
    return low, max(low, high)


def spans_of_groups(encoding: Encoding, segment: int, level: str) -> Spans:
    """Where the groups of one text stand: slots of the first text, words where a level has no splitter."""
    if level == "slot" and segment == 0:
        slots = []
        for slot in encoding.slots:
            span = (slot.start, slot.end)
            slots.append(span)
        slots.sort()
        return slots
    split = SPLITTERS.get(level, split_words)
    text = encoding.texts[segment]
    return split(text)


def merge_groups(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """One owner per token: groups that share a token become one group."""
    parent: dict[int, int] = {}

    def root(group: int) -> int:
        while group in parent:
            group = parent[group]
        return group

    first_groups = first.tolist()
    last_groups = last.tolist()
    for first_group, last_group in zip(first_groups, last_groups, strict=True):
        for other in range(first_group + 1, last_group + 1):
            roots = (root(first_group), root(other))
            low = min(roots)
            high = max(roots)
            if low != high:
                parent[high] = low
    owners = [root(group) for group in first_groups]
    return np.array(owners)


def name_and_span_of_unit(
    encoding: Encoding, tokens: np.ndarray, level: str
) -> tuple[str, tuple[int, int, int]]:
    """The text of a unit as a person reads it, and where it stands."""
    first = tokens[0]
    segment = int(encoding.segment[first])
    has_characters = encoding.start[tokens] >= 0
    real = tokens[has_characters]
    if len(real) == 0:
        return encoding.tokens[first], (segment, -1, -1)

    starts = encoding.start[real]
    ends = encoding.end[real]
    start = int(starts.min())
    end = int(ends.max())
    text = encoding.texts[segment]
    inner = stripped_span(text, start, end)
    if inner is None:
        space = text[start:end]
        return visible_space_in_unit_name(space), (segment, start, end)
    inner_start, inner_end = inner
    name = text[inner_start:inner_end]
    if level == "slot" and segment == 0:
        name = names_of_slots(encoding, inner_start, inner_end) or name
    return name, (segment, inner_start, inner_end)


def names_of_slots(encoding: Encoding, start: int, end: int) -> str:
    """Names of the slots in a span; several, where a token straddles them."""
    touched = []
    for slot in encoding.slots:
        begins_before_end = slot.start < end
        ends_behind_start = start < slot.end
        if begins_before_end and ends_behind_start:
            touched.append(slot)
    touched.sort(key=lambda slot: (slot.start, slot.name))
    names = [slot.name for slot in touched]
    return " + ".join(names)


def visible_space_in_unit_name(space: str) -> str:
    """White space that can be seen."""
    return space.translate(SIGNS_OF_SPACE) or "∅"
