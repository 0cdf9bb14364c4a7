"""Words that are marked in the text itself: `*word*`, `<b>word</b>`, `[[word]]`."""

from __future__ import annotations

import re

from raison.core.errors import InputError
from raison.datasets.character_spans import Places, quote_short

__all__ = ["inline_mark_patterns", "strip_marks"]


def inline_mark_patterns(sign: object) -> tuple[str, str]:
    """Patterns of what opens and closes a mark: a tag, two signs with a space between them, or the same sign twice."""
    written = str(sign)
    tag = re.fullmatch(r"<([A-Za-z][\w-]*)>", written)
    if tag:
        name = tag[1]
        return rf"<{name}(?:\s[^>]*)?>", rf"</{name}\s*>"

    parts = written.split()
    if not isinstance(sign, str) or len(parts) not in (1, 2):
        raise InputError(
            f'What marks a word is a sign such as "*", a tag such as "<b>", or two signs, not {sign!r}.'
        )
    opening = parts[0]
    closing = parts[-1]
    return re.escape(opening), re.escape(closing)


def strip_marks(text: str, sign: str) -> tuple[str, Places]:
    """The text without its marks, and the characters of what was marked."""
    opening, closing = inline_mark_patterns(sign)
    pattern = re.compile(rf"(?P<open>{opening})|(?P<close>{closing})", re.IGNORECASE)

    plain = ""
    cursor = 0  # in the text with its marks
    start: int | None = None  # in the plain text, of the mark that is open
    places: Places = []

    for match in pattern.finditer(text):
        plain += text[cursor : match.start()]
        cursor = match.end()

        # the same sign opens a mark and closes it
        opens = start is None if opening == closing else match.lastgroup == "open"
        if opens and start is None:
            start = len(plain)
        elif not opens and start is not None:
            place = marked_text_without_blank(plain, start)
            if place is None:
                raise InputError(
                    f"there is nothing between two marks {sign!r} in {quote_short(text)}."
                )
            places.append(place)
            start = None
        else:
            raise unpaired_marks(text, sign)

    if start is not None:
        raise unpaired_marks(text, sign)
    return plain + text[cursor:], places


def unpaired_marks(text: str, sign: str) -> InputError:
    """What to say about a mark that is not closed, or not opened."""
    return InputError(f"the marks {sign!r} do not come in pairs in {quote_short(text)}.")


def marked_text_without_blank(text: str, start: int) -> tuple[int, int] | None:
    """The characters from `start` to the end of a text without white space at the ends; None if nothing is left."""
    inside = text[start:]
    words = inside.strip()
    if not words:
        return None
    first = len(text) - len(inside.lstrip())
    return first, first + len(words)
