"""What the page says about a rationale: warnings, certificate, the table of the search path, and a walk through it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.findings import SearchStep
from raison.core.records import Explanation
from raison.show.rationale_sentences import (
    certificate_in_words,
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
    DOT,
    MINUS,
    count_with_noun,
    probability_in_percent,
    short_name,
    with_wide_minus,
)
from raison.show.text_pieces import given_tokens

__all__ = ["RationaleWords", "words_of_rationale"]

MOST_RUNNERS_UP = 2  # named in a step
MOST_WALK_NAMES = 3  # units named in a step of the walk
LONGEST_WALK_NAME = 24  # characters


@dataclass(frozen=True)
class RationaleWords:
    """What is said about a rationale besides its text."""

    warnings: list[str]
    size: str  # `3 of 9 tokens`
    names: str  # in the order chosen
    besides: str
    has_given: bool  # tokens are kept besides
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
    walk: list[str]  # a sentence for each step; empty where the search can't be walked through
    probabilities: str  # of the first step and the last


@dataclass(frozen=True)
class PathStepWords:
    """One row of that table."""

    number: str
    change: str
    size: int
    figure: str
    weight: float | None  # the length of the bar
    enough: bool
    runners_up: str


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
        has_given=bool(given_tokens(explanation).any()),
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
        walk=walk_in_words(explanation),
        probabilities=probabilities_of_walk(explanation),
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


# -- a walk through the search ------------------------------------------------------------------------------


def walk_in_words(explanation: Explanation) -> list[str]:
    """What each step did, how large the set is then, and whether it is enough; none where steps are missing."""
    last = len(explanation.steps) - 1
    if last < 1 or not has_all_steps(explanation.steps):
        return []
    sentences = []
    for number, step in enumerate(explanation.steps):
        facts = [f"step {number} of {last}"]
        if step.added:
            facts.append(f"+ {unit_names_of_walk(explanation, step.added)}")
        if step.removed:
            facts.append(f"{MINUS} {unit_names_of_walk(explanation, step.removed)}")
        facts.append(count_with_noun(step.size, explanation.units.level))
        if step.probability is not None:
            facts.append(probability_in_percent(step.probability))
        facts.append("enough" if step.sufficient else "not enough yet")
        sentences.append(DOT.join(facts))
    return sentences


def has_all_steps(steps: Sequence[SearchStep]) -> bool:
    """Whether the units that were added and removed make sets of the sizes that the steps say."""
    units: set[int] = set()
    for step in steps:
        units |= set(step.added)
        units -= set(step.removed)
        if len(units) != step.size:
            return False
    return True


def unit_names_of_walk(explanation: Explanation, units: Sequence[int]) -> str:
    """The first units by their names; dots stand for more."""
    first = units[:MOST_WALK_NAMES]
    names = [short_name(explanation.units.names[unit], LONGEST_WALK_NAME) for unit in first]
    dots = " …" if len(units) > len(first) else ""
    return ", ".join(names) + dots


def probabilities_of_walk(explanation: Explanation) -> str:
    """`probability from 50.0 % to 80.0 %`; empty where a step has none."""
    probabilities = [step.probability for step in explanation.steps]
    first, last = probabilities[0], probabilities[-1]
    if first is None or last is None:
        return ""
    return f"probability from {probability_in_percent(first)} to {probability_in_percent(last)}"
