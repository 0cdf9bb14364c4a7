"""LIME: a linear model of the value around the whole text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.parameters import check_in_range, check_integer
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.kept_sets import SetValues, evaluate_sets
from raison.methods.margin import answer_with_margin
from raison.models.protocol import Model

__all__ = ["Lime"]

MOST_OWN = 0.9  # share of its own residual that a sample may explain before its influence is cut


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
        check_integer("samples", self.samples, 2)
        check_in_range("width", self.width, 0)
        check_in_range("ridge", self.ridge, 0)

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        samples = []
        sets = []
        for index, units in enumerate(batch.units):
            size = len(units)
            random = batch.generator(index)
            keep = self.draw_samples(size, random)
            samples.append(keep)
            # what is there without any unit is asked for the record: the linear model does not go through it
            nothing = np.zeros((1, size), bool)
            sets_of_text = np.concatenate([keep, nothing])
            sets.append(sets_of_text)

        values = evaluate_sets(model, batch, sets)
        answers = []
        for keep, asked in zip(samples, values, strict=True):
            answer = self.fit_linear_model(keep, asked)
            answers.append(answer)
        return answers

    def draw_samples(self, size: int, random: np.random.Generator) -> np.ndarray:
        """[n u] the whole text, then sets from which at least one unit is gone."""
        count = self.samples - 1
        gone = np.zeros(count, np.int64)
        if size:
            gone = random.integers(1, size + 1, count)
        noise = random.random((count, size))
        order = noise.argsort(1)
        place_in_order = order.argsort(1)
        keep = place_in_order >= gone[:, None]
        whole_text = np.ones((1, size), bool)
        return np.concatenate([whole_text, keep])

    def fit_linear_model(self, keep: np.ndarray, asked: SetValues) -> Answer:
        """The weighted ridge regression on the sets [n u] that are kept."""
        size = keep.shape[1]
        value = asked.value[:-1]
        weight = self.weights(keep)

        # [n 1+u] the intercept comes first
        count = len(keep)
        intercept = np.ones((count, 1))
        rows = np.concatenate([intercept, keep], axis=1)
        penalties = [0.0] + [self.ridge] * size
        weighted_rows = rows * weight[:, None]
        normal_matrix = weighted_rows.T @ rows + np.diag(penalties)
        inverse = np.linalg.inv(normal_matrix)
        weighted_value = weight * value
        coefficients = inverse @ (rows.T @ weighted_value)
        fitted = rows @ coefficients
        residual = value - fitted

        # the sampling error, by linearisation
        pulls = rows @ inverse
        self_fit = (pulls * rows).sum(1)
        own = weight * self_fit  # [n] how much a sample fits itself
        own_limited = np.minimum(own, MOST_OWN)
        leverage = weight * residual / (1 - own_limited)
        leveraged_rows = rows * leverage[:, None]
        influence = leveraged_rows @ inverse  # [n 1+u] on the coefficients
        variance = count * influence.var(0, ddof=1)
        error = np.sqrt(variance)
        squared_weights = weight**2
        effective_samples = weight.sum() ** 2 / squared_weights.sum()
        degrees = int(effective_samples - own.sum())

        # the weighted R²
        fit = 1.0
        mean = np.average(value, weights=weight)
        squared_distances = (value - mean) ** 2
        spread = weight @ squared_distances
        if spread > 0:
            squared_residuals = residual**2
            unexplained = weight @ squared_residuals / spread
            fit = float(1 - unexplained)

        facts = {
            "value": value[0],
            "empty": asked.value[-1],
            "samples": count,
            "evaluations": asked.evaluations,
            "fit": fit,
        }
        scores = coefficients[1:]
        error_of_scores = error[1:]
        answer = answer_with_margin(
            scores, error_of_scores, degrees, diagnostics=facts, cost=asked.cost
        )
        answer.parts["intercept"] = float(coefficients[0])
        return answer

    def weights(self, keep: np.ndarray) -> np.ndarray:
        """π(z) of each set [n u]."""
        count, size = keep.shape
        distance = np.zeros(count)
        if size:
            share_kept = keep.mean(1)
            distance = 1 - np.sqrt(share_kept)
        in_widths = distance / self.width
        exponent = -(in_widths**2)
        return np.asarray(np.exp(exponent))
