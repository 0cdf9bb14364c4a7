"""Gradients collected along a straight path from an absent text to the real one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.spec import between, whole
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.baselines import Absent, Words, baseline_named, moving
from raison.methods.quadrature import FIRST, MOST, Integral, Rule, adaptive, midpoint, reference
from raison.models.protocol import Model

__all__ = ["IntegratedGradients", "Path", "Points"]

RULES = ("midpoint", "reference")
MOVED = ("free", "all")
ROUNDING = 8  # units in the last place of the model's dtype: below that a value tells nothing


@method("integrated_gradients")
@dataclass(frozen=True)
class IntegratedGradients(Method):
    """Gradients along the way from an absent text to the real one, times what changes on that way.

    score_i = ⟨e_i − e′_i, ∫₀¹ ∂f/∂e_i (e′ + α(e − e′)) dα⟩, e = word embeddings, e′ = the baseline (Sundararajan et al.
    2017). The scores add up to f(e) − f(e′); what is missing stands in the diagnostics, as completeness_error = f(e) −
    f(e′) − Σ scores and completeness_gap = |completeness_error| / max(|f(e) − f(e′)|, Σ|scores| / 100), and nothing is
    ever rescaled to hide it.

    Deviations: special tokens, the rows that the target is read from and its own tokens stay as they are (moved="all"
    moves whatever the target may see, as P0 does). Without `steps` the path is evaluated adaptively (`quadrature`);
    with them by that many midpoints, or by P0's released rule. The baseline is never zero unless asked for: on the way
    to zero RMSNorm makes the value jump.
    """

    steps: int | None = None  # equal steps; None: as many evaluations as it takes, where they are needed
    baseline: str = "auto"  # zero | pad | mask | mean | text:… | auto: mask, else pad, else mean
    rule: str = "midpoint"  # of equal steps; reference: P0's, steps + 1 places with both ends, all weighted alike
    tolerance: float = 0.01  # of the gap: where the adaptive evaluation ends, and above which a note says so
    most: int = MOST  # evaluations of one path at most, without steps
    moved: str = "free"  # free: only what may be removed | all: everything that the target may see
    paper = "Sundararajan et al. 2017"
    additive = True
    needs = frozenset({"gradients"})

    def __post_init__(self) -> None:
        if self.steps is not None:
            whole("steps", self.steps, 1)
        whole("most", self.most, FIRST + 2)
        baseline_named(self.baseline)
        between("tolerance", self.tolerance, 0, 1)
        for name, value, known in (("rule", self.rule, RULES), ("moved", self.moved, MOVED)):
            if value not in known:
                raise InputError(f"{name} is one of {', '.join(known)}, not {value!r}.")
        if self.rule == "reference" and self.steps is None:
            raise InputError("The rule 'reference' needs a number of steps: write steps=100, as P0 did.")

    def quadrature(self, rounding: float) -> Rule:
        if self.steps is None:
            return adaptive(self.tolerance, rounding, self.most)
        return (midpoint if self.rule == "midpoint" else reference)(self.steps)

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        words = Words(model)
        absent = Absent(words, self.baseline)
        moved = [moving(e, t, self.moved) for e, t in zip(batch.encodings, batch.targets, strict=True)]
        paths = [Path(absent.rows(e, where), words.of(e)) for e, where in zip(batch.encodings, moved, strict=True)]
        rules = [self.quadrature(ROUNDING * torch.finfo(absent.dtype).eps) for _ in paths]
        found = driven(model, batch, paths, rules)
        answers = []
        for index, (integral, asked) in enumerate(found):
            if not np.isfinite(integral.scores).all():
                raise InputError(
                    f"The gradient of {words.model.name} is not finite on the way from the baseline {absent.name!r}: "
                    "use another one, or equal steps (steps=50), which keep off the baseline itself."
                )
            notes = [*absent.notes(batch.encodings[index], moved[index]), *self.doubts(integral)]
            read = int(batch.targets[index].inputs(len(batch.encodings[index])).sum())
            diagnostics = {
                "value": integral.end,
                "baseline_value": integral.start,
                "baseline": absent.name,
                "completeness_gap": integral.gap,
                "completeness_error": integral.error,
                "points": integral.places,
            }
            cost = {"forwards": asked, "tokens": asked * read}
            answers.append(Answer(integral.scores, diagnostics=diagnostics, notes=tuple(notes), cost=cost))
        return answers

    def doubts(self, integral: Integral) -> list[str]:
        """Sentences about a path that was not integrated well, or that leads nowhere."""
        found = []
        difference = integral.end - integral.start
        better = f"try another baseline, or more points (most={self.most})" if self.steps is None else "take more steps"
        if integral.gap > self.tolerance:
            size = f"by {100 * integral.gap:.2g} %, {abs(integral.error):.2g}"
            reason = "the model computes no more exactly" if self.steps is None and integral.settled else better
            found.append(f"The scores miss what they should add up to, {difference:.4g}, {size}: {reason}.")
        elif not integral.settled:
            found.append(f"The scores had not settled after {integral.places} points: {better}.")
        if abs(difference) < integral.scale:
            found.append(
                f"The value hardly differs from the baseline's (by {difference:.2g}): scores for and against cancel, "
                "so the gap is measured against a hundredth of their sizes."
            )
        return found


@dataclass(frozen=True)
class Path:
    """The straight line from a baseline to a text, in word embeddings."""

    start: torch.Tensor  # [t d]
    end: torch.Tensor  # [t d] equal to the start where nothing moves

    @property
    def change(self) -> torch.Tensor:
        return self.end - self.start

    def at(self, place: float) -> torch.Tensor:
        return torch.lerp(self.start, self.end, place)  # exact at both ends


@dataclass(frozen=True)
class Points(Sequence):
    """Embeddings made when they are asked for: the points of many paths would not fit in memory together."""

    paths: Sequence[Path]
    places: Sequence[float]  # on each of them

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, number: Any) -> Any:
        return self.paths[number].at(self.places[number])


def driven(model: Model, batch: Batch, paths: Sequence[Path], rules: Sequence[Rule]) -> list[tuple[Integral, int]]:
    """What each rule returns for its path, and how many points it asked for; all paths take a round together."""
    results: list[Any] = [None] * len(paths)
    asked = [0] * len(paths)
    wanted = {index: next(rule) for index, rule in enumerate(rules)}
    while wanted:
        answers = {index: (np.zeros(len(places)), [None] * len(places)) for index, places in wanted.items()}
        jobs = [(index, number) for index, places in wanted.items() for number in range(len(places))]
        points = Points([paths[index] for index, _ in jobs], [float(wanted[index][number]) for index, number in jobs])
        for job, value, scores in slopes(model, batch, [index for index, _ in jobs], points):
            index, number = jobs[job]
            answers[index][0][number], answers[index][1][number] = value, scores  # type: ignore[call-overload]
        for index, (values, rows) in answers.items():
            asked[index] += len(values)
            try:
                wanted[index] = rules[index].send((values, np.stack(rows)))  # type: ignore[arg-type]
            except StopIteration as end:
                results[index] = (end.value, asked[index])
                del wanted[index]
    return results


def slopes(
    model: Model, batch: Batch, chosen: Sequence[int], points: Points
) -> Iterator[tuple[int, float, np.ndarray]]:
    """(number, F, G [t]) at each point of paths to the chosen examples: G_i = ⟨change_i, ∂f/∂e_i⟩."""
    encodings, targets = [batch.encodings[i] for i in chosen], [batch.targets[i] for i in chosen]
    for number, trace in model.trace(encodings, targets, want=frozenset({"gradients"}), embeddings=points):
        product = (trace.gradient * points.paths[number].change).sum(-1)  # type: ignore[operator]
        yield number, trace.value, product.cpu().double().numpy()
