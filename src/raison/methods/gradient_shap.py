"""GradientSHAP (expected gradients): gradients at random places between random absent texts and the real one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.parameters import check_integer
from raison.core.records import Encoding
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.baselines import (
    Baseline,
    WordEmbeddings,
    check_baseline,
    tokens_moved_from_baseline,
)
from raison.methods.margin import margin_of_95_percent
from raison.methods.paths import EmbeddingPath, MadeOnDemand, slopes_at
from raison.models.protocol import Model
from raison.models.runner.batching import streams_of_batch_piece

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
        given = self.baselines
        if not isinstance(given, (tuple, list)):
            given = (given,)
        names = tuple(str(name) for name in given)
        if names == ("auto",):
            return (RANDOM,)
        return names

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        words = WordEmbeddings(model)
        baselines: list[Baseline | None] = []
        baseline_names = []
        for name in self.names:
            baseline = None
            if name != RANDOM:
                baseline = Baseline(words, name)
                name = baseline.name
            baselines.append(baseline)
            baseline_names.append(name)

        draws = []
        examples: list[int] = []
        places: list[float] = []
        samples = []
        for index, encoding in enumerate(batch.encodings):
            draw = PathDraws.of(words, baselines, batch, index, self.samples)
            draws.append(draw)
            examples += [index] * self.samples
            places += draw.places.tolist()
            samples.append(np.zeros((self.samples, len(encoding))))

        def path_of_point(point: int) -> EmbeddingPath:
            index, number = divmod(point, self.samples)
            return draws[index].path(number)

        paths = MadeOnDemand(len(places), path_of_point)
        for slope in slopes_at(model, batch, examples, paths, places):
            index, number = divmod(slope.point, self.samples)
            samples[index][number] = slope.parts

        answers = []
        for index, rows in enumerate(samples):
            answers.append(self.answer(rows, baseline_names, batch, index))
        return answers

    def answer(self, samples: np.ndarray, names: list[str], batch: Batch, index: int) -> Answer:
        """The mean of the samples [n t] of one example, and how far it may be off."""
        scores = samples.mean(0)
        error = error_of_expected_gradients(samples)
        error_of_total = error_of_expected_gradients(samples.sum(1, keepdims=True))
        largest_error = float(error.max())
        largest_score = float(np.abs(scores).max())
        error_share = 0.0
        if largest_score:
            error_share = largest_error / largest_score

        count, size = samples.shape
        degrees = degrees_of_expected_gradients(count)
        inputs = batch.targets[index].inputs(size)
        tokens_read = int(inputs.sum())
        return Answer(
            scores,
            parts={
                "standard_error": error,
                "margin_95": margin_of_95_percent(error, degrees),
            },
            diagnostics={
                "baseline": ", ".join(names),
                "samples": self.samples,
                "standard_error": largest_error,
                "standard_error_share": error_share,  # of the largest score
                "total": float(scores.sum()),
                "total_standard_error": float(error_of_total[0]),
            },
            cost={"forwards": self.samples, "tokens": self.samples * tokens_read},
        )


def error_of_expected_gradients(samples: np.ndarray) -> np.ndarray:
    """[t] of the mean of samples [n t], from the differences of neighbours."""
    count = len(samples)
    differences = np.diff(samples, axis=0)
    squares = (differences**2).sum(0)
    variance = squares / (2 * count * (count - 1))
    return np.asarray(np.sqrt(variance))


def degrees_of_expected_gradients(count: int) -> int:
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
        in_turn = np.arange(samples) % len(baselines)
        baseline_of = generator.permutation(in_turn)
        seeds = generator.integers(2**63, size=samples)
        encoding, target = batch.encodings[index], batch.targets[index]
        moved = tokens_moved_from_baseline(encoding, target, "free")
        return cls(words, encoding, moved, baselines, baseline_of, places, seeds)

    def path(self, number: int) -> EmbeddingPath:
        """The path of a sample."""
        baseline = self.baselines[self.baseline_of[number]]
        own = self.words.of(self.encoding)
        if baseline is not None:
            start = baseline.rows(self.encoding, self.moved)
            return EmbeddingPath(start, own)
        moved = torch.from_numpy(self.moved).to(own.device)
        start = torch.where(moved[:, None], self.random_words(number), own)
        return EmbeddingPath(start, own)

    def random_words(self, number: int) -> torch.Tensor:
        """[t d] a word drawn for each token."""
        generator = np.random.default_rng(self.seeds[number])
        drawn = []
        for stream, index in enumerate(streams_of_batch_piece(self.encoding)):
            ids = generator.choice(self.words.known[stream], len(index))
            drawn.append(self.words.rows(stream, ids))
        return self.words.joined(self.encoding, drawn)
