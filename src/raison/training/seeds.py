"""Seeded random generators that are a function of numbers: a run that goes on needs no memory of what it has drawn."""

from __future__ import annotations

import numpy as np
import torch

__all__ = ["seed_of_numbers", "seeded_generator"]


def seed_of_numbers(*numbers: int) -> int:
    """One seed from several numbers; near numbers give unrelated seeds."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))


def seeded_generator(*numbers: int) -> torch.Generator:
    """A generator of its own, so that nobody else's draws matter."""
    return torch.Generator().manual_seed(seed_of_numbers(*numbers))
