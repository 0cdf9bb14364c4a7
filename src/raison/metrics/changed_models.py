"""What metrics that change a model's weights need: the weights, and the explanation of the changed model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from raison.core.errors import Unsupported
from raison.metrics.base import Subject
from raison.models.protocol import InspectableModel, Model

__all__ = ["model_and_method"]


def model_and_method(
    subject: Subject, metric: str
) -> tuple[InspectableModel, Callable[[Model], np.ndarray]]:
    """The subject's model, whose weights can be changed, and its method: a model to the scores of the same target."""
    if subject.again is None:
        raise Unsupported(
            f"{metric} explains the text again, so it needs a method, not scores that were made elsewhere."
        )
    if not isinstance(subject.model, InspectableModel):
        name = "a function" if subject.model is None else subject.model.name
        raise Unsupported(f"{metric} changes weights, and {name} shows none.")
    return subject.model, subject.again
