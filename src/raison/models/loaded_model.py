"""A transformers model with its tokenizer, and what is known about both: what a task and a runner share."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from raison.core.errors import TooLong
from raison.models.codec import Codec
from raison.models.families import Family

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["LoadedModel"]

NO_LIMIT = 10**6  # tokens: a tokenizer that names more than this names no limit
ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-5}  # of log-probabilities
COARSE_ROUNDING = 1e-2


@dataclass
class LoadedModel:
    """A transformers model of the user's, which is read and never changed."""

    hf: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase  # never called, see Codec
    family: Family
    name: str
    # tokens of the longest text in training, where the architecture could read more
    trained_on: int | None = None
    codec: Codec = field(init=False)

    def __post_init__(self) -> None:
        self.codec = Codec(self.tokenizer)

    def setting(self, name: str) -> Any:
        """A setting of the model's config; None where it has none of that name."""
        return getattr(self.hf.config, name, None)

    @property
    def device(self) -> torch.device:
        return next(self.hf.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        return next(self.hf.parameters()).dtype

    @property
    def rounding(self) -> float:
        """Log-probabilities that are closer than this are equal: the model's dtype can't tell them apart."""
        return ROUNDING.get(self.dtype, COARSE_ROUNDING)

    @property
    def max_tokens(self) -> int | None:
        """The longest input in tokens, where there is a limit."""
        limits = [limit for limit in (self.positions, self.trained_on) if limit is not None]
        return min(limits, default=None)

    @property
    def positions(self) -> int | None:
        """How many positions the architecture has, where it has a limit."""
        if self.family.positions == "relative":
            size = self.tokenizer.model_max_length
            return int(size) if size is not None and size < NO_LIMIT else None

        config = self.hf.config.get_text_config()
        for name in ("max_position_embeddings", "n_positions"):
            size = getattr(config, name, None)
            if isinstance(size, int) and size > 0:
                return size - self.family.offset(config)
        return None

    @property
    def position_offset(self) -> int:
        """What position 0 is called."""
        return self.family.offset(self.hf.config)

    def surplus(self, size: int, *, truncate: bool) -> int:
        """How many of so many tokens must go, where that is allowed; else `TooLong`."""
        limit = self.max_tokens
        if limit is None or size <= limit:
            return 0
        if not truncate:
            raise TooLong(
                f"The text has {size} tokens, but {self.name} reads at most {limit}: shorten it, "
                "or pass truncate=True (--truncate) to cut it and have that recorded."
            )
        return size - limit

    def with_weights(self, hf: PreTrainedModel) -> LoadedModel:
        """The same for another model of the same architecture and tokens."""
        other = copy.copy(self)
        other.hf = hf
        return other
