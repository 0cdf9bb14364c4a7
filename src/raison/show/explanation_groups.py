"""Which explanations are shown together: several methods about the same thing, or the rows of one matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from raison.core.records import Explanation
from raison.show.rationale_sentences import is_rationale

__all__ = [
    "ExplanationGroup",
    "group_explanations",
    "group_into_matrices",
    "subject_of_explanation",
]

LEAST = 3  # rationales that make a matrix


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
        is_matrix = len(sheet) > 1
        is_apart = rationales_apart and sheet[0].certificate is not None
        if is_matrix or is_apart:
            return id(sheet)
        return subject_of_explanation(sheet[0])

    for _, neighbours in groupby(group_into_matrices(explanations), shared_key):
        sheets = list(neighbours)
        members = tuple(sheet[0] for sheet in sheets)
        if len(sheets[0]) > 1:
            yield ExplanationGroup("matrix", tuple(sheets[0]))
        elif len(sheets) == 1:
            yield ExplanationGroup("single", members)
        else:
            yield ExplanationGroup("methods", members)


def subject_of_explanation(explanation: Explanation) -> tuple[str, ...]:
    """What is explained, apart from the method: explanations that agree in it can be compared."""
    return (
        explanation.model,
        explanation.encoding.content(),
        explanation.units.content(),
        explanation.target.content(),
    )


# -- which rationales make a matrix ---------------------------------------------------------------------------


def group_into_matrices(
    explanations: Sequence[Explanation], least: int = LEAST
) -> list[list[Explanation]]:
    """The same explanations in the same order, in lists: those that make a matrix in one, any other alone."""
    keys = matrix_keys_of_rationales(explanations)
    groups: dict[tuple[object, ...], list[Explanation]] = {}
    for key, explanation in zip(keys, explanations, strict=True):
        groups.setdefault(key, []).append(explanation)

    found = []
    for key, explanation in zip(keys, explanations, strict=True):
        group = groups[key]
        if not is_enough_for_matrix(group, least):
            found.append([explanation])  # single ones keep their place
        elif explanation is group[0]:
            found.append(group)  # a matrix takes the place of its first row
    return found


def matrix_keys_of_rationales(explanations: Sequence[Explanation]) -> list[tuple[object, ...]]:
    """For each explanation what rationales of one matrix share; for any other its place in the list."""
    contents: dict[int, str] = {}  # many rows hold one and the same encoding: hash it once
    keys: list[tuple[object, ...]] = []
    for place, explanation in enumerate(explanations):
        if not is_rationale(explanation) or not explanation.target.positions:
            keys.append((place,))
            continue
        encoding = explanation.encoding
        if id(encoding) not in contents:
            contents[id(encoding)] = encoding.content()
        content = contents[id(encoding)]
        keys.append((explanation.model, explanation.method, explanation.removal, content))
    return keys


def is_enough_for_matrix(group: Sequence[Explanation], least: int) -> bool:
    """Whether these are enough rationales, each of a target of its own."""
    targets = {explanation.target.positions for explanation in group}
    return len(group) >= least and len(targets) == len(group)
