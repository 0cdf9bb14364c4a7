"""Sufficiency and comprehensiveness without a cut: parts of each embedding go, more where the score says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from raison.core.parameters import check_integer
from raison.core.records import Encoding, Target
from raison.metrics.base import FROM_0_TO_1, Metric, MetricKey, MetricQuestions, Subject, metric

if TYPE_CHECKING:
    import torch

    from raison.models.protocol import Model

__all__ = ["SoftComprehensiveness", "SoftSufficiency", "soft_token_weights"]


@dataclass(frozen=True)
class SoftProbabilities:
    """The target's probability for the whole text, for samples of it, and for nothing of it."""

    whole: float  # p(x)
    samples: np.ndarray  # [samples] p(x′): entries of the embeddings are kept by chance
    nothing: float  # p(0): the embeddings of all units are zero

    @property
    def losses(self) -> np.ndarray:
        """[samples] max(0, p(x) − p(x′))."""
        return np.maximum(0, self.whole - self.samples)

    @property
    def largest_loss(self) -> float:
        """max(0, p(x) − p(0))."""
        return max(0.0, self.whole - self.nothing)


def soft_token_weights(subject: Subject) -> np.ndarray:
    """[t] scores of the units scaled to 0…1 over the text, on their tokens; 1 for tokens that may not be removed."""
    scores = subject.scores
    # a first written token has no units before it
    low = scores.min(initial=np.inf)
    high = scores.max(initial=-np.inf)
    scaled = np.full(len(scores), 0.5)
    if high > low:
        scaled = (scores - low) / (high - low)
    scaled_tokens: np.ndarray = np.append(scaled, 1.0)[subject.units.of]
    return scaled_tokens


def soft_probabilities(
    subject: Subject,
    samples: int,
    *,
    complement: bool,
) -> SoftProbabilities:
    """What is left of the target when entries of embeddings are kept as likely as scores are high.

    With `complement` they are removed as likely as scores are high.
    """
    import torch

    model = cast("Model", subject.model)
    encoding = subject.explanation.encoding
    target = replace(subject.explanation.target, output="log_prob")
    traces = model.trace([encoding], [target], want=frozenset())
    ((_, trace),) = traces
    embeddings = cast("torch.Tensor", trace.embeddings).detach()  # [t d]

    shape = (samples, *embeddings.shape)
    masks = draw_soft_masks(subject, shape, complement=complement)
    without_units = subject.units.of < 0  # [t]
    inputs = []
    for mask in (*masks, without_units[:, None]):
        kept = torch.from_numpy(mask).to(embeddings)
        inputs.append(embeddings * kept)

    values = values_of_embeddings(model, encoding, target, inputs)
    *probabilities, nothing = np.exp(values)
    whole = float(np.exp(trace.value))
    return SoftProbabilities(whole, np.array(probabilities), float(nothing))


def draw_soft_masks(
    subject: Subject,
    shape: tuple[int, ...],
    *,
    complement: bool,
) -> np.ndarray:
    """[samples t d] True for the entries of embeddings that are kept."""
    chance = soft_token_weights(subject)
    # the same numbers for both: what one keeps the other removes
    draws = subject.generator("soft").random(shape)
    if not complement:
        return draws < chance[None, :, None]
    removable = subject.units.of >= 0
    chance = np.where(removable, 1 - chance, 1.0)
    return 1 - draws <= chance[None, :, None]


def values_of_embeddings(
    model: Model,
    encoding: Encoding,
    target: Target,
    inputs: Sequence[torch.Tensor],
) -> list[float]:
    """The target's value with other embeddings in the place of the text's, for each of the inputs."""
    count = len(inputs)
    encodings = [encoding] * count
    targets = [target] * count
    traces = model.trace(encodings, targets, want=frozenset(), embeddings=inputs)
    values = [0.0] * count
    for index, trace in traces:
        values[index] = trace.value
    return values


@metric("soft_sufficiency")
@dataclass(frozen=True)
class SoftSufficiency(Metric):
    """How much of the target's probability survives when entries of embeddings are kept as likely as scores are high.

    (S(x′) − S(0)) / (1 − S(0)), S(x′) = 1 − max(0, p(x) − p(x′)), e′_t = e_t ⊙ Bernoulli(s_t), s scaled to 0…1 over
    the text, equal scores to 0.5, tokens that may not be removed whole (Zhao & Aletras 2023, Soft-NS; each of `samples`
    draws clipped to 0…1, their mean); 1 where nothing is enough already.
    """

    paper = "Zhao & Aletras 2023"
    keys = (MetricKey("soft_sufficiency", "higher", range=FROM_0_TO_1),)
    needs = frozenset({"gradients", "probability"})

    samples: int = 8

    def __post_init__(self) -> None:
        check_integer("samples", self.samples, 1)

    def ask(self, subject: Subject) -> MetricQuestions:
        yield from ()  # it asks about no kept sets
        probabilities = soft_probabilities(subject, self.samples, complement=False)
        if not probabilities.largest_loss > 0:
            return {"soft_sufficiency": 1.0}
        lost = probabilities.losses / probabilities.largest_loss
        survived = np.clip(1 - lost, 0, 1)
        return {"soft_sufficiency": float(survived.mean())}


@metric("soft_comprehensiveness")
@dataclass(frozen=True)
class SoftComprehensiveness(Metric):
    """How much of the target's probability goes when entries of embeddings are removed as likely as scores are high.

    max(0, p(x) − p(x′)) / (1 − S(0)), e′_t = e_t ⊙ Bernoulli(1 − s_t) with s as in soft_sufficiency (Zhao & Aletras
    2023, Soft-NC; each of `samples` draws clipped to 0…1, their mean); 0 where removing everything changes nothing.
    """

    paper = "Zhao & Aletras 2023"
    keys = (MetricKey("soft_comprehensiveness", "higher", range=FROM_0_TO_1),)
    needs = frozenset({"gradients", "probability"})

    samples: int = 8

    def __post_init__(self) -> None:
        check_integer("samples", self.samples, 1)

    def ask(self, subject: Subject) -> MetricQuestions:
        yield from ()  # it asks about no kept sets
        probabilities = soft_probabilities(subject, self.samples, complement=True)
        if not probabilities.largest_loss > 0:
            return {"soft_comprehensiveness": 0.0}
        shares = probabilities.losses / probabilities.largest_loss
        lost = np.clip(shares, 0, 1)
        return {"soft_comprehensiveness": float(lost.mean())}
