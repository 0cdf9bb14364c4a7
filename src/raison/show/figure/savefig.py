"""Saving a picture to a file: its ending (PNG, SVG or PDF), raison's fonts, the same bytes for the same drawing."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raison.core.errors import InputError, MissingExtra
from raison.core.outputs import replacing_output
from raison.show.figure.canvas import SMALL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["check_picture_ending", "save_figure"]

DPI, TALLEST = 200, 2**16  # dots per inch, and of a bitmap
# a date would make two files of one explanation differ
METADATA: dict[str, dict[str, str | None]] = {
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


def check_picture_ending(path: str | os.PathLike[str]) -> str:
    """The ending of a picture's name, if it is one."""
    ending = Path(path).suffix.lower()
    if ending not in METADATA:
        raise InputError(
            f"A picture ends in .png, .svg or .pdf, not in {Path(path).suffix or 'nothing'!r}: name it so."
        )
    return ending


def save_figure(draw: Callable[[], Figure], path: str | os.PathLike[str]) -> None:
    """Draw a matplotlib figure under raison's settings and write it."""
    ending = check_picture_ending(path)
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("matplotlib", "plot", "A picture") from None

    with matplotlib.rc_context(matplotlib_settings()), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a character that no font has becomes a box
        figure = draw()
        if ending == ".png" and figure.get_figheight() * DPI > TALLEST:
            raise InputError(
                "The text is too long for one picture: end its name in .svg or .pdf, or write a page (HTML)."
            )
        try:
            with replacing_output(path) as half:
                figure.savefig(half, dpi=DPI, metadata=METADATA[ending], facecolor="white")
        except OSError as error:
            raise InputError(
                f"{str(path)!r} can't be written ({error.strerror}): choose another place."
            ) from None


def matplotlib_settings() -> dict[Any, Any]:  # the stubs name every setting
    """The settings of matplotlib that raison draws under, whatever the user's own are."""
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return {
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
