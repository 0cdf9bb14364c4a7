"""How a model is fitted (steps, rates, checkpoints), and what a run has done so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from raison.core.parameters import check_choice, check_integer, check_not_negative

__all__ = ["SEEDS", "FitProgress", "FitSettings", "Measurements", "ParameterGroup", "Settings"]

SCHEDULES = ("linear", "constant")
SEEDS = 2**31 - 1  # the largest seed

Measurements: TypeAlias = dict[str, Any]  # numbers by name; which, is the business of each training
Settings: TypeAlias = dict[str, Any]  # as JSON holds them
ParameterGroup: TypeAlias = dict[
    str, Any
]  # {"params": [...], "peak": rate}, as torch's optimizers take them


@dataclass(frozen=True)
class FitSettings:
    """How a model is trained."""

    out: Path  # folder of the checkpoint
    steps: int  # of the optimizer
    # a checkpoint made under other settings is not continued
    settings: Settings = field(default_factory=dict)
    seed: int = 0
    accumulate: int = 1  # batches of one step
    schedule: str = "linear"  # linear: down to 0 at the end; constant
    warm: float = 0.1  # share of the steps until the rate is full
    clip: float = 1.0  # largest norm of the gradient; 0: as it is
    decay: float = 0.01  # weight decay of AdamW
    betas: tuple[float, float] = (0.9, 0.999)  # of AdamW
    # autocast: matrix products in bfloat16, weights and their updates in float32
    bfloat16: bool = False
    every: int = 0  # look each so many steps; 0: at the end only
    before: bool = False  # look before the first step too
    save_every: float = 60.0  # seconds between two checkpoints

    def __post_init__(self) -> None:
        check_integer("steps", self.steps, 1)
        check_integer("accumulate", self.accumulate, 1)
        check_integer("seed", self.seed, 0, SEEDS)
        check_integer("every", self.every, 0)
        check_choice("schedule", self.schedule, SCHEDULES)
        check_not_negative("warm", self.warm)
        check_not_negative("clip", self.clip)
        check_not_negative("decay", self.decay)
        check_not_negative("save_every", self.save_every)

    def rate(self, step: int) -> float:
        """The share of the peak rate that step `step` (from 0) has."""
        rise = 0
        if self.warm:
            rise = max(1, int(self.warm * self.steps))
        if step < rise:
            return (step + 1) / rise
        if self.schedule == "constant":
            return 1.0
        return (self.steps - step) / max(1, self.steps - rise)

    def looks_after(self, step: int) -> bool:
        """Whether the model is looked at when so many steps are done."""
        return step == self.steps or (self.every > 0 and step % self.every == 0)


@dataclass
class FitProgress:
    """What a run has done so far."""

    step: int = 0
    losses: list[float] = field(default_factory=list)  # of each step, mean over its parts
    history: list[Measurements] = field(default_factory=list)  # what `look` saw, with the step
    seconds: float = 0.0  # CPU time
