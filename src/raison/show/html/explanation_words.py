"""What the page says about one explanation: headline, facts, remarks; the rationale, its certificate and search path.

Words and numbers are ready to be drawn: the page itself makes no sentence. The records travel to the browser as they
are; these words travel beside them (page_data.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from raison.core.records import Explanation
from raison.show.explanation_sentences import (
    explanation_notes,
    headline_of_explanation,
    provenance_facts,
    telling_diagnostics,
)
from raison.show.rationale_sentences import (
    certificate_in_words,
    is_rationale,
    passage_role_in_answer,
    rationale_in_words,
    rationale_warnings,
    search_effort_in_words,
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
    rows: list[PathStepWords]
    excerpt: list[int | str]  # rows of the short table, and what stands for those left out


@dataclass(frozen=True)
class PathStepWords:
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


def words_of_rationale(explanation: Explanation) -> RationaleWords:
    """All that the page says about a rationale besides its text."""
    selected = rationale_in_words(explanation, quotes=CURLY)
    roles = []
    if explanation.grounding is not None:
        for passage in explanation.grounding.passages:
            roles.append(passage_role_in_answer(passage))
    path = None
    if explanation.steps:
        path = words_of_path(explanation)
    return RationaleWords(
        warnings=rationale_warnings(explanation),
        size=selected.size,
        names=" → ".join(selected.names),
        besides=selected.besides,
        proof=certificate_in_words(explanation),
        effort=DOT.join(search_effort_in_words(explanation)),
        roles=roles,
        path=path,
    )


def words_of_path(explanation: Explanation) -> PathWords:
    """The table of the search path, and which rows the short table has."""
    steps = search_path(explanation)
    places = {id(step): place for place, step in enumerate(steps)}
    shown: list[int | str] = []
    for step in path_excerpt(steps):
        if isinstance(step, int):
            shown.append(f"⋮ {count_with_noun(step, 'step')} more")
        else:
            shown.append(places[id(step)])
    title_of_runners_up = ""
    if any(step.rivals for step in steps):
        title_of_runners_up = path_runners_up_title(explanation)
    return PathWords(
        measure=path_measure(explanation),
        runners_up=title_of_runners_up,
        rows=[words_of_step(step) for step in steps],
        excerpt=shown,
    )


def words_of_step(step: PathStep) -> PathStepWords:
    """One row of the table of the search path."""
    rivals = []
    for name, figure in step.rivals[:MOST_RUNNERS_UP]:
        rivals.append(f"{name} {with_wide_minus(figure)}")
    return PathStepWords(
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
