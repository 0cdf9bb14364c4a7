"""How a rationalizer is trained, and how much each term of its loss counts: two frozen records."""

from __future__ import annotations

from dataclasses import dataclass

from raison.core.errors import InputError
from raison.core.json_record import Record, record_field
from raison.core.parameters import check_in_range, check_integer

__all__ = ["LossWeights", "RationalizerTraining"]


@dataclass(frozen=True, eq=False)
class LossWeights(Record):
    """How much each term of the loss counts."""

    rationale: float = 2.0
    full_text: float = 1.0
    sparsity: float = 5.0
    coherence: float = 0.1  # P1: 10, with which short texts collapse
    soft_predictor: float = 1.0
    human: float = 0.0

    def validate(self) -> None:
        for name, value in vars(self).items():
            if not value >= 0:
                raise InputError(f"The weight of {name} is a number from 0 up, not {value}.")


@dataclass(frozen=True, eq=False)
class RationalizerTraining(Record):
    """How a rationalizer is trained."""

    weights: LossWeights = record_field("LossWeights", default=LossWeights())
    lr: float = 5e-5  # of the encoder
    head_lr: float = 5e-4
    lora: int = 0  # rank of an adapter; 0: all weights of the blocks
    weight_decay: float = 0.01
    clip: float = 1.0  # largest norm of the gradient
    batch: int = 32
    epochs: int = 6
    patience: int = 3  # epochs without a better accuracy of the development part
    warm: float = (
        1.0  # epochs in which the predictor reads random parts, and the selection is not judged yet
    )
    held_out: float = (
        0.1  # share of the training part that is held out where there is no development part
    )
    longest: int = 256  # tokens of a text at most
    bfloat16: bool = False  # matrix products of training in bfloat16
    half: bool = False  # an adapter is stored in float16

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
