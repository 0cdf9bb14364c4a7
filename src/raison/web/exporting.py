"""Export of explanations as files: the page that opens from disk, SVG and PNG."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from fastapi.responses import Response

from raison.core import progress
from raison.core.errors import InputError
from raison.core.json_record import JsonObject
from raison.core.records import Encoding, Explanation
from raison.show import to_figure, to_html
from raison.web import schemas

__all__ = ["export_response"]

TYPES = {"html": "text/html; charset=utf-8", "svg": "image/svg+xml", "png": "image/png"}
DRAWN = 4000  # units that one picture may hold; a page may hold more
LETTERS = 20_000  # of a text that one picture may hold
# what can go wrong where the JSON of an explanation holds something else
DAMAGE = (
    TypeError,
    KeyError,
    ValueError,
    AttributeError,
    IndexError,
    ArithmeticError,
    RecursionError,
)
_drawing = threading.Lock()  # matplotlib's settings belong to the whole process


def export_response(body: schemas.Export) -> Response:
    """A file to be saved; should it be opened here all the same, it may run nothing that belongs to this page."""
    try:
        data = export_file(body)
    except DAMAGE as error:
        kind = type(error).__name__
        raise InputError(
            f"These are no explanations of raison ({kind}): send them as they came."
        ) from None
    headers = {
        "content-disposition": f'attachment; filename="explanation.{body.kind}"',
        "content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
    }
    return Response(data, media_type=TYPES[body.kind], headers=headers)


def export_file(body: schemas.Export) -> bytes:
    """The file that is asked for."""
    records = exported_records_with_encodings(body.explanations)
    explanations = [Explanation.from_dict(record) for record in records]
    for explanation in explanations:
        check_offsets_to_export(explanation.encoding)
    if body.kind == "html":
        return to_html(explanations, body.title).encode("utf-8", "replace")

    check_size_of_exported_picture(explanations)
    with tempfile.TemporaryDirectory() as folder, _drawing:
        progress.check()  # who waited for the pen may have left
        path = Path(folder) / f"explanation.{body.kind}"
        to_figure(explanations, path)
        return path.read_bytes()


def check_offsets_to_export(encoding: Encoding) -> None:
    """Refuse offsets behind the end of their texts: who draws them would make room for all that is between."""
    lengths = [len(text) for text in encoding.texts]
    ends = np.array(lengths or [0])
    last = np.maximum(encoding.start, encoding.end)
    if (encoding.segment < 0).any() or (last > ends[encoding.segment]).any():
        raise ValueError("an offset behind the end of its text")


def check_size_of_exported_picture(explanations: Sequence[Explanation]) -> None:
    """Refuse what takes too long to draw."""
    units = sum(len(explanation.units) for explanation in explanations)
    if units > DRAWN:
        raise InputError(
            f"A picture holds {DRAWN} words at most: save the page (HTML), or use the library."
        )
    for explanation in explanations:
        letters = sum(len(text) for text in explanation.encoding.texts)
        if letters > LETTERS:
            raise InputError(
                f"A picture holds {LETTERS} letters at most: save the page (HTML), or use the library."
            )


def exported_records_with_encodings(records: Sequence[JsonObject]) -> list[JsonObject]:
    """Records as they came; one whose encoding is a number has that of the record at that place, as a matrix would
    say its text once for every token."""
    complete: list[JsonObject] = []
    for record in records:
        place = record.get("encoding")
        if isinstance(place, int) and not isinstance(place, bool):
            if not 0 <= place < len(complete):
                raise ValueError("an encoding that is not there")
            record = {**record, "encoding": complete[place]["encoding"]}
        complete.append(record)
    return complete
