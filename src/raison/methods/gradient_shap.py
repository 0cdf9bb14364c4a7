"""Gradients at random places between random absent texts and the real one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.parameters import check_integer
from raison.core.records import Encoding
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.baselines import Baseline, WordEmbeddings, check_baseline, moved_tokens
from raison.methods.margin import margin_of_95_percent
from raison.methods.paths import EmbeddingPath, MadeOnDemand, slopes_at
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
    # words | zero | pad | mask | mean | text:…, or several; auto: words
    baselines: str | tuple[str, ...] = "auto"
    paper = "Erion et al. 2021"
    additive = True
    needs = frozenset({"gradients"})

    def __post_init__(self) -> None:
        check_integer("samples", self.samples, 2)
        if not self.names:
            raise InputError(
                "baselines names at least one baseline: words, zero, pad, mask, mean or 'text:some words'."
            )
        for name in self.names:
            if name != RANDOM:
                check_baseline(name)
        if len(self.names) > self.samples:
            raise InputError(
                f"{len(self.names)} baselines need at least as many samples, not {self.samples}."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The baselines; a bare word of a spec is a name."""
        given = self.baselines if isinstance(self.baselines, (tuple, list)) else (self.baselines,)
        names = tuple(str(name) for name in given)
        return (RANDOM,) if names == ("auto",) else names

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        words = WordEmbeddings(model)
        baselines = [None if name == RANDOM else Baseline(words, name) for name in self.names]
        draws = [
            PathDraws.of(words, baselines, batch, index, self.samples)
            for index in range(len(batch))
        ]

        def path(point: int) -> EmbeddingPath:
            index, number = divmod(point, self.samples)
            return draws[index].path(number)

        paths = MadeOnDemand(len(draws) * self.samples, path)
        places = [float(place) for draw in draws for place in draw.places]
        examples = [point // self.samples for point in range(len(paths))]
        samples = [np.zeros((self.samples, len(encoding))) for encoding in batch.encodings]
        for slope in slopes_at(model, batch, examples, paths, places):
            index, number = divmod(slope.point, self.samples)
            samples[index][number] = slope.parts

        names = [RANDOM if baseline is None else baseline.name for baseline in baselines]
        return [self.answer(rows, names, batch, index) for index, rows in enumerate(samples)]

    def answer(self, samples: np.ndarray, names: list[str], batch: Batch, index: int) -> Answer:
        """The mean of the samples [n t] of one example, and how far it may be off."""
        scores = samples.mean(0)
        error = error_from_differences(samples)
        error_of_total = error_from_differences(samples.sum(1, keepdims=True))
        largest = float(np.abs(scores).max())
        tokens_read = int(batch.targets[index].inputs(samples.shape[1]).sum())
        return Answer(
            scores,
            parts={
                "standard_error": error,
                "margin_95": margin_of_95_percent(error, degrees_of_differences(len(samples))),
            },
            diagnostics={
                "baseline": ", ".join(names),
                "samples": self.samples,
                "standard_error": float(error.max()),
                "standard_error_share": float(error.max()) / largest
                if largest
                else 0.0,  # of the largest score
                "total": float(scores.sum()),
                "total_standard_error": float(error_of_total[0]),
            },
            cost={"forwards": self.samples, "tokens": self.samples * tokens_read},
        )


def error_from_differences(samples: np.ndarray) -> np.ndarray:
    """[t] of the mean of samples [n t], from the differences of neighbours."""
    count = len(samples)
    differences = np.diff(samples, axis=0)
    return np.asarray(np.sqrt((differences**2).sum(0) / (2 * count * (count - 1))))


def degrees_of_differences(count: int) -> int:
    """Degrees of freedom of a variance that was estimated from the differences of `count` neighbouring samples."""
    return 2 * (count - 1) ** 2 // (3 * count - 4)


@dataclass(frozen=True)
class PathDraws:
    """What chance decides for one example: where on its path each sample lies, and where the path begins."""

    words: WordEmbeddings
    encoding: Encoding
    moved: np.ndarray  # [t]
    baselines: Sequence[Baseline | None]  # None: random words
    baseline_of: np.ndarray  # [n] the number of each sample's baseline
    places: np.ndarray  # [n] α
    seeds: np.ndarray  # [n] for random words, so that a sample can be made whenever it is its turn

    @classmethod
    def of(
        cls,
        words: WordEmbeddings,
        baselines: Sequence[Baseline | None],
        batch: Batch,
        index: int,
        samples: int,
    ) -> PathDraws:
        generator = batch.generator(index)
        places = (np.arange(samples) + generator.random(samples)) / samples
        # every baseline as often as the others, at random places
        baseline_of = generator.permutation(np.arange(samples) % len(baselines))
        seeds = generator.integers(2**63, size=samples)
        encoding, target = batch.encodings[index], batch.targets[index]
        moved = moved_tokens(encoding, target, "free")
        return cls(words, encoding, moved, baselines, baseline_of, places, seeds)

    def path(self, number: int) -> EmbeddingPath:
        """The path of a sample."""
        baseline = self.baselines[self.baseline_of[number]]
        own = self.words.of(self.encoding)
        if baseline is not None:
            return EmbeddingPath(baseline.rows(self.encoding, self.moved), own)
        moved = torch.from_numpy(self.moved).to(own.device)[:, None]
        return EmbeddingPath(torch.where(moved, self.random_words(number), own), own)

    def random_words(self, number: int) -> torch.Tensor:
        """[t d] a word drawn for each token."""
        generator = np.random.default_rng(self.seeds[number])
        drawn = []
        for stream, index in enumerate(streams_of(self.encoding)):
            ids = generator.choice(self.words.known[stream], len(index))
            drawn.append(self.words.rows(stream, ids))
        return self.words.joined(self.encoding, drawn)
