"""The settings of fine-tuning on partial contexts, which are the options of `raison train compatibility`."""

from __future__ import annotations

from dataclasses import dataclass

from raison.core.from_settings import setting
from raison.core.parameters import check_choice, check_in_range, check_integer

__all__ = ["COINS", "CompatibilityTraining"]

COINS = ("apart", "one")
RATE_OF_LORA, RATE_OF_ALL = 5e-4, 5e-5


@dataclass(frozen=True)
class CompatibilityTraining:
    """What a run is: everything here makes two runs the same or not."""

    keep: str = setting(
        "uniform_length",
        "uniform_length, inverse_length, bernoulli(p=0.5), or none: the control.",
    )
    mix: float = setting(0.5, "Share of the batches that have word dropout.")
    coins: str = setting("apart", "Of an encoder-decoder: apart (a coin for each side) or one.")
    lora: int | None = setting(None, "Train an adapter of this rank; default: all weights.")
    lr: float | None = setting(None, "Peak rate; default: 5e-4 with --lora, else 5e-5.")
    steps: int = setting(300, "Updates of the weights.")
    # of an encoder-decoder: the longest source and target
    length: int = setting(128, "Tokens of a block of text.")
    batch: int = setting(8, "Blocks (or pairs) in a batch.")
    accumulate: int = setting(1, "Batches in a step.")
    schedule: str = setting("linear", "linear (down to 0 at the end) or constant.")
    warm: float = 0.05  # share of the steps until the rate is full
    seed: int = setting(0, "Seed of everything random.")
    bfloat16: bool = setting(False, "Compute in bfloat16: faster on CPUs that have it.")
    own_targets: bool = setting(False, "Of an encoder-decoder: learn what it writes itself.")
    held: float = setting(0.05, "Share of the data that is held out.")
    subset: int = 10  # tokens of the subsets that perplexity is measured on

    def __post_init__(self) -> None:
        check_in_range("mix", self.mix, 0, 1)
        check_choice("coins", self.coins, COINS)
        check_in_range("held", self.held, 0, 0.9)
        check_integer("steps", self.steps, 1)
        check_integer("length", self.length, 4)
        check_integer("batch", self.batch, 1)
        check_integer("accumulate", self.accumulate, 1)
        check_integer("seed", self.seed, 0)
        check_integer("subset", self.subset, 1)
        if self.lora is not None:
            check_integer("lora", self.lora, 1)
        if self.lr is not None:
            check_in_range("lr", self.lr, 0, 1)

    @property
    def rate(self) -> float:
        """The peak rate."""
        if self.lr is not None:
            return self.lr
        if self.lora is None:
            return RATE_OF_ALL
        return RATE_OF_LORA
