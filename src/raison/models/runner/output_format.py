"""The output format of a task: how its models are called, and where in their outputs the outcomes stand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from raison.models.runner.answers import Columns
from raison.models.runner.batching import Chunk

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["Output", "OutputFormat"]

Output = Any  # what a forward pass returns: a class of transformers or of the model's own


class OutputFormat(ABC):
    """How the forward pass of a task's models is called and read."""

    # names of the ids and of the mask of each stream of tokens
    arguments: ClassVar[tuple[tuple[str, str], ...]] = (("input_ids", "attention_mask"),)
    generates: ClassVar[bool] = False  # the output is a vocabulary at every row
    # axis of the outcomes [m v] of a text along which its tokens stand
    token_axis: ClassVar[int | None] = None

    @property
    def paddings(self) -> tuple[str, ...]:
        """Layouts of a batch in which the head reads the right row."""
        return ("exact", "right", "left")

    def prepare_view(self, view: PreTrainedModel) -> None:
        """A last word of the task on a fresh view."""
        return

    @abstractmethod
    def columns(self, output: Output, chunk: Chunk) -> Columns:
        """Where the outcomes of the chunk's targets stand in the model's output."""

    def hidden_states(self, output: Output) -> list[list[torch.Tensor]]:
        """Per stream the hidden states [b t d], from the first block's input to the last output."""
        return [list(output.hidden_states)]
