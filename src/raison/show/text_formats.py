"""Names and numbers as they are shown everywhere: cleaned text, short names, counts, scores and per cent."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context

import numpy as np

__all__ = [
    "CURLY",
    "DOT",
    "MINUS",
    "STRAIGHT",
    "Quotes",
    "browser_number",
    "clean_text",
    "count_with_noun",
    "probability_in_percent",
    "short_name",
    "signed_score",
    "with_wide_minus",
]

Quotes = tuple[str, str]
STRAIGHT: Quotes = ('"', '"')  # for a terminal, whose stream may carry no others
CURLY: Quotes = ("“", "”")
DOT = " · "  # between facts
MINUS = "−"  # as wide as a plus

# explicit reordering may show numbers and words in a false order
REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def clean_text(text: str) -> str:
    """The text, character by character, without those that command a terminal: they become visible signs."""
    cleaned = ""
    for char in text:
        is_harmless = char.isprintable() or char in " \n\t"
        cleaned += char if is_harmless else visible_control_sign(char)
    return cleaned


def visible_control_sign(char: str) -> str:
    """What stands for a character that is not printable."""
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if char in "\u2028\u2029":
        return "␤"
    is_surrogate = 0xD800 <= code <= 0xDFFF
    if code < 0xA0 or char in REORDERING or is_surrogate:
        return "\ufffd"
    return char  # unusual spaces, joiners of emoji, direction marks: harmless


def short_name(text: str, size: int, dots: str = "…") -> str:
    """A name on one line, at most `size` characters long."""
    line = " ".join(clean_text(text).split()) or "␣"
    if len(line) <= size:
        return line
    return line[: size - len(dots)].rstrip() + dots


def count_with_noun(count: int, noun: str) -> str:
    """A number of things: `1 word`, `2 words`."""
    if count == 1:
        return f"{count} {noun}"
    return f"{count} {noun}s"


def signed_score(score: float, largest: float) -> str:
    """A signed number with four digits of the largest score, so that a column of them lines up."""
    if largest == 0 or not math.isfinite(largest):
        return "0"
    exponent = math.floor(math.log10(largest))
    if -4 <= exponent <= 6:
        decimals = max(0, 3 - exponent)
        return f"{score:+.{decimals}f}"
    return f"{score:+.3e}"


def probability_in_percent(probability: float) -> str:
    """A probability in per cent; a value outside 0..1 is a regression's and stays a number."""
    if not 0 <= probability <= 1:
        return f"{probability:.4g}"
    if 0 < probability < 0.0005:
        return "<0.1 %"
    if 0.9995 < probability < 1:
        return ">99.9 %"
    return f"{100 * probability:.1f} %"


def with_wide_minus(figure: str) -> str:
    """A number with a minus that is as wide as a plus."""
    return figure.replace("-", MINUS)


def browser_number(value: float, *, digits: int) -> str:
    """A number of so many digits, written as a browser writes numbers."""
    if not math.isfinite(value):
        return str(value)
    rounding = Context(prec=digits, rounding=ROUND_HALF_UP)
    rounded = float(rounding.create_decimal_from_float(value))
    if rounded == 0 or 1e-6 <= abs(rounded) < 1e21:
        return np.format_float_positional(rounded + 0.0, trim="-")
    mantissa, _, exponent = f"{rounded!r}".partition("e")
    return f"{mantissa}e{int(exponent):+d}"
