"""Explanations as files: the page that opens from disk, SVG and PNG."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

from fastapi.responses import Response

from raison.show import to_figure, to_html
from raison.types import Explanation
from raison.web import bodies

__all__ = ["exported"]

TYPES = {"html": "text/html; charset=utf-8", "svg": "image/svg+xml", "png": "image/png"}
_drawing = threading.Lock()  # matplotlib's settings belong to the whole process


def exported(body: bodies.Export) -> Response:
    """A file to be saved; should it be opened here all the same, it may run nothing that belongs to this page."""
    found = [Explanation.from_dict(each) for each in body.explanations]
    if body.kind == "html":
        data = to_html(found, body.title).encode("utf-8", "replace")
    else:
        with tempfile.TemporaryDirectory() as folder, _drawing:
            path = Path(folder) / f"explanation.{body.kind}"
            to_figure(found, path)
            data = path.read_bytes()
    headers = {
        "content-disposition": f'attachment; filename="explanation.{body.kind}"',
        "content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
    }
    return Response(data, media_type=TYPES[body.kind], headers=headers)
