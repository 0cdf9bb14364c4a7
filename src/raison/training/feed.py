"""Batches of training rows, a function of seed and number: a run that goes on needs no memory of what it has seen."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import torch

from raison.training.seeds import seeded_generator

__all__ = ["BatchFeed"]

POOL = 50  # batches whose rows are sorted by length together: little padding, and new neighbours in every epoch

R = TypeVar("R", bound=Sized)


@dataclass
class BatchFeed(Generic[R]):
    """The rows of each batch, a function of the seed and the batch's number only."""

    rows: Sequence[R]
    size: int  # rows in a batch
    seed: int
    epoch: int = -1
    order: list[list[int]] = field(default_factory=list)

    def __call__(self, part: int) -> list[R]:
        batches = len(self.rows) // self.size  # what does not fill a batch waits an epoch
        epoch, place = divmod(part, batches)
        if epoch != self.epoch:
            self.epoch, self.order = epoch, self.batches_of_epoch(epoch)
        return [self.rows[number] for number in self.order[place]]

    def batches_of_epoch(self, epoch: int) -> list[list[int]]:
        """Batches of like length, in random composition and order."""
        random = seeded_generator(self.seed, epoch)
        shuffled = torch.randperm(len(self.rows), generator=random).tolist()
        by_length: list[int] = []
        size_of_pool = POOL * self.size
        for start in range(0, len(shuffled), size_of_pool):
            pool = shuffled[start : start + size_of_pool]
            by_length += sorted(pool, key=lambda number: len(self.rows[number]))
        count = len(by_length) // self.size
        batches = []
        for place in torch.randperm(count, generator=random).tolist():
            first = place * self.size
            batches.append(by_length[first : first + self.size])
        return batches
