"""Sufficiency and comprehensiveness without a cut: parts of each embedding go, more where the score says so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raison.core.spec import whole
from raison.metrics.base import Asking, Metric, Subject, metric

__all__ = ["SoftComprehensiveness", "SoftSufficiency"]


def weights(subject: Subject) -> np.ndarray:
    """[t] scores of the units scaled to 0…1 over the text, on their tokens; 1 for tokens that may not be removed."""
    scores = subject.scores
    low, high = scores.min(initial=np.inf), scores.max(initial=-np.inf)  # a first written token has no units before it
    scaled = (scores - low) / (high - low) if high > low else np.full(len(scores), 0.5)
    return np.append(scaled, 1.0)[subject.units.of]


def softly(subject: Subject, complement: bool, samples: int) -> tuple[float, np.ndarray, float]:
    """p(x), p(x′) [samples] and p(0): entries of the embeddings kept by chance, and all embeddings of units zero."""
    import torch

    model: Any = subject.model
    explanation = subject.explanation
    encoding, target = explanation.encoding, replace(explanation.target, output="log_prob")
    free = subject.units.of >= 0
    ((_, trace),) = model.trace([encoding], [target], want=frozenset())
    words = trace.embeddings.detach()
    chance = weights(subject)
    if complement:
        chance = np.where(free, 1 - chance, 1.0)
    generator = subject.generator("soft")  # the same numbers for both: what one keeps the other removes
    draws = generator.random((samples, *words.shape))
    kept = (draws < chance[None, :, None]) if not complement else (1 - draws <= chance[None, :, None])
    inputs = [words * torch.from_numpy(mask).to(words) for mask in kept]
    inputs.append(words * torch.from_numpy(~free).to(words)[:, None])
    count = len(inputs)
    found = {
        i: t.value for i, t in model.trace([encoding] * count, [target] * count, want=frozenset(), embeddings=inputs)
    }
    values = np.exp([found[i] for i in range(count)])
    return float(np.exp(trace.value)), values[:-1], float(values[-1])


@metric("soft_sufficiency")
@dataclass(frozen=True)
class SoftSufficiency(Metric):
    """How much of the target's probability survives when entries of embeddings are kept as likely as scores are high.

    (S(x′) − S(0)) / (1 − S(0)), S(x′) = 1 − max(0, p(x) − p(x′)), e′_t = e_t ⊙ Bernoulli(s_t), s scaled to 0…1 over
    the text, equal scores to 0.5, tokens that may not be removed whole (Zhao & Aletras 2023, Soft-NS; each of `samples`
    draws clipped to 0…1, their mean); 1 where nothing is enough already.
    """

    paper = "Zhao & Aletras 2023"
    keys = ("soft_sufficiency",)
    higher = True
    span = (0.0, 1.0)
    needs = frozenset({"gradients", "probability"})

    samples: int = 8

    def __post_init__(self) -> None:
        whole("samples", self.samples, 1)

    def ask(self, subject: Subject) -> Asking:
        yield from ()
        all_of_it, some, nothing = softly(subject, False, self.samples)
        room = max(0.0, all_of_it - nothing)
        left = np.clip(1 - np.maximum(0, all_of_it - some) / room, 0, 1).mean() if room > 0 else 1.0
        return {"soft_sufficiency": float(left)}


@metric("soft_comprehensiveness")
@dataclass(frozen=True)
class SoftComprehensiveness(Metric):
    """How much of the target's probability goes when entries of embeddings are removed as likely as scores are high.

    max(0, p(x) − p(x′)) / (1 − S(0)), e′_t = e_t ⊙ Bernoulli(1 − s_t) with s as in soft_sufficiency (Zhao & Aletras
    2023, Soft-NC; each of `samples` draws clipped to 0…1, their mean); 0 where removing everything changes nothing.
    """

    paper = "Zhao & Aletras 2023"
    keys = ("soft_comprehensiveness",)
    higher = True
    span = (0.0, 1.0)
    needs = frozenset({"gradients", "probability"})

    samples: int = 8

    def __post_init__(self) -> None:
        whole("samples", self.samples, 1)

    def ask(self, subject: Subject) -> Asking:
        yield from ()
        all_of_it, some, nothing = softly(subject, True, self.samples)
        room = max(0.0, all_of_it - nothing)
        lost = np.clip(np.maximum(0, all_of_it - some) / room, 0, 1).mean() if room > 0 else 0.0
        return {"soft_comprehensiveness": float(lost)}
