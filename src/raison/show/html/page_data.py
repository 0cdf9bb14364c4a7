"""The data of the page: records of explanations as JSON, the words about each, and which groups are drawn together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from raison.core.records import Explanation
from raison.show.explanation_groups import ExplanationGroup, group_explanations
from raison.show.html.explanation_words import words_of_explanation
from raison.show.html.matrix_words import words_of_matrix
from raison.show.html.methods_words import words_of_methods

__all__ = ["page_data"]


def page_data(
    explanations: Sequence[Explanation], *, together: bool = False, share_texts: bool = False
) -> dict[str, Any]:
    """Records with their words as JSON, and groups that name records by their places.

    Methods that explain the same thing, in a row, are one group, and so are rationales of many targets of one text;
    `together`: all are methods of one group. `share_texts`: a text that several records have is said once.
    """
    groups = list(group_explanations(explanations, rationales_apart=True))
    if together:
        groups = [ExplanationGroup("methods", tuple(explanations))]
    places = {id(explanation): place for place, explanation in enumerate(explanations)}
    in_matrix = {
        id(member) for group in groups if group.kind == "matrix" for member in group.members
    }
    words = []
    for explanation in explanations:
        has_text = id(explanation) not in in_matrix  # a matrix has one text for all
        words.append(asdict(words_of_explanation(explanation, with_units=has_text)))
    records = [explanation.to_dict() for explanation in explanations]
    if share_texts:
        records = records_sharing_texts(explanations)
    return {
        "explanations": records,
        "words": words,
        "groups": [json_of_explanation_group(group, places) for group in groups],
    }


def json_of_explanation_group(group: ExplanationGroup, places: dict[int, int]) -> dict[str, Any]:
    """A group with what is said about its members as a whole."""
    words: dict[str, Any] = {}
    if group.kind == "methods":
        words = asdict(words_of_methods(group.members))
    elif group.kind == "matrix":
        words = asdict(words_of_matrix(group.members))
    return {
        "kind": group.kind,
        "members": [places[id(member)] for member in group.members],
        "words": words,
    }


def records_sharing_texts(explanations: Sequence[Explanation]) -> list[dict[str, Any]]:
    """The records as JSON; an encoding that came before is named by its place, since a matrix has one text only."""
    first_with: dict[str, int] = {}
    records = []
    for place, explanation in enumerate(explanations):
        record = explanation.to_dict()
        first = first_with.setdefault(explanation.encoding.content(), place)
        if first != place:
            record["encoding"] = first
        records.append(record)
    return records
