"""Words that are marked in the text itself: `*word*`, `<b>word</b>`, `[[word]]`."""

from __future__ import annotations

import re

from raison.core.errors import InputError
from raison.datasets.spans import short

__all__ = ["signs", "unmarked"]


def signs(sign: str) -> tuple[str, str]:
    """Patterns of what opens and closes a mark: a tag, two signs with a space between them, or the same sign twice."""
    tag = re.fullmatch(r"<([A-Za-z][\w-]*)>", str(sign))
    if tag:
        return rf"<{tag[1]}(?:\s[^>]*)?>", rf"</{tag[1]}\s*>"
    parts = str(sign).split()
    if not isinstance(sign, str) or not 1 <= len(parts) <= 2:
        raise InputError(f'What marks a word is a sign such as "*", a tag such as "<b>", or two signs, not {sign!r}.')
    return re.escape(parts[0]), re.escape(parts[-1])


def unmarked(text: str, sign: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without its marks, and the characters of what was marked."""
    opening, closing = signs(sign)
    pattern = re.compile(rf"(?P<open>{opening})|(?P<close>{closing})", re.IGNORECASE)
    plain, cursor = "", 0
    start: int | None = None
    found: list[tuple[int, int]] = []
    for match in pattern.finditer(text):
        plain += text[cursor : match.start()]
        cursor = match.end()
        opens = start is None if opening == closing else match.lastgroup == "open"
        if opens != (start is None):
            raise InputError(f"the marks {sign!r} do not come in pairs in {short(text)}.")
        if opens:
            start = len(plain)
            continue
        inside = plain[start:]
        if not inside.strip():
            raise InputError(f"there is nothing between two marks {sign!r} in {short(text)}.")
        first = len(plain) - len(inside.lstrip())
        found.append((first, first + len(inside.strip())))
        start = None
    if start is not None:
        raise InputError(f"the marks {sign!r} do not come in pairs in {short(text)}.")
    return plain + text[cursor:], found
