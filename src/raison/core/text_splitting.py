"""Splitting a text into spans of words, sentences and passages by its characters alone: letters, digits, kana,
abbreviations.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

__all__ = ["Spans", "split_passages", "split_sentences", "split_words", "stripped_span"]

Spans = list[tuple[int, int]]

JOINER = "\u200d"
KEYCAP = "\u20e3"
INVISIBLE_SPACE = "\u200b"  # of Thai and Khmer: it ends a word
APOSTROPHES = "'’"
INSIDE_WORDS = "'’-‐·"
SKIN_TONES = range(0x1F3FB, 0x1F400)

KINDS_BY_CODE = (
    (0x3040, 0x30FF, "kana"),
    (0x31F0, 0x31FF, "kana"),
    (0x3400, 0x9FFF, "han"),
    (0xF900, 0xFAFF, "han"),
    (0xFF66, 0xFF9F, "kana"),
    (0x1F1E6, 0x1F1FF, "flag"),  # two regional indicators are one flag
    (0x20000, 0x323AF, "han"),
)

ABBREVIATIONS = frozenset(
    (
        "mr mrs ms dr prof sr jr st vs etc e.g i.e cf fig figs eq eqs vol pp ca approx inc ltd co corp u.s "
        "u.k gen col sgt capt lt rep sen gov jan feb mar apr jun jul aug sep sept oct nov dec "
    ).split()
)
LONGEST_ABBREVIATION = 16
# a run of marks is looked at once, from its start: rows of dots are long in tables of contents
ENDING = re.compile(r"(?<![.!?…؟۔।॥])[.!?…؟۔।॥]+[\"'”’»)\]]*(?=\s)|[。！？]+[」』”’）]*|\n\s*\n")
NEXT_CHARACTER = re.compile(r"\s*(\S?)")
BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")


def kind_of_character(char: str) -> str:
    """space, letter, han, kana, flag, emoji or other: characters of one kind make a word."""
    code = ord(char)
    if char.isspace():
        return "space"
    if char in "々〇":
        return "han"
    for first, last, kind in KINDS_BY_CODE:
        if first <= code <= last:
            return kind
    category = unicodedata.category(char)
    if category[0] in "LNM" or char == "_":
        return "letter"
    if category in ("So", "Sk") or 0x1F000 <= code <= 0x1FAFF:
        return "emoji"
    return "other"


def split_words(text: str) -> Spans:
    """Letters and digits run together (also across ' and - inside a word); a Han character, an emoji with
    its modifiers and each punctuation mark are words of their own."""
    spans: Spans = []
    start = 0
    while start < len(text):
        kind = kind_of_character(text[start])
        end = start + 1
        if kind != "space":
            end = end_of_word(text, start, kind)
            spans.append((start, end))
        start = end
    return spans


def end_of_word(text: str, start: int, kind: str) -> int:
    """Where a word ends whose first character is of a kind."""
    end = start + 1
    if kind == "letter":
        end = end_of_letters(text, end)
    elif kind == "kana":
        end = end_of_kana(text, end)
    elif kind == "flag" and end < len(text) and kind_of_character(text[end]) == "flag":
        end += 1
    return end_of_modifiers(text, end)


def end_of_letters(text: str, end: int) -> int:
    """Where a run of letters and digits ends that begins before `end`."""
    while end < len(text) and text[end - 1] != KEYCAP:
        char = text[end]
        # joiners and soft hyphens can't be seen
        unseen = unicodedata.category(char) == "Cf" and char != INVISIBLE_SPACE
        belongs = unseen or kind_of_character(char) == "letter"
        if not (belongs or joins_letters(text, end) or joins_digits(text, end)):
            return end
        end += 1
    return end


def joins_letters(text: str, at: int) -> bool:
    """An apostrophe or a hyphen inside of a word."""
    if text[at] not in INSIDE_WORDS or text[at - 1] in "'’-":
        return False
    following = text[at + 1 : at + 2] or " "
    return kind_of_character(following) == "letter"


def joins_digits(text: str, at: int) -> bool:
    """A dot or a comma inside of a number."""
    following = text[at + 1 : at + 2]
    return text[at] in ".," and text[at - 1].isdigit() and following.isdigit()


def end_of_kana(text: str, end: int) -> int:
    while end < len(text) and kind_of_character(text[end]) == "kana":
        end += 1
    return end


def end_of_modifiers(text: str, end: int) -> int:
    """Extend a word over what only modifies it: marks, skin tones, joined emoji, characters without a shape."""
    while end < len(text):
        char = text[end]
        category = unicodedata.category(char)
        if char == JOINER:
            end += 1
            if end < len(text) and kind_of_character(text[end]) in ("emoji", "other"):
                end += 1
        elif category in ("Mn", "Me", "Mc", "Cf") or ord(char) in SKIN_TONES:
            end += 1
        else:
            break
    return end


def split_sentences(text: str) -> Spans:
    """Split after . ! ? and their like in other scripts and at blank lines, but not after abbreviations or initials."""
    cuts = [0]
    for match in ENDING.finditer(text):
        if not sentence_goes_on(text, match):
            cuts.append(match.end())
    return spans_between([*cuts, len(text)], text)


def sentence_goes_on(text: str, match: re.Match[str]) -> bool:
    """Whether the dots at `match` end no sentence: a small letter follows, or they belong to the word before.

    A dot that stands apart (" . ") is that of a text which was cut into tokens, and often into small letters, too.
    """
    marks = match.group()
    if marks[0] not in ".…":
        return False
    start = match.start()
    apart = marks == "." and text[start - 1 : start].isspace()
    after = ""
    following = NEXT_CHARACTER.match(text, match.end())
    if following:
        after = following[1]
    if apart and after == ".":
        return True
    if not apart and after.islower():
        return True
    return marks == "." and ends_in_abbreviation(text[:start], after, apart=apart)


def ends_in_abbreviation(before: str, after: str, *, apart: bool) -> bool:
    """Whether the word before a dot is an abbreviation, an initial or "no" before a number."""
    near = before[-LONGEST_ABBREVIATION:]
    if apart:
        near = near.rstrip()
    last_word = re.split(r"\s", near)[-1]
    word = last_word.lstrip("(\"'“").lower()
    if word in ABBREVIATIONS:
        return True
    if word == "no":
        return after.isdigit()
    is_initial = len(word) == 1 and word.isalpha()
    return is_initial and not (apart and word == "i")


def split_passages(text: str) -> Spans:
    """Split at blank lines."""
    cuts = [match.end() for match in BLANK_LINE.finditer(text)]
    return spans_between([0, *cuts, len(text)], text)


def spans_between(cuts: list[int], text: str) -> Spans:
    """The stretches between cuts, without white space at their ends; those of white space only are left out."""
    spans = []
    for start, end in pairwise(cuts):
        span = stripped_span(text, start, end)
        if span is not None:
            spans.append(span)
    return spans


def stripped_span(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The span without white space at its ends; None if nothing is left."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    end = start + len(piece.strip())
    if end == start:
        return None
    return start, end
