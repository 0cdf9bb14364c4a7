"""What stands in pictures that raison draws."""

from __future__ import annotations

import html
import re
from importlib.util import find_spec

import pytest

from raison.show import to_figure

__all__ = ["drawing", "size_of_png", "texts_of_picture"]

drawing = pytest.mark.skipif(find_spec("matplotlib") is None, reason="pictures need matplotlib")


def texts_of_picture(what, path):
    """The texts of an SVG file: matplotlib leaves each one as a comment beside its shapes."""
    to_figure(what, path)
    comments = re.findall(r"<!-- (.*?) -->", path.read_text("utf-8"), re.DOTALL)
    return [html.unescape(comment.strip()) for comment in comments]


def size_of_png(path):
    """Width and height in dots."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
