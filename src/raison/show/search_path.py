"""The path of a search for a rationale, step by step, ready to be printed or drawn.

`diagnostics["steps"]` is a list of {"action": start | add | remove | swap, "added", "removed": units, "size", "value",
"probability", "enough", "candidates": [[unit, value], ...]}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from raison.core.records import Explanation
from raison.show.certificate import certificate, count
from raison.show.wording import share, short, value_name

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
    if any("probability" in step for step in explanation.diagnostics.get("steps", ())):
        return "probability"
    return value_name(explanation.target)


def runners_up(explanation: Explanation) -> str:
    """What the others of a step are called; `refined` ranks by the lead over other predictions as well."""
    proof = certificate(explanation)
    led = explanation.method.startswith("refined") and str(proof.get("rule", "")).startswith("argmax")
    return "runners-up, by lead" if led else "runners-up"


def path(explanation: Explanation, dots: str = "…") -> list[Step]:
    """All steps, and at the end what the whole context gives; `dots` end names that are cut."""
    steps, proof = explanation.diagnostics.get("steps", []), certificate(explanation)
    if not steps:
        return []
    likely = [p for p in [s.get("probability") for s in steps] + [proof.get("full_probability")] if p is not None]
    highest = max(likely, default=0.0)
    probability = reading(steps)

    def weight(at: dict[str, Any] | None) -> float | None:
        found = proof.get("full_probability") if at is None else at.get("probability")
        return found / highest if found is not None and highest > 0 else None

    def figure(value: float | None, likely: float | None) -> str:
        return share(likely) if likely is not None else "" if value is None else f"{value:.4g}"

    found = []
    for number, step in enumerate(steps):
        moved = {*step.get("added", ()), *step.get("removed", ())}
        rivals = [(u, v) for u, v in step.get("candidates", ()) if u not in moved]
        found.append(
            Step(
                number,
                names(explanation, step.get("added", ()), dots),
                names(explanation, step.get("removed", ()), dots),
                step["size"],
                figure(step.get("value"), step.get("probability")),
                weight(step),
                bool(step.get("enough")),
                tuple((names(explanation, [u], dots), figure(v, probability and probability(v))) for u, v in rivals),
            )
        )
    if "full_value" in proof or "full_probability" in proof:
        whole = figure(proof.get("full_value"), proof.get("full_probability"))
        enough = proof.get("status") != "impossible"
        found.append(Step(None, "", "", len(explanation.units), whole, weight(None), enough))
    return found


def reading(steps: Sequence[dict[str, Any]]) -> Callable[[float], float] | None:
    """How values become probabilities, as told by the steps that give both; None where neither exp nor nothing fits."""
    pairs = [(s["value"], s["probability"]) for s in steps if s.get("probability") is not None and "value" in s]
    for read in (lambda value: math.exp(min(value, 700.0)), float):
        if pairs and all(math.isclose(read(v), p, rel_tol=1e-3, abs_tol=1e-6) for v, p in pairs):
            return read
    return None


def names(explanation: Explanation, units: Sequence[int], dots: str) -> str:
    if len(units) > NAMED:
        return count(len(units), explanation.units.level)
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
