"""What the page says about explanations, in words and numbers ready to be drawn: the page itself makes no sentence.

The records travel to the browser as they are; these words travel beside them (page_data.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from raison.core.records import Explanation
from raison.show import rationale_sentences as proof
from raison.show.explanation_sentences import (
    explanation_notes,
    headline_of_explanation,
    provenance_facts,
    telling_diagnostics,
)
from raison.show.search_path_steps import (
    PathStep,
    path_excerpt,
    path_measure,
    path_runners_up_title,
    search_path,
)
from raison.show.text_formats import (
    CURLY,
    clean_text,
    count_with_noun,
)
from raison.show.text_pieces import is_unproved_selection

__all__ = ["ExplanationWords", "words_of_explanation"]

DOT = " · "
MINUS = "−"
MOST_RUNNERS_UP = 2  # named in a step


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


@dataclass(frozen=True)
class RationaleWords:
    """What is said about a rationale besides its text."""

    warnings: list[str]
    size: str  # `3 of 9 tokens`
    names: str  # in the order chosen
    besides: str
    proof: list[str]
    effort: str
    roles: list[str]  # of the passages of a grounded answer
    path: PathWords | None


@dataclass(frozen=True)
class PathWords:
    """The path of the search as a table."""

    measure: str  # what the figures are
    runners_up: str  # the title of their column; empty where there are none
    rows: list[PathRow]
    excerpt: list[int | str]  # rows of the short table, and what stands for those left out


@dataclass(frozen=True)
class PathRow:
    number: str
    change: str
    size: int
    figure: str
    weight: float | None  # the length of the bar
    enough: bool
    runners_up: str


def words_of_explanation(explanation: Explanation) -> ExplanationWords:
    """All that the page says about one explanation."""
    heading = headline_of_explanation(explanation, CURLY)
    diagnostics = DOT.join(telling_diagnostics(explanation))
    return ExplanationWords(
        outcome=heading.outcome,
        value=heading.value,
        contrast=heading.contrast,
        facts=facts_of_explanation(explanation),
        remarks=[remark for remark in [diagnostics, *explanation_notes(explanation)] if remark],
        selected=selected_count_in_words(explanation),
        rationale=words_of_rationale(explanation) if proof.is_rationale(explanation) else None,
    )


def selected_count_in_words(explanation: Explanation) -> str:
    if explanation.selected is None or explanation.certificate is not None:
        return ""
    units = count_with_noun(len(explanation.selected), explanation.units.level)
    count = f"{int(explanation.selected.sum())} of {units}"
    return f"rationale {count}" if is_unproved_selection(explanation) else f"{count} selected"


def facts_of_explanation(explanation: Explanation) -> dict[str, str]:
    """What the model predicts, where that is not the target, and how the explanation came about."""
    predicted = headline_of_explanation(explanation, CURLY).predicted
    facts = {"predicted": predicted} if predicted else {}
    return facts | {"model": clean_text(explanation.model)} | provenance_facts(explanation)


def words_of_rationale(explanation: Explanation) -> RationaleWords:
    selected = proof.rationale_in_words(explanation, quotes=CURLY)
    passages = () if explanation.grounding is None else explanation.grounding.passages
    return RationaleWords(
        warnings=proof.rationale_warnings(explanation),
        size=selected.size,
        names=" → ".join(selected.names),
        besides=selected.besides,
        proof=proof.certificate_in_words(explanation),
        effort=DOT.join(proof.search_effort_in_words(explanation)),
        roles=[proof.passage_role_in_answer(passage) for passage in passages],
        path=words_of_path(explanation) if explanation.steps else None,
    )


def words_of_path(explanation: Explanation) -> PathWords:
    steps = search_path(explanation)
    places = {id(step): place for place, step in enumerate(steps)}
    shown: list[int | str] = []
    for step in path_excerpt(steps):
        shown.append(
            f"⋮ {count_with_noun(step, 'step')} more" if isinstance(step, int) else places[id(step)]
        )
    has_runners_up = any(step.rivals for step in steps)
    return PathWords(
        measure=path_measure(explanation),
        runners_up=path_runners_up_title(explanation) if has_runners_up else "",
        rows=[words_of_step(step) for step in steps],
        excerpt=shown,
    )


def words_of_step(step: PathStep) -> PathRow:
    rivals = [f"{name} {with_wide_minus(figure)}" for name, figure in step.rivals[:MOST_RUNNERS_UP]]
    return PathRow(
        number="" if step.number is None else str(step.number),
        change=step.change(MINUS),
        size=step.size,
        figure=with_wide_minus(step.figure),
        weight=step.weight,
        enough=step.enough,
        runners_up=", ".join(rivals),
    )


def with_wide_minus(figure: str) -> str:
    """A number with a minus that is as wide as a plus."""
    return figure.replace("-", MINUS)


# -- several methods ----------------------------------------------------------------------------------------


# -- a matrix of rationales ---------------------------------------------------------------------------------
