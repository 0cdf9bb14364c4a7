"""Explanations as a picture for a paper or a slide: PNG, SVG or PDF, drawn with matplotlib.

One explanation: its text with the rationale marked and the path of the search. Several rationales of one text: their
matrix. Several methods: the text once for each.
The same explanations give the same file, byte by byte.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from raison.errors import InputError
from raison.show.certificate import certificate
from raison.show.consensus import subject
from raison.show.grid import grid
from raison.show.matrix import matrix, sheets
from raison.show.press import check_ending, press
from raison.show.stack import stack
from raison.show.typeset import Leaf
from raison.types import Explanation

__all__ = ["to_figure"]


def to_figure(
    explanations: Explanation | Sequence[Explanation], path: str | os.PathLike[str], *, difference: bool = False
) -> None:
    """Write one explanation, or several methods or rationales of one text; the ending of `path` says in which form."""
    check_ending(path)
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

    def drawn() -> Any:
        if methods:
            return stack(found, difference)
        return grid(matrix(found)) if len(found) > 1 else Leaf(found[0]).drawn()

    press(drawn, path)
