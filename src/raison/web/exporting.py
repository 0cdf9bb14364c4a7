"""Explanations as files: the page that opens from disk, SVG and PNG."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
from fastapi.responses import Response

from raison.core import progress
from raison.core.errors import InputError
from raison.core.records import Encoding, Explanation
from raison.show import to_figure, to_html
from raison.web import schemas

__all__ = ["exported"]

TYPES = {"html": "text/html; charset=utf-8", "svg": "image/svg+xml", "png": "image/png"}
DRAWN, LETTERS = 4000, 20_000  # units, and letters of a text, that one picture may hold; a page may hold more
_drawing = threading.Lock()  # matplotlib's settings belong to the whole process


def drawn(body: schemas.Export) -> bytes:
    found = [Explanation.from_dict(each) for each in with_encodings(body.explanations)]
    for each in found:
        inside(each.encoding)
    if body.kind == "html":
        return to_html(found, body.title).encode("utf-8", "replace")
    if sum(len(each.units) for each in found) > DRAWN:
        raise InputError(f"A picture holds {DRAWN} words at most: save the page (HTML), or use the library.")
    if any(sum(map(len, each.encoding.texts)) > LETTERS for each in found):
        raise InputError(f"A picture holds {LETTERS} letters at most: save the page (HTML), or use the library.")
    with tempfile.TemporaryDirectory() as folder, _drawing:
        progress.check()  # who waited for the pen may have left
        path = Path(folder) / f"explanation.{body.kind}"
        to_figure(found, path)
        return path.read_bytes()


def inside(encoding: Encoding) -> None:
    """Refuse offsets behind the end of their texts: who draws them would make room for all that is between."""
    ends = np.array([len(text) for text in encoding.texts] or [0])
    if (encoding.segment < 0).any() or (np.maximum(encoding.start, encoding.end) > ends[encoding.segment]).any():
        raise ValueError("an offset behind the end of its text")


def with_encodings(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records as they came; one whose encoding is a number has that of the record at that place, as a matrix would
    say its text once for every token."""
    found: list[dict[str, Any]] = []
    for each in given:
        place = each.get("encoding")
        if isinstance(place, int) and not isinstance(place, bool):
            if not 0 <= place < len(found):
                raise ValueError("an encoding that is not there")
            each = {**each, "encoding": found[place]["encoding"]}
        found.append(each)
    return found


def exported(body: schemas.Export) -> Response:
    """A file to be saved; should it be opened here all the same, it may run nothing that belongs to this page."""
    try:
        data = drawn(body)
    except (TypeError, KeyError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
        kind = type(error).__name__
        raise InputError(f"These are no explanations of raison ({kind}): send them as they came.") from None
    headers = {
        "content-disposition": f'attachment; filename="explanation.{body.kind}"',
        "content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
    }
    return Response(data, media_type=TYPES[body.kind], headers=headers)
