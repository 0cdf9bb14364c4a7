"""Perplexity of the next token given random parts of its context, by their size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.core import progress
from raison.core.records import Encoding, Target
from raison.metrics.statistics import mean_interval
from raison.models.protocol import Question
from raison.models.runner.score_cache import Memory
from raison.models.transformers_model import TransformersWriter
from raison.studies.compatibility_report import SubsetPerplexity

__all__ = [
    "PlaceLosses",
    "RandomParts",
    "losses_on_parts",
    "measure_random_parts",
    "random_targets",
]

Size = int | None  # kept tokens, the one before the target among them; None: all


@dataclass(frozen=True)
class PlaceLosses:
    """What random parts of its context say of one place."""

    token: int  # that stands there
    by_size: dict[Size, float]  # −log f of the token


@dataclass(frozen=True)
class RandomParts:
    """Perplexity by the number of kept tokens, and without any context."""

    subsets: list[SubsetPerplexity]  # by size, the whole context last
    guess: float  # perplexity of the frequencies of tokens, in the same places


def measure_random_parts(
    model: TransformersWriter,
    encodings: Sequence[Encoding],
    *,
    targets: int,
    sizes: Sequence[int],
    seed: int,
) -> RandomParts:
    """Perplexity by the number of kept tokens, and that of frequencies alone, at `targets` places of each text."""
    frequency_loss = loss_of_token_frequencies(model, encodings)
    places: list[PlaceLosses] = []
    for number, encoding in enumerate(encodings):
        progress.report(number, len(encodings), "blocks on random parts")
        generator = np.random.default_rng([seed, number])
        places += losses_on_parts(
            model, encoding, targets=targets, sizes=sizes, generator=generator
        )

    losses = [place.by_size for place in places]
    every_size: list[Size] = [*sizes, None]
    subsets: list[SubsetPerplexity] = []
    for size in every_size:
        if any(size in by_size for by_size in losses):
            row = subset_perplexity(size, losses, seed)
            subsets.append(compare_with_smaller_parts(row, subsets, losses, seed))
    guessed = [frequency_loss(place.token) for place in places]
    return RandomParts(subsets, float(np.exp(np.mean(guessed))))


def losses_on_parts(
    model: TransformersWriter,
    encoding: Encoding,
    *,
    targets: int,
    sizes: Sequence[int],
    generator: np.random.Generator,
) -> list[PlaceLosses]:
    """−log f of what stands at random places, given random parts of the context and given all of it."""
    questions = []
    sizes_asked: list[list[Size]] = []
    for target in random_targets(model, encoding, targets, generator):
        free = np.flatnonzero(target.free(encoding))
        # the token before the target is one of the kept
        possible = []
        for size in sizes:
            if size - 1 <= len(free):
                possible.append(size)
        keep = np.zeros((len(possible) + 1, len(encoding)), bool)
        for row, size in zip(keep, possible, strict=False):
            row[generator.choice(free, size - 1, replace=False)] = True
        keep[-1] = True
        questions.append(Question(encoding, target, keep))
        sizes_asked.append([*possible, None])

    with progress.silence():
        answers = model.score(questions, removal="delete", memory=Memory(limit=0))
    places = []
    for question, asked, answer in zip(questions, sizes_asked, answers, strict=True):
        losses = (-answer.value.sum(-1)).tolist()
        by_size = dict(zip(asked, losses, strict=True))
        places.append(PlaceLosses(int(question.target.ids[0]), by_size))
    return places


def random_targets(
    model: TransformersWriter, encoding: Encoding, count: int, generator: np.random.Generator
) -> list[Target]:
    """Random places in the second half of what is written, where much of the context can be missing."""
    first = model.first_position(encoding)
    half = first + (len(encoding) - first) // 2
    places = np.arange(half, len(encoding))
    drawn = generator.choice(places, min(count, len(places)), replace=False)
    targets = []
    for place in sorted(drawn.tolist()):
        token = int(encoding.ids[place])
        targets.append(model.next_target(encoding, token, place))
    return targets


def loss_of_token_frequencies(
    model: TransformersWriter, encodings: Sequence[Encoding]
) -> Callable[[int], float]:
    """−log of how often a token stands in the texts, without the place that is asked about.

    What is new there is as likely as a new token was so far (Witten & Bell 1991), each new one equally.
    """
    last = len(encodings[0].segments) - 1
    written = []
    for encoding in encodings:
        is_written = (encoding.segment == last) & ~encoding.fixed
        written.append(encoding.ids[is_written])
    counts = Counter(np.concatenate(written).tolist())
    vocabulary = model.tables[-1].num_embeddings

    def loss(token: int) -> float:
        others = counts.total() - 1
        known = len(counts) - (counts[token] == 1)
        if counts[token] > 1:
            share = float(counts[token] - 1)
        else:
            share = known / max(1, vocabulary - known)
        return float(np.log((others + known) / share))

    return loss


def subset_perplexity(
    size: Size, losses: Sequence[dict[Size, float]], seed: int
) -> SubsetPerplexity:
    """Perplexity of one size, with its interval over places."""
    defined = []
    for by_size in losses:
        if size in by_size:
            defined.append(by_size[size])
    values = np.array(defined)
    interval = mean_interval(values, seed=seed)
    return SubsetPerplexity(
        size=size,
        perplexity=float(np.exp(interval.estimate)),
        low=float(np.exp(interval.low)),
        high=float(np.exp(interval.high)),
        count=len(values),
    )


def compare_with_smaller_parts(
    row: SubsetPerplexity,
    smaller: Sequence[SubsetPerplexity],
    losses: Sequence[dict[Size, float]],
    seed: int,
) -> SubsetPerplexity:
    """The row with how much more context makes it worse, at worst: the ratio of perplexities in the same places."""
    worst = row
    for fewer in smaller:
        both = []
        for by_size in losses:
            if row.size in by_size and fewer.size in by_size:
                both.append(by_size)
        if not both:  # sizes that share no place can't be compared
            continue
        increases = []
        for by_size in both:
            increases.append(by_size[row.size] - by_size[fewer.size])
        increase = np.array(increases)
        ratio = float(np.exp(increase.mean()))
        if ratio > worst.ratio:
            low = mean_interval(increase, seed=seed).low
            worst = replace(row, fewer=fewer.size, ratio=ratio, ratio_low=float(np.exp(low)))
    return worst
