"""Integrated gradients, collected along a straight path from an absent text to the real one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.parameters import check_in_range, check_integer
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.baselines import (
    Baseline,
    WordEmbeddings,
    check_baseline,
    tokens_moved_from_baseline,
)
from raison.methods.paths import EmbeddingPath, slopes_at
from raison.methods.quadrature import (
    FIRST,
    MOST,
    Integral,
    QuadratureRule,
    adaptive_rule,
    midpoint_rule,
    reference_rule,
)
from raison.models.protocol import Model

__all__ = ["IntegratedGradients"]

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

    # equal steps; None: as many evaluations as it takes, where they are needed
    steps: int | None = None
    baseline: str = "auto"  # zero | pad | mask | mean | text:… | auto: mask, else pad, else mean
    rule: str = "midpoint"  # of equal steps; reference: P0's, steps + 1 places with both ends, all weighted alike
    # of the gap: where the adaptive evaluation ends, and above which a note says so
    tolerance: float = 0.01
    most: int = MOST  # evaluations of one path at most, without steps
    moved: str = "free"  # free: only what may be removed | all: everything that the target may see
    paper = "Sundararajan et al. 2017"
    additive = True
    needs = frozenset({"gradients"})

    def __post_init__(self) -> None:
        if self.steps is not None:
            check_integer("steps", self.steps, 1)
        check_integer("most", self.most, FIRST + 2)
        check_baseline(self.baseline)
        check_in_range("tolerance", self.tolerance, 0, 1)
        self.check_word("rule", self.rule, RULES)
        self.check_word("moved", self.moved, MOVED)
        if self.rule == "reference" and self.steps is None:
            raise InputError(
                "The rule 'reference' needs a number of steps: write steps=100, as P0 did."
            )

    def check_word(self, name: str, value: str, known: tuple[str, ...]) -> None:
        if value not in known:
            raise InputError(f"{name} is one of {', '.join(known)}, not {value!r}.")

    def quadrature(self, rounding: float) -> QuadratureRule:
        """The rule of one path; `rounding` is the relative precision of the model's values."""
        if self.steps is None:
            return adaptive_rule(self.tolerance, rounding, self.most)
        if self.rule == "midpoint":
            return midpoint_rule(self.steps)
        return reference_rule(self.steps)

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        words = WordEmbeddings(model)
        absent = Baseline(words, self.baseline)
        rounding = ROUNDING * torch.finfo(absent.dtype).eps
        moved = []
        walks = []
        for encoding, target in zip(batch.encodings, batch.targets, strict=True):
            moving_tokens = tokens_moved_from_baseline(encoding, target, self.moved)
            path = EmbeddingPath(absent.rows(encoding, moving_tokens), words.of(encoding))
            moved.append(moving_tokens)
            walks.append(PathIntegration(path, self.quadrature(rounding)))

        integrate_together(model, batch, walks)
        answers = []
        for index, walk in enumerate(walks):
            answers.append(self.answer(walk, absent, batch, index, moved[index]))
        return answers

    def answer(
        self, walk: PathIntegration, absent: Baseline, batch: Batch, index: int, moved: np.ndarray
    ) -> Answer:
        """The scores of one example, and whether they add up."""
        integral = walk.integral
        if not np.isfinite(integral.scores).all():
            raise InputError(
                f"The gradient of {absent.words.model.name} is not finite on the way from the baseline "
                f"{absent.name!r}: use another one, or equal steps (steps=50), which keep off the baseline itself."
            )
        encoding = batch.encodings[index]
        inputs = batch.targets[index].inputs(len(encoding))
        tokens_read = int(inputs.sum())
        diagnostics = {
            "value": integral.end,
            "baseline_value": integral.start,
            "baseline": absent.name,
            "completeness_gap": integral.gap,
            "completeness_error": integral.error,
            "points": integral.places,
        }
        notes = [*absent.notes(encoding, moved), *self.doubts(integral)]
        return Answer(
            integral.scores,
            diagnostics=diagnostics,
            notes=tuple(notes),
            cost={"forwards": walk.evaluations, "tokens": walk.evaluations * tokens_read},
        )

    def doubts(self, integral: Integral) -> list[str]:
        """Sentences about a path that was not integrated well, or that leads nowhere."""
        notes = []
        difference = integral.end - integral.start
        remedy = "take more steps"
        if self.steps is None:
            remedy = f"try another baseline, or more points (most={self.most})"

        if integral.gap > self.tolerance:
            percent = 100 * integral.gap
            size = f"by {percent:.2g} %, {abs(integral.error):.2g}"
            reason = remedy
            if self.steps is None and integral.settled:
                reason = "the model computes no more exactly"
            notes.append(
                f"The scores miss what they should add up to, {difference:.4g}, {size}: {reason}."
            )
        elif not integral.settled:
            notes.append(f"The scores had not settled after {integral.places} points: {remedy}.")
        if abs(difference) < integral.scale:
            notes.append(
                f"The value hardly differs from the baseline's (by {difference:.2g}): scores for and against cancel, "
                "so the gap is measured against a hundredth of their sizes."
            )
        return notes


@dataclass
class PathIntegration:
    """A path, and the rule that decides at which places of it the model is asked."""

    path: EmbeddingPath
    rule: QuadratureRule
    evaluations: int = 0
    # places that the rule wants to know about; none at its end
    wanted: np.ndarray = field(init=False)
    integral: Integral = field(init=False)  # what the rule returns at its end

    def __post_init__(self) -> None:
        self.wanted = next(self.rule)

    def tell(self, values: np.ndarray, parts: np.ndarray) -> None:
        """Hand the rule F [n] and G [n t] at the places that it wanted."""
        self.evaluations += len(values)
        try:
            self.wanted = self.rule.send((values, parts))
        except StopIteration as end:
            self.wanted = np.zeros(0)
            self.integral = end.value


def integrate_together(model: Model, batch: Batch, walks: Sequence[PathIntegration]) -> None:
    """Follow each path as its rule wants, all of them a round at a time."""
    while any(len(walk.wanted) for walk in walks):
        examples: list[int] = []
        places: list[float] = []
        for index, walk in enumerate(walks):
            examples += [index] * len(walk.wanted)
            places += walk.wanted.tolist()

        values = np.zeros(len(places))
        parts: dict[int, np.ndarray] = {}
        paths = [walks[index].path for index in examples]
        for slope in slopes_at(model, batch, examples, paths, places):
            values[slope.point] = slope.value
            parts[slope.point] = slope.parts

        first = 0
        for walk in walks:
            points = range(first, first + len(walk.wanted))
            first = points.stop
            if points:
                parts_of_walk = np.stack([parts[point] for point in points])
                walk.tell(values[points.start : points.stop], parts_of_walk)
