"""The path of a search for a rationale, step by step, ready to be printed or drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from raison.core.findings import SearchStep
from raison.core.records import Explanation
from raison.show.certificate import certificate_of
from raison.show.wording import percent, plural, short, value_name

__all__ = ["Step", "excerpt", "measure", "path", "runners_up"]

FIRST, LAST = 5, 5  # steps of a long path that are always shown
NAMED = 3  # units named in one step; more are counted
LONGEST = 28  # characters of a name


@dataclass(frozen=True)
class Step:
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
        parts = [f"+ {self.added}" if self.added else "", f"{minus} {self.removed}" if self.removed else ""]
        return "  ".join(filter(None, parts)) or ("start" if self.number is not None else "the whole context")


def measure(explanation: Explanation) -> str:
    """What the figures of the path are."""
    if any(step.probability is not None for step in explanation.steps):
        return "probability"
    return value_name(explanation.target)


def runners_up(explanation: Explanation) -> str:
    """What the others of a step are called; `refined` ranks by the lead over other predictions as well."""
    led = explanation.method.startswith("refined") and certificate_of(explanation).rule.startswith("argmax")
    return "runners-up, by lead" if led else "runners-up"


def path(explanation: Explanation, dots: str = "…") -> list[Step]:
    """All steps, and at the end what the whole context gives; `dots` end names that are cut."""
    certificate = certificate_of(explanation)
    if not explanation.steps:
        return []
    probabilities = [step.probability for step in explanation.steps] + [certificate.full_probability]
    highest = max((each for each in probabilities if each is not None), default=0.0)
    as_probability = reading(explanation.steps)

    shown = []
    for number, step in enumerate(explanation.steps):
        moved = {*step.added, *step.removed}
        rivals = []
        for unit, value in step.candidates:
            if unit not in moved:
                probability = None if as_probability is None else as_probability(value)
                rivals.append((names(explanation, [unit], dots), figure(value, probability)))
        shown.append(
            Step(
                number=number,
                added=names(explanation, step.added, dots),
                removed=names(explanation, step.removed, dots),
                size=step.size,
                figure=figure(step.value, step.probability),
                weight=weight(step.probability, highest),
                enough=step.sufficient,
                rivals=tuple(rivals),
            )
        )
    if certificate.full_value is not None or certificate.full_probability is not None:
        whole = Step(
            number=None,
            added="",
            removed="",
            size=len(explanation.units),
            figure=figure(certificate.full_value, certificate.full_probability),
            weight=weight(certificate.full_probability, highest),
            enough=certificate.status != "impossible",
        )
        shown.append(whole)
    return shown


def weight(probability: float | None, highest: float) -> float | None:
    """The length of a bar, relative to the longest."""
    return probability / highest if probability is not None and highest > 0 else None


def figure(value: float | None, probability: float | None) -> str:
    """A step's number: its probability where there is one."""
    if probability is not None:
        return percent(probability)
    return "" if value is None else f"{value:.4g}"


def reading(steps: Sequence[SearchStep]) -> Callable[[float], float] | None:
    """How values become probabilities, as told by the steps that give both; None where neither exp nor nothing fits."""
    pairs = []
    for step in steps:
        if step.probability is not None and step.value is not None:
            pairs.append((step.value, step.probability))
    for read in (exponential, float):
        if pairs and all(math.isclose(read(v), p, rel_tol=1e-3, abs_tol=1e-6) for v, p in pairs):
            return read
    return None


def exponential(value: float) -> float:
    return math.exp(min(value, 700.0))


def names(explanation: Explanation, units: Sequence[int], dots: str) -> str:
    if len(units) > NAMED:
        return plural(len(units), explanation.units.level)
    return ", ".join(short(explanation.units.names[u], LONGEST, dots) for u in units)


def excerpt(steps: Sequence[Step]) -> list[Step | int]:
    """The first and last steps and the first that is enough; a number stands for steps left out."""
    turn = next((place for place, step in enumerate(steps) if step.enough), 0)
    shown = {*range(FIRST), turn, *range(len(steps) - LAST - 1, len(steps))}
    found: list[Step | int] = []
    for place, step in enumerate(steps):
        if place in shown or (place - 1 in shown and place + 1 in shown):  # a gap of one is no gain
            found.append(step)
        elif found and isinstance(found[-1], int):
            found[-1] += 1
        else:
            found.append(1)
    return found
