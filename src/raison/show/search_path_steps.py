"""The path of a search for a rationale: its steps, their rivals and bars, and an excerpt of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from raison.core.findings import SearchStep
from raison.core.records import Explanation
from raison.show.explanation_sentences import target_value_name
from raison.show.rationale_sentences import certificate_of
from raison.show.text_formats import count_with_noun, probability_in_percent, short_name

__all__ = ["PathStep", "path_excerpt", "path_measure", "path_runners_up_title", "search_path"]

FIRST, LAST = 5, 5  # steps of a long path that are always shown
NAMED = 3  # units named in one step; more are counted
LONGEST = 28  # characters of a name


@dataclass(frozen=True)
class PathStep:
    """One step; `weight` is the length of its bar, relative to the most likely step, None without probabilities."""

    number: int | None  # None: no step of the search but the whole context, for comparison
    added: str
    removed: str
    size: int
    figure: str
    weight: float | None
    enough: bool
    rivals: tuple[tuple[str, str], ...] = ()  # names and figures of what was not chosen, best first

    def change(self, minus: str = "−") -> str:
        """`+ what was added` and `− what was removed`."""
        parts = []
        if self.added:
            parts.append(f"+ {self.added}")
        if self.removed:
            parts.append(f"{minus} {self.removed}")
        if parts:
            return "  ".join(parts)
        return "the whole context" if self.number is None else "start"


def path_measure(explanation: Explanation) -> str:
    """What the figures of the path are."""
    if any(step.probability is not None for step in explanation.steps):
        return "probability"
    return target_value_name(explanation.target)


def path_runners_up_title(explanation: Explanation) -> str:
    """What the others of a step are called; `refined` ranks by the lead over other predictions as well."""
    is_refined = explanation.method.startswith("refined")
    if is_refined and certificate_of(explanation).rule.startswith("argmax"):
        return "runners-up, by lead"
    return "runners-up"


def search_path(explanation: Explanation, dots: str = "…") -> list[PathStep]:
    """All steps, and at the end what the whole context gives; `dots` end names that are cut."""
    if not explanation.steps:
        return []
    highest = highest_path_probability(explanation)
    to_probability = step_value_to_probability(explanation.steps)
    steps = []
    for number, step in enumerate(explanation.steps):
        shown = PathStep(
            number=number,
            added=unit_names_of_step(explanation, step.added, dots),
            removed=unit_names_of_step(explanation, step.removed, dots),
            size=step.size,
            figure=value_of_step_in_words(step.value, step.probability),
            weight=path_bar_length(step.probability, highest),
            enough=step.sufficient,
            rivals=rivals_of_step(explanation, step, to_probability, dots),
        )
        steps.append(shown)

    certificate = certificate_of(explanation)
    if certificate.full_value is not None or certificate.full_probability is not None:
        whole_context = PathStep(
            number=None,
            added="",
            removed="",
            size=len(explanation.units),
            figure=value_of_step_in_words(certificate.full_value, certificate.full_probability),
            weight=path_bar_length(certificate.full_probability, highest),
            enough=certificate.status != "impossible",
        )
        steps.append(whole_context)
    return steps


def highest_path_probability(explanation: Explanation) -> float:
    """The largest probability of all steps and of the whole context; 0 where there are none."""
    probabilities = [step.probability for step in explanation.steps]
    probabilities.append(certificate_of(explanation).full_probability)
    known = [probability for probability in probabilities if probability is not None]
    return max(known, default=0.0)


def rivals_of_step(
    explanation: Explanation,
    step: SearchStep,
    to_probability: Callable[[float], float] | None,
    dots: str,
) -> tuple[tuple[str, str], ...]:
    """Names and figures of the candidates of a step that were not chosen."""
    moved = {*step.added, *step.removed}
    rivals = []
    for unit, value in step.candidates:
        if unit in moved:
            continue
        probability = None
        if to_probability is not None:
            probability = to_probability(value)
        name = unit_names_of_step(explanation, [unit], dots)
        rivals.append((name, value_of_step_in_words(value, probability)))
    return tuple(rivals)


def path_bar_length(probability: float | None, highest: float) -> float | None:
    """The length of a bar, relative to the longest."""
    if probability is None or highest <= 0:
        return None
    return probability / highest


def value_of_step_in_words(value: float | None, probability: float | None) -> str:
    """A step's number: its probability where there is one."""
    if probability is not None:
        return probability_in_percent(probability)
    return "" if value is None else f"{value:.4g}"


def step_value_to_probability(steps: Sequence[SearchStep]) -> Callable[[float], float] | None:
    """How values become probabilities, as the steps show that give both: by exp or as they are; None: neither fits."""
    pairs = []
    for step in steps:
        if step.probability is not None and step.value is not None:
            pairs.append((step.value, step.probability))
    if not pairs:
        return None

    for read in (exponential, float):
        fits = [math.isclose(read(v), p, rel_tol=1e-3, abs_tol=1e-6) for v, p in pairs]
        if all(fits):
            return read
    return None


def exponential(value: float) -> float:
    """exp of a value, finite for every value."""
    return math.exp(min(value, 700.0))


def unit_names_of_step(explanation: Explanation, units: Sequence[int], dots: str) -> str:
    """Units by their names; many are counted."""
    if len(units) > NAMED:
        return count_with_noun(len(units), explanation.units.level)
    names = [short_name(explanation.units.names[unit], LONGEST, dots) for unit in units]
    return ", ".join(names)


def path_excerpt(steps: Sequence[PathStep]) -> list[PathStep | int]:
    """The first and last steps and the first that is enough; a number stands for steps left out."""
    enough = [place for place, step in enumerate(steps) if step.enough]
    chosen = {*range(FIRST), *enough[:1], *range(len(steps) - LAST - 1, len(steps))}
    excerpt: list[PathStep | int] = []
    for place, step in enumerate(steps):
        # leaving out a single step would be no gain
        fills_gap_of_one = place - 1 in chosen and place + 1 in chosen
        if place in chosen or fills_gap_of_one:
            excerpt.append(step)
        elif excerpt and isinstance(excerpt[-1], int):
            excerpt[-1] += 1
        else:
            excerpt.append(1)
    return excerpt
