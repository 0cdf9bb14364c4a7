"""SmoothGrad: gradients averaged over noisy copies of the text."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.parameters import check_integer
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.baselines import WordEmbeddings
from raison.methods.gradient_norm import norm_of_gradient
from raison.methods.input_x_gradient import gradient_times_embedding
from raison.methods.margin import margin_of_95_percent
from raison.methods.paths import MadeOnDemand
from raison.methods.trace_answers import GRADIENTS, tensor_to_numpy
from raison.models.protocol import Model, Trace

__all__ = ["SmoothGrad"]

MAPS: dict[str, Callable[[Trace], torch.Tensor]] = {
    "gradient_norm": norm_of_gradient,
    "input_x_gradient": gradient_times_embedding,
}


@method("smooth_grad")
@dataclass(frozen=True)
class SmoothGrad(Method):
    """A gradient map averaged over noisy copies of the text, so that the model's small wiggles cancel.

    score_i = 1/n Σ_k M_i(e + ε_k), ε_k ~ N(0, σ²), σ = noise · (max e − min e), M = the gradient's norm or gradient ×
    input at the noisy embeddings, e = word embeddings of all tokens that the model reads (Smilkov et al. 2017). The
    range of e is taken over the text, as the paper takes it over an image. parts["standard_error"] says how far the
    mean of n copies may be off, and parts["margin_95"] is half the width of the 95 % interval of each token, by
    Student's t with n − 1 degrees of freedom. One noisy copy tells nothing about its error and has no margin.
    """

    samples: int = 50  # noisy copies
    noise: float = 0.15  # as a share of the range of the text's embeddings; 0: the map itself
    of: str = "gradient_norm"  # the map: gradient_norm | input_x_gradient
    paper = "Smilkov et al. 2017"
    needs = GRADIENTS

    def __post_init__(self) -> None:
        check_integer("samples", self.samples, 1)
        number = isinstance(self.noise, (int, float)) and not isinstance(self.noise, bool)
        if not number or not 0 <= self.noise < math.inf:
            raise InputError(f"noise is a number from 0 up, not {self.noise}.")
        if self.of not in MAPS:
            known = ", ".join(MAPS)
            raise InputError(f"of is one of {known}, not {self.of!r}.")

    @property
    def signed(self) -> bool:
        """A norm has no sign."""
        return self.of == "input_x_gradient"

    @property
    def additive(self) -> bool:
        """The norms of two tokens do not add up."""
        return self.of == "input_x_gradient"

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        words = WordEmbeddings(model)
        copies = self.samples
        if self.noise == 0:
            copies = 1
        clouds = []
        maps = []
        examples: list[int] = []
        for index, encoding in enumerate(batch.encodings):
            clouds.append(NoisyEmbeddings.around(words, batch, index, self.noise, copies))
            maps.append(np.zeros((copies, len(encoding))))
            examples += [index] * copies

        def noisy_copy(run: int) -> torch.Tensor:
            index, number = divmod(run, copies)
            return clouds[index].copy(number)

        traces = model.trace(
            [batch.encodings[index] for index in examples],
            [batch.targets[index] for index in examples],
            want=GRADIENTS,
            embeddings=MadeOnDemand(len(examples), noisy_copy),
        )
        map_of = MAPS[self.of]
        for run, trace in traces:
            index, number = divmod(run, copies)
            maps[index][number] = tensor_to_numpy(map_of(trace))

        answers = []
        for index, cloud in enumerate(clouds):
            answers.append(mean_of_noisy_maps(maps[index], cloud.sigma, batch, index))
        return answers


def mean_of_noisy_maps(maps: np.ndarray, sigma: float, batch: Batch, index: int) -> Answer:
    """The mean of the maps [n t] of one example, and how far it may be off."""
    copies, size = maps.shape
    error = np.zeros(size)
    if copies > 1:
        error = maps.std(0, ddof=1) / math.sqrt(copies)
    parts: dict[str, object] = {"standard_error": error}
    if copies > 1 or sigma == 0:
        parts["margin_95"] = margin_of_95_percent(error, copies - 1)
    inputs = batch.targets[index].inputs(size)
    tokens_read = int(inputs.sum())
    return Answer(
        maps.mean(0),
        parts=parts,
        diagnostics={"sigma": sigma, "samples": copies, "standard_error": float(error.max())},
        cost={"forwards": copies, "tokens": copies * tokens_read},
    )


@dataclass(frozen=True)
class NoisyEmbeddings:
    """A text's embeddings and the noise around them."""

    centre: torch.Tensor  # [t d]
    sigma: float
    seeds: np.ndarray  # [n] of each copy, so that a copy can be made whenever it is its turn

    @classmethod
    def around(
        cls, words: WordEmbeddings, batch: Batch, index: int, noise: float, copies: int
    ) -> NoisyEmbeddings:
        encoding = batch.encodings[index]
        centre = words.of(encoding)
        inputs = batch.targets[index].inputs(len(encoding))
        read = centre[torch.from_numpy(inputs).to(centre.device)]
        sigma = noise * float(read.max() - read.min())
        seeds = batch.generator(index).integers(2**63, size=copies)
        return cls(centre, sigma, seeds)

    def copy(self, number: int) -> torch.Tensor:
        """[t d] the embeddings with noise; the centre itself where there is none."""
        if self.sigma == 0:
            return self.centre
        generator = np.random.default_rng(self.seeds[number])
        drawn = generator.standard_normal(self.centre.shape)
        noise = torch.from_numpy(self.sigma * drawn)
        return self.centre + noise.to(self.centre)
