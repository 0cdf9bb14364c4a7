"""Early stopping: the best epoch of the development part is kept on the disk, and is the model in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from raison.core.errors import InputError
from raison.training.fit import BEST, CHECKPOINT, saved

__all__ = ["BEST", "Best"]

LITTLE = 1000  # numbers: what is not trained by gradients may be set otherwise, and is kept where it is small


def rank(seen: dict[str, Any], key: str) -> tuple[float, float]:
    """A few texts give the same score epoch after epoch, while the loss still falls; up to what can be seen of it."""
    return seen[key], -round(seen.get("loss", 0.0), 2)


@dataclass
class Best:
    """The weights of the epoch where `key` was largest, in a run with these settings; among equals, of least loss."""

    folder: Path
    settings: dict[str, Any]
    key: str
    patience: int  # epochs without a better one after which a run ends
    value: float = -np.inf
    loss: float = np.inf  # in hundredths

    def __post_init__(self) -> None:
        if not (self.folder / CHECKPOINT).exists():
            self.forget()  # of a run that was killed early: this one begins anew
        if self.path.exists():
            self.value, self.loss = (self.read()[name] for name in ("value", "loss"))

    @property
    def path(self) -> Path:
        return self.folder / BEST

    def looking(self, model: torch.nn.Module, look: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
        """`look`, with the weights kept where it saw something better than before."""

        def seen() -> dict[str, Any]:
            found = look()
            if found[self.key] is not None and rank(found, self.key) > (self.value, -self.loss):
                self.value, self.loss = found[self.key], -rank(found, self.key)[1]
                still = {name for name, p in model.named_parameters() if not p.requires_grad and p.numel() > LITTLE}
                weights = {name: value.cpu() for name, value in model.state_dict().items() if name not in still}
                with saved(self.path) as half:
                    told = {"value": self.value, "loss": self.loss, "weights": weights, "settings": self.settings}
                    torch.save(told, half)
            return found

        return seen

    def enough(self, history: list[dict[str, Any]]) -> bool:
        ranks = [rank(one, self.key) for one in history if one[self.key] is not None]  # None: it does not count yet
        return len(ranks) - 1 - ranks.index(max(ranks)) >= self.patience if ranks else False

    def read(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = torch.load(self.path, weights_only=True, map_location="cpu")
            settings, _, _, _ = (found[name] for name in ("settings", "value", "loss", "weights"))
        except Exception:  # torch has no one error for a file that it can't read
            raise InputError(
                f"{self.path} is damaged or of another version: delete it and {CHECKPOINT} beside it to start anew."
            ) from None
        names = [*self.settings, *settings]
        if other := [name for name in names if settings.get(name, ...) != self.settings.get(name, ...)]:
            raise InputError(
                f"{self.path} was made with another {other[0]}: delete it and {CHECKPOINT} beside it, or give its "
                "settings to go on with it."
            )
        return found

    def restore(self, model: torch.nn.Module) -> None:
        """The best weights; what was not trained is as it was."""
        model.load_state_dict(self.read()["weights"], strict=False)
        model.eval()

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)
