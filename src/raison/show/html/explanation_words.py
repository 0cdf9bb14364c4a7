"""What the page says about one explanation: headline, facts and remarks, the passages of its text, and its units.

Words and numbers are ready to be drawn: the page itself makes no sentence. The records travel to the browser as they
are; these words travel beside them (page_data.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.records import Explanation
from raison.show.explanation_sentences import (
    explanation_notes,
    headline_of_explanation,
    provenance_facts,
    telling_diagnostics,
)
from raison.show.html.rationale_words import RationaleWords, words_of_rationale
from raison.show.rationale_sentences import (
    is_rationale,
)
from raison.show.text_formats import (
    CURLY,
    DOT,
    MINUS,
    browser_number,
    clean_text,
    count_with_noun,
)
from raison.show.text_pieces import (
    TextPassage,
    answer_passages,
    is_unproved_selection,
    text_passages,
)

__all__ = ["ExplanationWords", "facts_of_explanation", "words_of_explanation"]

# -- one explanation ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExplanationWords:
    """What is said about one explanation."""

    outcome: str
    value: str  # its probability, or what a regression gives
    contrast: str
    facts: dict[str, str]  # how it came about, by name
    remarks: list[str]  # telling diagnostics in a line, then what a reader must know
    selected: str  # how many units were, where nothing was proved about them
    rationale: RationaleWords | None
    passages: list[PassageWords]
    units: list[UnitWords]  # none where the page does not draw the text


def words_of_explanation(explanation: Explanation, *, with_units: bool = True) -> ExplanationWords:
    """All that the page says about one explanation; `with_units`: also about each of its units."""
    heading = headline_of_explanation(explanation, CURLY)
    remarks = explanation_notes(explanation)
    diagnostics = telling_diagnostics(explanation)
    if diagnostics:
        remarks.insert(0, DOT.join(diagnostics))
    rationale = None
    if is_rationale(explanation):
        rationale = words_of_rationale(explanation)
    return ExplanationWords(
        outcome=heading.outcome,
        value=heading.value,
        contrast=heading.contrast,
        facts=facts_of_explanation(explanation),
        remarks=[remark for remark in remarks if remark],
        selected=selected_count_in_words(explanation),
        rationale=rationale,
        passages=words_of_passages(explanation),
        units=words_of_units(explanation) if with_units else [],
    )


def selected_count_in_words(explanation: Explanation) -> str:
    """How many units were selected, where nothing was proved about them."""
    if explanation.selected is None or explanation.certificate is not None:
        return ""
    units = count_with_noun(len(explanation.selected), explanation.units.level)
    count = f"{int(explanation.selected.sum())} of {units}"
    if is_unproved_selection(explanation):
        return f"rationale {count}"
    return f"{count} selected"


def facts_of_explanation(explanation: Explanation) -> dict[str, str]:
    """What the model predicts, where that is not the target, and how the explanation came about."""
    facts = {}
    predicted = headline_of_explanation(explanation, CURLY).predicted
    if predicted:
        facts["predicted"] = predicted
    facts["model"] = clean_text(explanation.model)
    return facts | provenance_facts(explanation)


PieceWords = tuple[int, Sequence[int]] | tuple[int, Sequence[int], str]


@dataclass(frozen=True)
class PassageWords:
    """A passage: its text, and its pieces as (length, units, kind); pieces of the usual kind do not name it."""

    name: str
    text: str
    pieces: list[PieceWords]


@dataclass(frozen=True)
class UnitWords:
    """What is said about one unit, on hover, on focus and for screen readers."""

    label: str  # its name, exact score and rank, in a sentence
    score: str  # empty where the unit is only in or out
    remark: str  # its rank, and whether it was selected


# -- passages -----------------------------------------------------------------------------------------------


def words_of_passages(explanation: Explanation) -> list[PassageWords]:
    """The passages of an explanation; of a grounded answer those that it was looked for in."""
    passages = text_passages(explanation)
    if is_rationale(explanation) and explanation.grounding is not None:
        passages = answer_passages(explanation)
    return [words_of_passage(passage) for passage in passages]


def words_of_passage(passage: TextPassage) -> PassageWords:
    """The text of a passage, and how it is cut."""
    text = ""
    pieces: list[PieceWords] = []
    for piece in passage.pieces:
        text += piece.text
        if piece.kind == "plain":
            pieces.append((len(piece.text), piece.units))
        else:
            pieces.append((len(piece.text), piece.units, piece.kind))
    return PassageWords(passage.name, text, pieces)


# -- units --------------------------------------------------------------------------------------------------


def words_of_units(explanation: Explanation) -> list[UnitWords]:
    """What is said about each unit."""
    if is_unproved_selection(explanation):
        return words_of_selected_units(explanation)
    ranks = ranks_by_size(explanation.scores)
    places = {}
    if explanation.order is not None:
        places = {unit: place for place, unit in enumerate(explanation.order.tolist(), start=1)}

    words = []
    for unit, score in enumerate(explanation.scores.tolist()):
        facts = exact_score(score)
        if score > 0:
            facts += ", for"
        elif score < 0:
            facts += ", against"
        facts += f", rank {ranks[unit]} of {len(ranks)}"
        remark = f"rank {ranks[unit]}"
        if explanation.selected is not None and explanation.selected[unit]:
            remark += ", selected"
            facts += ", selected"
            if unit in places:
                facts += f" as number {places[unit]}"
        name = clean_text(explanation.units.names[unit])
        words.append(UnitWords(f"{name}: {facts}", score=exact_score(score), remark=remark))
    return words


def words_of_selected_units(explanation: Explanation) -> list[UnitWords]:
    """Whether each unit was selected; there is no more to say about it."""
    selected = explanation.selected
    words = []
    for unit, name in enumerate(explanation.units.names):
        is_selected = selected is not None and bool(selected[unit])
        remark = "selected" if is_selected else "not selected"
        words.append(UnitWords(f"{clean_text(name)}: {remark}", score="", remark=remark))
    return words


def ranks_by_size(scores: np.ndarray) -> list[int]:
    """[u] 1 for the score of the largest size; of equal ones the first comes first."""
    strongest_first = np.argsort(-np.abs(scores), kind="stable")
    ranks = [0] * len(scores)
    for rank, unit in enumerate(strongest_first.tolist(), start=1):
        ranks[unit] = rank
    return ranks


def exact_score(score: float) -> str:
    """A score with its sign and six digits."""
    sign = MINUS if score < 0 else "+"
    return sign + browser_number(abs(score), digits=6)
