"""What metrics that change a model's weights need: the weights, and the explanation of the changed model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np

from raison.core.errors import Unsupported
from raison.metrics.base import Subject
from raison.models.protocol import Model

if TYPE_CHECKING:
    from raison.models.runner.adapter import Adapter

__all__ = ["model_and_method"]


def model_and_method(subject: Subject, metric: str) -> tuple[Adapter, Callable[[Model], np.ndarray]]:
    """The subject's model, whose weights can be changed, and its method: a model to the scores of the same target."""
    if subject.again is None:
        raise Unsupported(
            f"{metric} explains the text again, so it needs a method, not scores that were made elsewhere."
        )
    if not hasattr(subject.model, "hf"):
        name = "a function" if subject.model is None else subject.model.name
        raise Unsupported(f"{metric} changes weights, and {name} shows none.")
    return cast("Adapter", subject.model), subject.again
