"""Does the explanation keep still when the input hardly moves?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raison.core.spec import between, whole
from raison.metrics.base import Metric, MetricKey, MetricQuestions, Subject, metric
from raison.metrics.changed_models import model_and_method
from raison.metrics.keys import NOT_NEGATIVE

__all__ = ["MaxSensitivity"]


@metric("max_sensitivity")
@dataclass(frozen=True)
class MaxSensitivity(Metric):
    """How far the scores move at most when the word embeddings move a little: less is better.

    max over δ of ‖s(x + δ) − s(x)‖ / ‖s(x)‖, δ uniform in ±radius times the root mean square of the text's word
    embeddings, the same for equal tokens (Yeh et al. 2019). Where all scores are 0 the change itself.
    """

    paper = "Yeh et al. 2019"
    keys = (MetricKey("max_sensitivity", "lower", range=NOT_NEGATIVE),)
    needs = frozenset({"gradients", "again"})

    radius: float = 0.02  # of the size of an embedding
    samples: int = 8  # directions that are tried

    def __post_init__(self) -> None:
        between("radius", self.radius, 0)
        whole("samples", self.samples, 1)

    def ask(self, subject: Subject) -> MetricQuestions:
        import torch

        from raison.models.changed_weights import moved

        yield from ()  # it asks about no kept sets
        model, explain_again = model_and_method(subject, self.name)
        ids = torch.from_numpy(np.unique(subject.explanation.encoding.ids))
        embeddings = torch.cat([table.weight.detach()[ids.to(model.device)] for table in model.tables[:1]])
        root_mean_square = float(embeddings.cpu().double().square().mean().sqrt())
        reach = self.radius * root_mean_square
        shape = (len(ids), embeddings.shape[-1])

        generator = subject.generator("max_sensitivity")
        largest_change = 0.0
        for _ in range(self.samples):
            shift = torch.from_numpy(generator.uniform(-reach, reach, shape))
            scores = explain_again(moved(model, ids, shift))
            change = float(np.linalg.norm(scores - subject.scores))
            largest_change = max(largest_change, change)

        length = float(np.linalg.norm(subject.scores))
        sensitivity = largest_change / length if length > 0 else largest_change
        return {"max_sensitivity": sensitivity}
