"""Gradients averaged over noisy copies of the text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.spec import whole
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.baselines import Words
from raison.methods.margin import margin
from raison.models.protocol import Model, Trace

__all__ = ["SmoothGrad"]

MAPS: dict[str, Callable[[Trace], torch.Tensor]] = {
    "gradient_norm": lambda trace: trace.gradient.norm(dim=-1),  # type: ignore[union-attr]
    "input_x_gradient": lambda trace: (trace.gradient * trace.embeddings).sum(-1),  # type: ignore[operator]
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
    signed = False
    additive = False
    needs = frozenset({"gradients"})

    def __post_init__(self) -> None:
        whole("samples", self.samples, 1)
        number = isinstance(self.noise, (int, float)) and not isinstance(self.noise, bool)
        if not number or not 0 <= self.noise < math.inf:
            raise InputError(f"noise is a number from 0 up, not {self.noise}.")
        if self.of not in MAPS:
            raise InputError(f"of is one of {', '.join(MAPS)}, not {self.of!r}.")
        signs = self.of == "input_x_gradient"  # a norm has no sign, and the norms of two tokens do not add up
        object.__setattr__(self, "signed", signs)
        object.__setattr__(self, "additive", signs)

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        words = Words(model)
        copies = 1 if self.noise == 0 else self.samples
        clouds = [Cloud.around(words, batch, index, self.noise, copies) for index in range(len(batch))]
        jobs = [(index, number) for index in range(len(batch)) for number in range(copies)]
        found = [np.zeros((copies, len(encoding))) for encoding in batch.encodings]
        runs = model.trace(
            [batch.encodings[index] for index, _ in jobs],
            [batch.targets[index] for index, _ in jobs],
            want=frozenset({"gradients"}),
            embeddings=Copies(clouds, jobs),
        )
        for job, trace in runs:
            index, number = jobs[job]
            found[index][number] = MAPS[self.of](trace).cpu().double().numpy()
        return [
            self.answer(maps, cloud, batch, index)
            for index, (maps, cloud) in enumerate(zip(found, clouds, strict=True))
        ]

    def answer(self, maps: np.ndarray, cloud: Cloud, batch: Batch, index: int) -> Answer:
        copies = len(maps)
        error = maps.std(0, ddof=1) / math.sqrt(copies) if copies > 1 else np.zeros(maps.shape[1])
        parts = {"standard_error": error}
        if copies > 1 or cloud.sigma == 0:
            parts["margin_95"] = margin(error, copies - 1)
        read = int(batch.targets[index].inputs(maps.shape[1]).sum())
        return Answer(
            maps.mean(0),
            parts=parts,
            diagnostics={"sigma": cloud.sigma, "samples": copies, "standard_error": float(error.max())},
            cost={"forwards": copies, "tokens": copies * read},
        )


@dataclass(frozen=True)
class Cloud:
    """A text's embeddings and the noise around them."""

    centre: torch.Tensor  # [t d]
    sigma: float
    seeds: np.ndarray  # [n] of each copy, so that a copy can be made whenever it is its turn

    @classmethod
    def around(cls, words: Words, batch: Batch, index: int, noise: float, copies: int) -> Cloud:
        encoding = batch.encodings[index]
        centre = words.of(encoding)
        read = centre[torch.from_numpy(batch.targets[index].inputs(len(encoding))).to(centre.device)]
        sigma = noise * float(read.max() - read.min())
        return cls(centre, sigma, batch.generator(index).integers(2**63, size=copies))

    def copy(self, number: int) -> torch.Tensor:
        if self.sigma == 0:
            return self.centre
        drawn = np.random.default_rng(self.seeds[number]).standard_normal(self.centre.shape)
        return self.centre + torch.from_numpy(self.sigma * drawn).to(self.centre)


@dataclass(frozen=True)
class Copies(Sequence):
    """Noisy embeddings made when they are asked for: all of them would not fit in memory together."""

    clouds: Sequence[Cloud]
    jobs: Sequence[tuple[int, int]]

    def __len__(self) -> int:
        return len(self.jobs)

    def __getitem__(self, job: Any) -> Any:
        index, number = self.jobs[job]
        return self.clouds[index].copy(number)
