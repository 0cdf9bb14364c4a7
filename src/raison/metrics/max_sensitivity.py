"""Max-sensitivity: does the explanation keep still when the input hardly moves?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from raison.core.parameters import check_in_range, check_integer
from raison.metrics.base import NOT_NEGATIVE, Metric, MetricKey, MetricQuestions, Subject, metric
from raison.metrics.metric_subject import model_and_method_of_subject

if TYPE_CHECKING:
    import torch

    from raison.models.protocol import InspectableModel

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
        check_in_range("radius", self.radius, 0)
        check_integer("samples", self.samples, 1)

    def ask(self, subject: Subject) -> MetricQuestions:
        import torch

        from raison.models.changed_weights import with_moved_embeddings

        yield from ()  # it asks about no kept sets
        model, explain_again = model_and_method_of_subject(subject, self.name)
        different_ids = np.unique(subject.explanation.encoding.ids)
        ids = torch.from_numpy(different_ids)
        embeddings = embeddings_for_sensitivity(model, ids)
        reach = self.radius * root_mean_square(embeddings)
        width = embeddings.shape[-1]

        generator = subject.generator("max_sensitivity")
        largest_change = 0.0
        for _ in range(self.samples):
            shift = generator.uniform(-reach, reach, (len(ids), width))
            other = with_moved_embeddings(model, ids, torch.from_numpy(shift))
            change = explain_again(other) - subject.scores
            length = float(np.linalg.norm(change))
            largest_change = max(largest_change, length)

        score_length = float(np.linalg.norm(subject.scores))
        if not score_length > 0:
            return {"max_sensitivity": largest_change}
        return {"max_sensitivity": largest_change / score_length}


def embeddings_for_sensitivity(model: InspectableModel, ids: torch.Tensor) -> torch.Tensor:
    """[k d] the word embeddings of some ids."""
    table = model.tables[0].weight.detach()
    return table[ids.to(model.device)]


def root_mean_square(values: torch.Tensor) -> float:
    """The root of the mean of the squares, in double precision."""
    squares = values.cpu().double().square()
    return float(squares.mean().sqrt())
