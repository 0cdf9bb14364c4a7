"""LIME: a linear model of the value around the whole text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.spec import between, whole
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.margin import margin
from raison.methods.perturbation import Asked, ask
from raison.models.protocol import Model

__all__ = ["Lime"]


@method("lime")
@dataclass(frozen=True)
class Lime(Method):
    """Weights of a linear model that imitates the value on texts like this one, with units removed at random.

    β = argmin Σ_z π(z) (f(z) − b − Σ_u β_u z_u)² + ridge · Σ_u β_u², with π(z) = exp(−d(z)² / width²) and
    d(z) = 1 − √(|z| / M), the cosine distance of z to the M ones of the whole text, 1 for no unit at all; the
    intercept b is free of the penalty (Ribeiro et al. 2016). Sets are drawn as its text explainer draws them: first
    how many units go, evenly from 1 to M, then which; the first sample is the whole text. `standard_error` is the
    sampling error of that draw, by linearisation, and `margin_95` half the width of the 95 % interval around each
    score, by Student's t with the degrees of freedom (Σ π)² / Σ π², the effective number of samples (Kish 1965), less
    what the fit takes. Both tell how far other samples would move the weights. `fit` is the weighted R² of the linear
    model: a low one says that the weights describe the model badly.

    Unlike the authors' program all units get a weight, not only ten of them, and π is the paper's: the program takes
    its square root.
    """

    samples: int = 1000  # texts asked about; equal ones are run once
    width: float = 0.25  # of the neighbourhood, in cosine distance
    ridge: float = 1.0  # penalty of large weights

    paper = "Ribeiro et al. 2016"
    axis = "unit"
    needs = frozenset({"score"})

    def __post_init__(self) -> None:
        whole("samples", self.samples, 2)
        between("width", self.width, 0)
        between("ridge", self.ridge, 0)

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        chosen = [self.draw(len(units), batch.generator(i)) for i, units in enumerate(batch.units)]
        # what is there without any unit is asked for the record: the linear model does not go through it
        asked = ask(model, batch, [np.concatenate([keep, np.zeros((1, keep.shape[1]), bool)]) for keep in chosen])
        return [self.fitted(keep, answer) for keep, answer in zip(chosen, asked, strict=True)]

    def draw(self, size: int, random: np.random.Generator) -> np.ndarray:
        """[n u] the whole text, then sets from which at least one unit is gone."""
        gone = random.integers(1, size + 1, self.samples - 1) if size else np.zeros(self.samples - 1, np.int64)
        keep = random.random((self.samples - 1, size)).argsort(1).argsort(1) >= gone[:, None]
        return np.concatenate([np.ones((1, size), bool), keep])

    def fitted(self, keep: np.ndarray, asked: Asked) -> Answer:
        """The weighted ridge regression."""
        value, size = asked.value[:-1], keep.shape[1]
        facts = {"value": value[0], "empty": asked.value[-1], "samples": len(keep), "evaluations": asked.evaluations}
        distance = 1 - np.sqrt(keep.mean(1)) if size else np.zeros(len(keep))
        weight = np.exp(-((distance / self.width) ** 2))
        row = np.concatenate([np.ones((len(keep), 1)), keep], axis=1)  # [n 1+u] the intercept comes first
        penalty = np.diag([0.0] + [self.ridge] * size)
        inverse = np.linalg.inv((row * weight[:, None]).T @ row + penalty)
        weights = inverse @ (row.T @ (weight * value))
        rest = value - row @ weights
        own = weight * ((row @ inverse) * row).sum(1)  # [n] how much a sample fits itself
        influence = (row * (weight * rest / (1 - np.minimum(own, 0.9)))[:, None]) @ inverse  # [n 1+u] on the weights
        error = np.sqrt(len(keep) * influence.var(0, ddof=1))[1:]
        effective = weight.sum() ** 2 / (weight**2).sum()
        degrees = int(effective - own.sum())
        spread = weight @ (value - np.average(value, weights=weight)) ** 2
        facts["fit"] = float(1 - weight @ rest**2 / spread) if spread > 0 else 1.0
        facts["sampling_error"] = float(error.max(initial=0.0))
        parts = {"standard_error": error, "margin_95": margin(error, degrees), "intercept": float(weights[0])}
        return Answer(weights[1:], parts=parts, diagnostics=facts, cost=asked.cost)
