"""Early stopping: the weights of the best epoch are kept in a file, and are the model's in the end."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from raison.core.errors import InputError
from raison.training.fit_settings import Measurements, Settings
from raison.training.training_folder import (
    BEST,
    CHECKPOINT,
    differing_training_setting,
    write_training_file,
)

__all__ = ["BEST", "BestEpochKeeper"]

LITTLE = 1000  # numbers: what is not trained by gradients may be set otherwise, and is kept where it is small


def rank_of_epoch(seen: Measurements, key: str) -> tuple[float, float]:
    """A few texts give the same score epoch after epoch, while the loss still falls; up to what can be seen of it."""
    return seen[key], -round(seen.get("loss", 0.0), 2)


@dataclass(frozen=True)
class StoredBestEpoch:
    """The file of the best epoch."""

    value: float
    loss: float
    weights: dict[str, torch.Tensor]
    settings: Settings


@dataclass
class BestEpochKeeper:
    """The weights of the epoch where `key` was largest, in a run with these settings; among equals, of least loss."""

    folder: Path
    settings: Settings
    key: str
    patience: int  # epochs without a better one after which a run ends
    value: float = -math.inf
    loss: float = math.inf  # in hundredths

    def __post_init__(self) -> None:
        if not (self.folder / CHECKPOINT).exists():
            self.forget()  # of a run that was killed early: this one begins anew
        if self.path.exists():
            best = self.read()
            self.value, self.loss = best.value, best.loss

    @property
    def path(self) -> Path:
        return self.folder / BEST

    def look_and_keep(
        self, model: torch.nn.Module, look: Callable[[], Measurements]
    ) -> Callable[[], Measurements]:
        """`look`, with the weights kept where it saw something better than before."""

        def look_and_write() -> Measurements:
            seen = look()
            if seen[self.key] is not None and rank_of_epoch(seen, self.key) > (
                self.value,
                -self.loss,
            ):
                self.value = seen[self.key]
                self.loss = -rank_of_epoch(seen, self.key)[1]
                self.write(model)
            return seen

        return look_and_write

    def write(self, model: torch.nn.Module) -> None:
        """Keep the weights of now; large ones that are not trained are left out."""
        left_out = set()
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad and parameter.numel() > LITTLE:
                left_out.add(name)
        weights = {
            name: value.cpu() for name, value in model.state_dict().items() if name not in left_out
        }
        with write_training_file(self.path) as half:
            torch.save(vars(StoredBestEpoch(self.value, self.loss, weights, self.settings)), half)

    def should_stop(self, history: list[Measurements]) -> bool:
        """Whether the last epochs have all been worse than the best."""
        ranks = [
            rank_of_epoch(seen, self.key) for seen in history if seen[self.key] is not None
        ]  # None: it does not count yet
        if not ranks:
            return False
        return len(ranks) - 1 - ranks.index(max(ranks)) >= self.patience

    def read(self) -> StoredBestEpoch:
        """What the file holds; one of another run is refused."""
        try:
            best = StoredBestEpoch(**torch.load(self.path, weights_only=True, map_location="cpu"))
            other = differing_training_setting(self.settings, best.settings)
        except Exception:  # torch has no one error for a file that it can't read
            raise InputError(
                f"{self.path} is damaged or of another version: delete it and {CHECKPOINT} beside it to start anew."
            ) from None
        if other is not None:
            raise InputError(
                f"{self.path} was made with another {other}: delete it and {CHECKPOINT} beside it, or give its "
                "settings to go on with it."
            )
        return best

    def restore(self, model: torch.nn.Module) -> None:
        """The best weights; what was not trained is as it was."""
        model.load_state_dict(self.read().weights, strict=False)
        model.eval()

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)
