"""How a rationalizer is trained, and how much each term of its loss counts: two frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raison.core.errors import InputError
from raison.core.from_settings import dataclass_from_settings, setting
from raison.core.json_record import Record, record_field
from raison.core.parameters import check_in_range, check_integer

__all__ = ["LossWeights", "RationalizerTraining"]

RATE_OF_BLOCKS = 5e-5
RATE_OF_LORA = 2e-4  # adapters have few weights, which may take larger steps


@dataclass(frozen=True, eq=False)
class LossWeights(Record):
    """How much each term of the loss counts."""

    rationale: float = 2.0
    full_text: float = 1.0
    sparsity: float = setting(5.0, "λ_s.", option="--sparsity-weight")
    # P1: 10, with which short texts collapse
    coherence: float = setting(0.1, "λ_c: neighbours are treated alike.")
    soft_predictor: float = 1.0
    human: float = setting(0.0, "Weight of human rationales, where the data has some.")

    def validate(self) -> None:
        for name, value in vars(self).items():
            if not value >= 0:
                raise InputError(f"The weight of {name} is a number from 0 up, not {value}.")


@dataclass(frozen=True, eq=False)
class RationalizerTraining(Record):
    """How a rationalizer is trained."""

    weights: LossWeights = record_field("LossWeights", default=LossWeights())
    lora: int = setting(0, "Train an adapter of this rank; 0: all weights of the blocks.")
    lr: float = setting(
        RATE_OF_BLOCKS, "Of the blocks; default: 2e-4 with --lora, else 5e-5.", derived=True
    )
    head_lr: float = setting(5e-4, "Of the heads.")
    weight_decay: float = 0.01
    clip: float = 1.0  # largest norm of the gradient
    batch: int = setting(32, "Texts in a batch.")
    epochs: int = setting(6, "At most so many.")
    patience: int = setting(3, "Epochs without a better accuracy after which it stops.")
    # in them the selection is not judged yet
    warm: float = setting(1.0, "Epochs in which the predictor reads random parts.")
    held_out: float = (
        0.1  # share of the training part that is held out where there is no development part
    )
    longest: int = setting(256, "Tokens of a text; longer ones are cut.")
    bfloat16: bool = setting(False, "Compute in bfloat16: faster on CPUs that have it.")
    half: bool = setting(False, "Write the adapter in float16.")

    def validate(self) -> None:
        for name in ("batch", "epochs", "patience", "longest"):
            check_integer(name, getattr(self, name), 1)
        check_integer("lora", self.lora, 0)
        for name in ("weight_decay", "clip", "warm"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} is a number from 0 up, not {getattr(self, name)}.")
        for name in ("lr", "head_lr"):
            check_in_range(name, getattr(self, name), 0)
        check_in_range("held_out", self.held_out, 0, 0.9)
        if self.warm >= self.epochs:
            raise InputError(
                f"After {self.warm:g} epochs of warm-up none of {self.epochs} is left: give more epochs."
            )
        if self.half and not self.lora:
            raise InputError(
                "half stores an adapter in float16: give lora a rank, or leave half away."
            )

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> RationalizerTraining:
        """The training of these settings; where they name no rate, an adapter has a larger one than whole blocks."""
        rate = RATE_OF_LORA if settings.get("lora") else RATE_OF_BLOCKS
        return dataclass_from_settings(cls, {"lr": rate, **settings}, "A training")
