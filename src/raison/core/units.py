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

__all__ = ["LEVELS", "group_tokens", "visible_space"]

SPLITTERS = {"word": split_words, "sentence": split_sentences, "passage": split_passages}
LEVELS = ("token", "word", "sentence", "passage", "slot")


def group_tokens(encoding: Encoding, level: str, free: np.ndarray | None = None) -> Units:
    """The units of `level` over the tokens that may be removed (`free` [t]; by default all not fixed)."""
    if level not in LEVELS:
        raise InputError(f"There are no units called {level!r}: use one of {', '.join(LEVELS)}.")
    if level == "slot" and not encoding.slots:
        raise InputError(
            "This text has no slots: build it with Example.from_template, or use other units."
        )
    removable = ~encoding.fixed
    if free is not None:
        removable = removable & free
    first, last = groups_touched(encoding, level)
    owner = merge_groups(first, last)

    unit_of_token = np.full(len(encoding), -1)
    unit_of_owner: dict[int, int] = {}  # units are numbered in reading order
    for t in np.flatnonzero(removable):
        group = int(owner[t])
        unit_of_token[t] = unit_of_owner.setdefault(group, len(unit_of_owner))

    names, spans = [], []
    for unit in range(len(unit_of_owner)):
        tokens = np.flatnonzero(unit_of_token == unit)
        name, span = name_and_span_of_unit(encoding, tokens, level)
        names.append(name)
        spans.append(span)
    return Units(level, unit_of_token, tuple(names), tuple(spans))


def groups_touched(encoding: Encoding, level: str) -> tuple[np.ndarray, np.ndarray]:
    """For each token the first and last group it touches, numbered over all segments in reading order."""
    first = np.arange(len(encoding))
    last = first.copy()
    if level == "token":
        return first, last

    base = 0
    for segment, text in enumerate(encoding.texts):
        tokens = np.flatnonzero(encoding.segment == segment)
        spans = spans_of_groups(encoding, segment, level)
        if not spans:
            spans = [(0, len(text))]
        for place, t in enumerate(tokens):
            low, high = groups_of_token(encoding, int(t), spans)
            if low < 0:  # a special token is a unit of its own, behind the groups of the segment
                low = high = len(spans) + place
            first[t] = base + low
            last[t] = base + high
        base += len(spans) + len(tokens)
    return first, last


def groups_of_token(encoding: Encoding, t: int, spans: Spans) -> tuple[int, int]:
    """The first and the last group of its text that a token touches; -1 for a special token."""
    start, end = int(encoding.start[t]), int(encoding.end[t])
    if start < 0:
        return -1, -1
    text = encoding.texts[encoding.segment[t]]
    core_start, core_end = stripped_span(text, start, end) or (start, end)
    low = bisect_right(spans, core_start, key=itemgetter(1))
    high = bisect_right(spans, core_end - 1, key=itemgetter(0)) - 1
    # white space between two groups goes with the next one, at the end with the last
    low = min(low, len(spans) - 1)
    return low, max(low, high)


def spans_of_groups(encoding: Encoding, segment: int, level: str) -> Spans:
    """Where the groups of one text stand: slots of the first text, words where a level has no splitter."""
    if level == "slot" and segment == 0:
        return sorted((slot.start, slot.end) for slot in encoding.slots)
    split = SPLITTERS.get(level, split_words)
    return split(encoding.texts[segment])


def merge_groups(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """One owner per token: groups that share a token become one group."""
    parent: dict[int, int] = {}

    def root(group: int) -> int:
        while group in parent:
            group = parent[group]
        return group

    for first_group, last_group in zip(first.tolist(), last.tolist(), strict=True):
        for other in range(first_group + 1, last_group + 1):
            low, high = sorted((root(first_group), root(other)))
            if low != high:
                parent[high] = low
    return np.array([root(group) for group in first.tolist()])


def name_and_span_of_unit(
    encoding: Encoding, tokens: np.ndarray, level: str
) -> tuple[str, tuple[int, int, int]]:
    """The text of a unit as a person reads it, and where it stands."""
    segment = int(encoding.segment[tokens[0]])
    real = tokens[encoding.start[tokens] >= 0]
    if len(real) == 0:
        return encoding.tokens[tokens[0]], (segment, -1, -1)

    start = int(encoding.start[real].min())
    end = int(encoding.end[real].max())
    text = encoding.texts[segment]
    inner = stripped_span(text, start, end)
    if inner is None:
        return visible_space(text[start:end]), (segment, start, end)
    inner_start, inner_end = inner
    name = text[inner_start:inner_end]
    if level == "slot" and segment == 0:
        name = names_of_slots(encoding, inner_start, inner_end) or name
    return name, (segment, inner_start, inner_end)


def names_of_slots(encoding: Encoding, start: int, end: int) -> str:
    """Names of the slots in a span; several, where a token straddles them."""
    touched = [slot for slot in encoding.slots if slot.start < end and start < slot.end]
    touched.sort(key=lambda slot: (slot.start, slot.name))
    return " + ".join(slot.name for slot in touched)


def visible_space(space: str) -> str:
    """White space that can be seen."""
    signs: dict[str, str | int | None] = {"\n": "⏎", "\t": "⇥", " ": "␣"}
    return space.translate(str.maketrans(signs)) or "∅"
