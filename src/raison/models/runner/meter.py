"""The meter counts how much a model was asked (rows forward, rows backward, tokens): one per context, never a
global.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

__all__ = ["Meter", "count_passes", "metered"]


@dataclass
class Meter:
    """What was spent since the meter was started."""

    forwards: int = 0  # rows that ran
    backwards: int = 0  # rows whose gradients were taken
    tokens: int = 0  # pushed through the blocks


_meter: ContextVar[Meter | None] = ContextVar("raison_meter", default=None)


@contextmanager
def metered() -> Iterator[Meter]:
    """Count what every model is asked inside the block."""
    token = _meter.set(meter := Meter())
    try:
        yield meter
    finally:
        _meter.reset(token)


def count_passes(forwards: int = 0, backwards: int = 0, tokens: int = 0) -> None:
    """Told by the models: so much has run."""
    meter = _meter.get()
    if meter is not None:
        meter.forwards += forwards
        meter.backwards += backwards
        meter.tokens += tokens
