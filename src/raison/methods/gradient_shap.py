"""Gradients at random places between random absent texts and the real one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.records import Encoding
from raison.core.spec import whole
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.baselines import Absent, Words, baseline_named, moving
from raison.methods.integrated_gradients import Path, Points, slopes
from raison.methods.margin import margin
from raison.models.protocol import Model
from raison.models.runner.batching import streams_of

__all__ = ["GradientShap"]

RANDOM = "words"  # each free token becomes a word drawn from the vocabulary, anew for every sample


@method("gradient_shap")
@dataclass(frozen=True)
class GradientShap(Method):
    """Expected gradients: integrated gradients averaged over many baselines, at one random place of each path.

    score_i = E over e′ and α ~ U(0, 1) of ⟨e_i − e′_i, ∂f/∂e_i (e′ + α(e − e′))⟩ (Erion et al. 2021; Lundberg and Lee
    2017 call it GradientSHAP). e′ is drawn from `baselines`; by default every free token becomes a random word of the
    vocabulary, drawn anew for each sample, so that no single embedding plays "nothing". With one baseline the mean is
    that of integrated_gradients.

    Deviation: α is stratified (sample k lies in [k/n, (k+1)/n)), which has the same mean and less variance. The
    standard error of each token (parts["standard_error"]) comes from differences of neighbouring samples, √(Σ (g_{k+1}
    − g_k)² / (2n(n − 1))): right for independent samples, and if anything too large for stratified ones.
    parts["margin_95"] is half the width of the 95 % interval of each token, by Student's t with the degrees of freedom
    of such differences, 2(n − 1)² / (3n − 4) (von Neumann 1941): about two thirds of n − 1.
    """

    samples: int = 50  # gradients; the standard error falls with their square root, or faster
    baselines: str | tuple[str, ...] = "auto"  # words | zero | pad | mask | mean | text:…, or several; auto: words
    paper = "Erion et al. 2021"
    additive = True
    needs = frozenset({"gradients"})

    def __post_init__(self) -> None:
        whole("samples", self.samples, 2)
        if not self.names:
            raise InputError(
                "baselines names at least one baseline: words, zero, pad, mask, mean or 'text:some words'."
            )
        for name in self.names:
            if name != RANDOM:
                baseline_named(name)
        if len(self.names) > self.samples:
            raise InputError(f"{len(self.names)} baselines need at least as many samples, not {self.samples}.")

    @property
    def names(self) -> tuple[str, ...]:
        """The baselines; a bare word of a spec is a name."""
        given = self.baselines if isinstance(self.baselines, (tuple, list)) else (self.baselines,)
        names = tuple(str(name) for name in given)
        return (RANDOM,) if names == ("auto",) else names

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        words = Words(model)
        absent = [None if name == RANDOM else Absent(words, name) for name in self.names]
        draws = [Draws.of(words, absent, batch, index, self.samples) for index in range(len(batch))]
        chosen = [index for index in range(len(batch)) for _ in range(self.samples)]
        places = [float(place) for draw in draws for place in draw.places]
        found = [np.zeros((self.samples, len(encoding))) for encoding in batch.encodings]
        for number, _, scores in slopes(model, batch, chosen, Points(Drawn(draws, self.samples), places)):
            found[number // self.samples][number % self.samples] = scores
        names = [RANDOM if one is None else one.name for one in absent]
        return [self.answer(samples, names, batch, index) for index, samples in enumerate(found)]

    def answer(self, samples: np.ndarray, names: list[str], batch: Batch, index: int) -> Answer:
        error = standard_error(samples)
        total = standard_error(samples.sum(1, keepdims=True))
        read = int(batch.targets[index].inputs(samples.shape[1]).sum())
        size = float(np.abs(samples.mean(0)).max())
        return Answer(
            samples.mean(0),
            parts={"standard_error": error, "margin_95": margin(error, degrees_of_differences(len(samples)))},
            diagnostics={
                "baseline": ", ".join(names),
                "samples": self.samples,
                "standard_error": float(error.max()),
                "standard_error_share": float(error.max()) / size if size else 0.0,  # of the largest score
                "total": float(samples.mean(0).sum()),
                "total_standard_error": float(total[0]),
            },
            cost={"forwards": self.samples, "tokens": self.samples * read},
        )


def standard_error(samples: np.ndarray) -> np.ndarray:
    """[t] of the mean of samples [n t], from the differences of neighbours."""
    count = len(samples)
    return np.sqrt((np.diff(samples, axis=0) ** 2).sum(0) / (2 * count * (count - 1)))


def degrees_of_differences(count: int) -> int:
    """Degrees of freedom of a variance that was estimated from the differences of `count` neighbouring samples."""
    return 2 * (count - 1) ** 2 // (3 * count - 4)


@dataclass(frozen=True)
class Draws:
    """What chance decides for one example: where on its path each sample lies, and where the path begins."""

    words: Words
    encoding: Encoding
    moved: np.ndarray  # [t]
    absent: Sequence[Absent | None]  # None: random words
    which: np.ndarray  # [n] the baseline of each sample
    places: np.ndarray  # [n] α
    seeds: np.ndarray  # [n] for random words, so that a sample can be made whenever it is its turn

    @classmethod
    def of(cls, words: Words, absent: Sequence[Absent | None], batch: Batch, index: int, samples: int) -> Draws:
        generator = batch.generator(index)
        places = (np.arange(samples) + generator.random(samples)) / samples
        # every baseline as often as the others, at random places
        which = generator.permutation(np.arange(samples) % len(absent))
        seeds = generator.integers(2**63, size=samples)
        encoding, target = batch.encodings[index], batch.targets[index]
        return cls(words, encoding, moving(encoding, target, "free"), absent, which, places, seeds)

    def path(self, number: int) -> Path:
        absent = self.absent[self.which[number]]
        own = self.words.of(self.encoding)
        if absent is not None:
            return Path(absent.rows(self.encoding, self.moved), own)
        generator = np.random.default_rng(self.seeds[number])
        parts = enumerate(streams_of(self.encoding))
        drawn = [
            self.words.rows(stream, generator.choice(self.words.known[stream], len(index))) for stream, index in parts
        ]
        where = torch.from_numpy(self.moved).to(own.device)[:, None]
        return Path(torch.where(where, self.words.joined(self.encoding, drawn), own), own)


@dataclass(frozen=True)
class Drawn(Sequence):
    """Path `number` of all examples in a row, made when it is asked for."""

    draws: Sequence[Draws]
    samples: int

    def __len__(self) -> int:
        return len(self.draws) * self.samples

    def __getitem__(self, number: Any) -> Any:
        return self.draws[number // self.samples].path(number % self.samples)
