"""Explanations as a picture for a paper or a slide: PNG, SVG or PDF, drawn with matplotlib.

One explanation: its text with the rationale marked and the path of the search. Several rationales of one text: their
matrix. Several methods: the text once for each.
The same explanations give the same file, byte by byte.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from raison.errors import InputError, MissingExtra
from raison.show.certificate import certificate
from raison.show.consensus import subject
from raison.show.grid import grid
from raison.show.matrix import matrix, sheets
from raison.show.paper import SMALL
from raison.show.stack import stack
from raison.show.typeset import Leaf
from raison.types import Explanation

__all__ = ["to_figure"]

DPI, TALLEST = 200, 2**16  # dots per inch, and of a bitmap
# a date would make two files of one explanation differ
METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
# the first has most scripts and comes with matplotlib; the others are asked for what it lacks, where they are installed
FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Source Han Sans SC",
    "PingFang SC",
    "Hiragino Sans",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "WenQuanYi Zen Hei",
    "Noto Sans Devanagari",
    "Nirmala UI",
    "Noto Sans Thai",
    "Tahoma",
    "Noto Emoji",
    "Segoe UI Symbol",
    "Noto Sans Symbols 2",
)


def to_figure(
    explanations: Explanation | Sequence[Explanation], path: str | os.PathLike[str], *, difference: bool = False
) -> None:
    """Write one explanation, or several methods or rationales of one text; the ending of `path` says in which form."""
    file = Path(path)
    ending = file.suffix.lower()
    if ending not in METADATA:
        raise InputError(f"A picture ends in .png, .svg or .pdf, not in {file.suffix or 'nothing'!r}: name it so.")
    found = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    if not found:
        raise InputError("There is nothing to draw: give at least one explanation.")
    methods = len(found) > 1 and len({subject(each) for each in found}) == 1 and not any(map(certificate, found))
    if len(found) > 1 and not methods and len(sheets(found, least=2)) > 1:
        raise InputError(
            "One picture shows one explanation, several methods about one target, or rationales of several targets in "
            "one text: write a file for each."
        )
    if difference and not methods:
        raise InputError("A difference needs two methods that explain the same: give both explanations.")
    try:
        import matplotlib
        from matplotlib import font_manager
    except ImportError:
        raise MissingExtra("matplotlib", "plot", "A picture") from None
    installed = {font.name for font in font_manager.fontManager.ttflist}
    settings: dict[Any, Any] = {
        "font.family": [name for name in FONTS if name in installed],
        "font.size": SMALL,
        "svg.hashsalt": "raison",
        "svg.fonttype": "path",  # looks the same where the fonts are missing
        "pdf.fonttype": 42,
        "text.usetex": False,
        "text.hinting": "no_hinting",  # letters stand where they were measured
        "text.parse_math": False,  # a price in dollars is no formula
        "axes.unicode_minus": True,
        "savefig.bbox": None,
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a character that no font has becomes a box
        if methods:
            figure = stack(found, difference)
        else:
            figure = grid(matrix(found)) if len(found) > 1 else Leaf(found[0]).drawn()
        if ending == ".png" and figure.get_figheight() * DPI > TALLEST:
            raise InputError(
                "The text is too long for one picture: end its name in .svg or .pdf, or write a page (HTML)."
            )
        try:
            figure.savefig(file, dpi=DPI, metadata=METADATA[ending], facecolor="white")
        except OSError as error:
            raise InputError(f"{str(file)!r} can't be written ({error.strerror}): choose another place.") from None
