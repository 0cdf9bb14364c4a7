"""Where words, sentences and passages begin and end, and which tokens belong to them.

Grouping goes by character offsets, never by how a tokenizer marks its pieces, so it is the same for
WordPiece, byte-level BPE, SentencePiece and byte fallback. A token that straddles two words joins them:
neither can be removed without the other.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

import numpy as np

from raison.core.errors import InputError
from raison.core.records import Encoding, Units

__all__ = ["LEVELS", "group", "passages", "sentences", "words"]

Spans = list[tuple[int, int]]

JOINER, KEYCAP, BREAK = "\u200d", "\u20e3", "\u200b"  # the break is the invisible space of Thai and Khmer


def kind(char: str) -> str:
    """space, letter, han, kana, emoji or other: characters of one kind make a word."""
    code = ord(char)
    if char.isspace():
        return "space"
    if 0x3400 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF or 0x20000 <= code <= 0x323AF or char in "々〇":
        return "han"
    if 0x3040 <= code <= 0x30FF or 0x31F0 <= code <= 0x31FF or 0xFF66 <= code <= 0xFF9F:
        return "kana"
    if 0x1F1E6 <= code <= 0x1F1FF:
        return "flag"
    category = unicodedata.category(char)
    if category[0] in "LNM" or char == "_":
        return "letter"
    if category in ("So", "Sk") or 0x1F000 <= code <= 0x1FAFF:
        return "emoji"
    return "other"


def words(text: str) -> Spans:
    """Letters and digits run together (also across ' and - inside a word); a Han character, an emoji with
    its modifiers and each punctuation mark are words of their own."""
    spans: Spans = []
    i, size = 0, len(text)
    while i < size:
        what, j = kind(text[i]), i + 1
        if what == "space":
            i = j
            continue
        if what == "letter":
            while j < size and text[j - 1] != KEYCAP:
                inner = text[j] in "'’-‐·" and text[j - 1] not in "'’-" and kind(text[j + 1 : j + 2] or " ") == "letter"
                number = text[j] in ".," and text[j - 1].isdigit() and j + 1 < size and text[j + 1].isdigit()
                unseen = unicodedata.category(text[j]) == "Cf" and text[j] != BREAK  # joiners, soft hyphens
                if kind(text[j]) != "letter" and not inner and not number and not unseen:
                    break
                j += 1
        elif what == "kana":
            while j < size and kind(text[j]) == "kana":
                j += 1
        elif what == "flag":
            j += j < size and kind(text[j]) == "flag"  # two regional indicators are one flag
        j = absorb(text, j)
        spans.append((i, j))
        i = j
    return spans


def absorb(text: str, j: int) -> int:
    """Extend a word over what only modifies it: marks, skin tones, joined emoji, characters without a shape."""
    while j < len(text):
        char = text[j]
        if char == JOINER:
            j += 2 if j + 1 < len(text) and kind(text[j + 1]) in ("emoji", "other") else 1
        elif unicodedata.category(char) in ("Mn", "Me", "Mc", "Cf") or 0x1F3FB <= ord(char) <= 0x1F3FF:
            j += 1
        else:
            break
    return j


ABBREVIATIONS = frozenset(
    (
        "mr mrs ms dr prof sr jr st vs etc e.g i.e cf fig figs eq eqs vol pp ca approx inc ltd co corp u.s "
        "u.k gen col sgt capt lt rep sen gov jan feb mar apr jun jul aug sep sept oct nov dec "
    ).split()
)
# a run of marks is looked at once, from its start: rows of dots are long in tables of contents
ENDING = re.compile(r"(?<![.!?…؟۔।॥])[.!?…؟۔।॥]+[\"'”’»)\]]*(?=\s)|[。！？]+[」』”’）]*|\n\s*\n")
FOLLOWING = re.compile(r"\s*(\S?)")


def sentences(text: str) -> Spans:
    """Split after . ! ? and their like in other scripts and at blank lines, but not after abbreviations or initials."""
    cuts = [0, *(match.end() for match in ENDING.finditer(text) if not goes_on(text, match))]
    return [s for s in (strip(text, a, b) for a, b in zip(cuts, [*cuts[1:], len(text)], strict=True)) if s]


def goes_on(text: str, match: re.Match[str]) -> bool:
    """Whether the dots at `match` end no sentence: a small letter follows, or they belong to the word before.

    A dot that stands apart (" . ") is that of a text which was cut into tokens, and often into small letters, too.
    """
    if match.group()[0] not in ".…":
        return False
    after = FOLLOWING.match(text, match.end())[1]  # type: ignore[index]
    apart = match.group() == "." and text[match.start() - 1 : match.start()].isspace()
    if after == "." if apart else after.islower():
        return True
    near = text[max(0, match.start() - 16) : match.start()]  # longer than any abbreviation
    word = re.split(r"\s", near.rstrip() if apart else near)[-1].lstrip("(\"'“").lower()
    initial = len(word) == 1 and word.isalpha() and not (apart and word == "i")
    numbered = word == "no" and after.isdigit()
    return match.group() == "." and (word in ABBREVIATIONS or initial or numbered)


def passages(text: str) -> Spans:
    """Split at blank lines."""
    cuts = [0, *(m.end() for m in re.finditer(r"\n[^\S\n]*\n\s*", text)), len(text)]
    return [s for s in (strip(text, a, b) for a, b in pairwise(cuts)) if s]


def strip(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The span without white space at its ends; None if nothing is left."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    end = start + len(piece.strip())
    return (start, end) if end > start else None


SPLITTERS = {"word": words, "sentence": sentences, "passage": passages}
LEVELS = ("token", "word", "sentence", "passage", "slot")


def group(encoding: Encoding, level: str, free: np.ndarray | None = None) -> Units:
    """The units of `level` over the tokens that may be removed (`free` [t]; by default all not fixed)."""
    if level not in LEVELS:
        raise InputError(f"There are no units called {level!r}: use one of {', '.join(LEVELS)}.")
    if level == "slot" and not encoding.slots:
        raise InputError("This text has no slots: build it with Example.from_template, or use other units.")
    free = ~encoding.fixed if free is None else free & ~encoding.fixed
    first, last = anchors(encoding, level)
    owner = join(first, last)
    of = np.full(len(encoding), -1)
    number: dict[int, int] = {}  # units are numbered in reading order
    for t in np.flatnonzero(free):
        of[t] = number.setdefault(int(owner[t]), len(number))
    described = [describe(encoding, np.flatnonzero(of == unit), level) for unit in range(len(number))]
    return Units(level, of, tuple(name for name, _ in described), tuple(span for _, span in described))


def anchors(encoding: Encoding, level: str) -> tuple[np.ndarray, np.ndarray]:
    """For each token the first and last group it touches, numbered over all segments in reading order."""
    size = len(encoding)
    first = np.arange(size)
    if level == "token":
        return first, first.copy()
    last = first.copy()
    base = 0
    for index, text in enumerate(encoding.texts):
        tokens = np.flatnonzero(encoding.segment == index)
        spans = sorted((s.start, s.end) for s in encoding.slots) if level == "slot" and index == 0 else None
        if spans is None:
            spans = SPLITTERS.get(level, words)(text)
        starts = np.array([s for s, _ in spans] or [0])
        ends = np.array([e for _, e in spans] or [len(text)])
        for t in tokens:
            a, b = int(encoding.start[t]), int(encoding.end[t])
            if a < 0:  # a special token is a unit of its own, behind the groups of the segment
                first[t] = last[t] = base + len(starts) + int(np.searchsorted(tokens, t))
                continue
            core = strip(text, a, b) or (a, b)
            low = int(np.searchsorted(ends, core[0], side="right"))
            high = int(np.searchsorted(starts, core[1] - 1, side="right")) - 1
            # white space between two groups goes with the next one, at the end with the last
            low = min(low, len(starts) - 1)
            first[t], last[t] = base + low, base + max(low, high)
        base += len(starts) + len(tokens)
    return first, last


def join(first: np.ndarray, last: np.ndarray) -> np.ndarray:
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


def describe(encoding: Encoding, tokens: np.ndarray, level: str) -> tuple[str, tuple[int, int, int]]:
    """The text of a unit as a person reads it, and where it stands."""
    segment = int(encoding.segment[tokens[0]])
    real = tokens[encoding.start[tokens] >= 0]
    if len(real) == 0:
        return encoding.tokens[tokens[0]], (segment, -1, -1)
    start, end = int(encoding.start[real].min()), int(encoding.end[real].max())
    text = encoding.texts[segment]
    inner = strip(text, start, end)
    if inner is None:
        return visible(text[start:end]), (segment, start, end)
    name = text[inner[0] : inner[1]]
    if level == "slot" and segment == 0:  # several slots, where a token straddles them
        touched = [(s.start, s.name) for s in encoding.slots if s.start < inner[1] and inner[0] < s.end]
        name = " + ".join(slot for _, slot in sorted(touched)) or name
    return name, (segment, *inner)


def visible(space: str) -> str:
    """White space that can be seen."""
    return space.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "␣") or "∅"
