"""Options of loading a model (LoadOptions), the names of tasks, and whether a name looks like a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

__all__ = ["TASKS", "LoadOptions", "looks_local"]

TASKS = ("classification", "tagging", "qa", "causal", "seq2seq")


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """What a user says besides the model's name."""

    tokenizer: PreTrainedTokenizerBase | None = None
    task: str | None = None
    device: str | torch.device | None = None
    dtype: str | torch.dtype | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False


def looks_local(name: str) -> bool:
    """A path rather than a hub name (which has at most one slash and no dots in front)."""
    return (
        name.startswith((".", "/", "~"))
        or name.count("/") > 1
        or name.endswith(".gguf")
        or "\\" in name
    )
