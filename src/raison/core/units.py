"""Which tokens make a unit: a word, a sentence, a passage, a slot of a prompt.

Grouping goes by character offsets, never by how a tokenizer marks its pieces, so it is the same for
WordPiece, byte-level BPE, SentencePiece and byte fallback. A token that straddles two words joins them:
neither can be removed without the other.
"""

from __future__ import annotations

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

__all__ = ["LEVELS", "group", "visible"]

SPLITTERS = {"word": split_words, "sentence": split_sentences, "passage": split_passages}
LEVELS = ("token", "word", "sentence", "passage", "slot")


def group(encoding: Encoding, level: str, free: np.ndarray | None = None) -> Units:
    """The units of `level` over the tokens that may be removed (`free` [t]; by default all not fixed)."""
    if level not in LEVELS:
        raise InputError(f"There are no units called {level!r}: use one of {', '.join(LEVELS)}.")
    if level == "slot" and not encoding.slots:
        raise InputError(
            "This text has no slots: build it with Example.from_template, or use other units."
        )
    free = ~encoding.fixed if free is None else free & ~encoding.fixed
    first, last = groups_touched(encoding, level)
    owner = merge_groups(first, last)

    of = np.full(len(encoding), -1)
    number: dict[int, int] = {}  # units are numbered in reading order
    for t in np.flatnonzero(free):
        of[t] = number.setdefault(int(owner[t]), len(number))

    names, spans = [], []
    for unit in range(len(number)):
        name, span = name_and_span(encoding, np.flatnonzero(of == unit), level)
        names.append(name)
        spans.append(span)
    return Units(level, of, tuple(names), tuple(spans))


def groups_touched(encoding: Encoding, level: str) -> tuple[np.ndarray, np.ndarray]:
    """For each token the first and last group it touches, numbered over all segments in reading order."""
    size = len(encoding)
    first = np.arange(size)
    last = first.copy()
    if level == "token":
        return first, last

    base = 0
    for index, text in enumerate(encoding.texts):
        tokens = np.flatnonzero(encoding.segment == index)
        spans = spans_of_groups(encoding, index, level) or [(0, len(text))]
        starts = np.array([start for start, _ in spans])
        ends = np.array([end for _, end in spans])
        for t in tokens:
            start, end = int(encoding.start[t]), int(encoding.end[t])
            if start < 0:  # a special token is a unit of its own, behind the groups of the segment
                first[t] = last[t] = base + len(starts) + int(np.searchsorted(tokens, t))
                continue
            core = stripped_span(text, start, end) or (start, end)
            low = int(np.searchsorted(ends, core[0], side="right"))
            high = int(np.searchsorted(starts, core[1] - 1, side="right")) - 1
            # white space between two groups goes with the next one, at the end with the last
            low = min(low, len(starts) - 1)
            first[t] = base + low
            last[t] = base + max(low, high)
        base += len(starts) + len(tokens)
    return first, last


def spans_of_groups(encoding: Encoding, index: int, level: str) -> Spans:
    """Where the groups of one text stand: slots of the first text, words where a level has no splitter."""
    if level == "slot" and index == 0:
        return sorted((slot.start, slot.end) for slot in encoding.slots)
    split = SPLITTERS.get(level, split_words)
    return split(encoding.texts[index])


def merge_groups(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """One owner per token: groups that share a token become one group."""
    parent: dict[int, int] = {}

    def root(group: int) -> int:
        while group in parent:
            group = parent[group]
        return group

    for a, b in zip(first.tolist(), last.tolist(), strict=True):
        for other in range(a + 1, b + 1):
            low, high = sorted((root(a), root(other)))
            if low != high:
                parent[high] = low
    return np.array([root(group) for group in first.tolist()])


def name_and_span(
    encoding: Encoding, tokens: np.ndarray, level: str
) -> tuple[str, tuple[int, int, int]]:
    """The text of a unit as a person reads it, and where it stands."""
    segment = int(encoding.segment[tokens[0]])
    real = tokens[encoding.start[tokens] >= 0]
    if len(real) == 0:
        return encoding.tokens[tokens[0]], (segment, -1, -1)

    start, end = int(encoding.start[real].min()), int(encoding.end[real].max())
    text = encoding.texts[segment]
    inner = stripped_span(text, start, end)
    if inner is None:
        return visible(text[start:end]), (segment, start, end)
    name = text[inner[0] : inner[1]]
    if level == "slot" and segment == 0:
        name = names_of_slots(encoding, *inner) or name
    return name, (segment, *inner)


def names_of_slots(encoding: Encoding, start: int, end: int) -> str:
    """Names of the slots in a span; several, where a token straddles them."""
    touched = [slot for slot in encoding.slots if slot.start < end and start < slot.end]
    touched.sort(key=lambda slot: (slot.start, slot.name))
    return " + ".join(slot.name for slot in touched)


def visible(space: str) -> str:
    """White space that can be seen."""
    return space.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "␣") or "∅"
