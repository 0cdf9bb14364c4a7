"""Straight paths of embeddings from absent texts to real ones, and the slopes (gradients) on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, overload

import numpy as np
import torch

from raison.methods.base import Batch
from raison.methods.trace_answers import GRADIENTS, require_traced, tensor_to_numpy
from raison.models.protocol import Model

__all__ = ["EmbeddingPath", "MadeOnDemand", "SlopeAtPoint", "slopes_at"]

T = TypeVar("T")


class MadeOnDemand(Sequence[T]):
    """Items that are made when they are asked for: all of them would not fit in memory together."""

    def __init__(self, size: int, make: Callable[[int], T]):
        self.size = size
        self.make = make

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self.make(each) for each in range(*index.indices(self.size))]
        if not 0 <= index < self.size:
            raise IndexError(index)
        return self.make(index)


@dataclass(frozen=True)
class EmbeddingPath:
    """The straight line from a baseline to a text, in word embeddings."""

    start: torch.Tensor  # [t d]
    end: torch.Tensor  # [t d] equal to the start where nothing moves

    @property
    def change(self) -> torch.Tensor:
        return self.end - self.start

    def at(self, place: float) -> torch.Tensor:
        return torch.lerp(self.start, self.end, place)  # exact at both ends


@dataclass(frozen=True)
class SlopeAtPoint:
    """The value and the gradient at one point of a path."""

    point: int  # of those that were asked for
    value: float  # F
    parts: np.ndarray  # [t] G_i = ⟨change_i, ∂f/∂e_i⟩


def slopes_at(
    model: Model,
    batch: Batch,
    examples: Sequence[int],
    paths: Sequence[EmbeddingPath],
    places: Sequence[float],
) -> Iterator[SlopeAtPoint]:
    """The slope at one place of each path; `examples` says which example of the batch each path leads to."""

    def embeddings_at(point: int) -> torch.Tensor:
        return paths[point].at(places[point])

    traces = model.trace(
        [batch.encodings[index] for index in examples],
        [batch.targets[index] for index in examples],
        want=GRADIENTS,
        embeddings=MadeOnDemand(len(places), embeddings_at),
    )
    for point, trace in traces:
        change = paths[point].change
        parts = (require_traced(trace.gradient) * change).sum(-1)
        yield SlopeAtPoint(point, trace.value, tensor_to_numpy(parts))
