"""Which explanations are shown together: several methods about the same thing, or the rows of one matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from raison.core.records import Explanation
from raison.show.consensus import subject_of
from raison.show.matrix import sheets

__all__ = ["ExplanationGroup", "group_explanations"]


@dataclass(frozen=True)
class ExplanationGroup:
    """Explanations that are shown together."""

    kind: str  # single | methods | matrix
    members: tuple[Explanation, ...]


def group_explanations(explanations: Sequence[Explanation]) -> Iterator[ExplanationGroup]:
    """The same explanations in the same order; rationales of many targets of one text make a matrix, and neighbours
    that explain the same thing stand beside each other."""
    for _, neighbours in groupby(sheets(explanations), key_of_sheet):
        joined = list(neighbours)
        if len(joined[0]) > 1:
            yield ExplanationGroup("matrix", tuple(joined[0]))
        elif len(joined) == 1:
            yield ExplanationGroup("single", tuple(joined[0]))
        else:
            yield ExplanationGroup("methods", tuple(sheet[0] for sheet in joined))


def key_of_sheet(sheet: Sequence[Explanation]) -> object:
    """What neighbours have in common that stand beside each other; a matrix stands alone."""
    return subject_of(sheet[0]) if len(sheet) == 1 else id(sheet)
