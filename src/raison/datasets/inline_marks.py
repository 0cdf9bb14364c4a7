"""Words that are marked in the text itself: `*word*`, `<b>word</b>`, `[[word]]`."""

from __future__ import annotations

import re

from raison.core.errors import InputError
from raison.datasets.spans import Places, quote_short

__all__ = ["sign_patterns", "strip_marks"]


def sign_patterns(sign: object) -> tuple[str, str]:
    """Patterns of what opens and closes a mark: a tag, two signs with a space between them, or the same sign twice."""
    tag = re.fullmatch(r"<([A-Za-z][\w-]*)>", str(sign))
    if tag:
        return rf"<{tag[1]}(?:\s[^>]*)?>", rf"</{tag[1]}\s*>"

    parts = str(sign).split()
    if not isinstance(sign, str) or not 1 <= len(parts) <= 2:
        raise InputError(f'What marks a word is a sign such as "*", a tag such as "<b>", or two signs, not {sign!r}.')
    return re.escape(parts[0]), re.escape(parts[-1])


def strip_marks(text: str, sign: str) -> tuple[str, Places]:
    """The text without its marks, and the characters of what was marked."""
    opening, closing = sign_patterns(sign)
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
            places.append(without_blank(plain, start, text, sign))
            start = None
        else:
            raise unpaired_marks(text, sign)

    if start is not None:
        raise unpaired_marks(text, sign)
    return plain + text[cursor:], places


def unpaired_marks(text: str, sign: str) -> InputError:
    return InputError(f"the marks {sign!r} do not come in pairs in {quote_short(text)}.")


def without_blank(plain: str, start: int, text: str, sign: str) -> tuple[int, int]:
    """The characters of a mark from `start` to the end of `plain`, without white space at its ends."""
    inside = plain[start:]
    words = inside.strip()
    if not words:
        raise InputError(f"there is nothing between two marks {sign!r} in {quote_short(text)}.")

    first = len(plain) - len(inside.lstrip())
    return first, first + len(words)
