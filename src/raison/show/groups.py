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


def group_explanations(
    explanations: Sequence[Explanation], *, rationales_apart: bool = False
) -> Iterator[ExplanationGroup]:
    """The same explanations in the same order; rationales of many targets of one text make a matrix, and neighbours
    that explain the same thing stand beside each other, unless they are rationales that shall stand apart."""

    def shared_key(sheet: Sequence[Explanation]) -> object:
        stands_alone = len(sheet) > 1 or (rationales_apart and sheet[0].certificate is not None)
        return id(sheet) if stands_alone else subject_of(sheet[0])

    for _, neighbours in groupby(sheets(explanations), shared_key):
        joined = list(neighbours)
        if len(joined[0]) > 1:
            yield ExplanationGroup("matrix", tuple(joined[0]))
        elif len(joined) == 1:
            yield ExplanationGroup("single", tuple(joined[0]))
        else:
            yield ExplanationGroup("methods", tuple(sheet[0] for sheet in joined))
