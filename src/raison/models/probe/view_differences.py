"""Differences between the view and the plain model: outcomes of both, and how far they may differ."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from raison.core.records import Encoding, Target
from raison.models.attention.view import plain_clone
from raison.models.protocol import InspectableModel
from raison.models.runner.answers import Columns
from raison.models.runner.batching import Chunk, pieces_of_whole_texts
from raison.models.runner.runner import Runner

__all__ = [
    "chunk_of_whole_texts",
    "difference_of_view",
    "error_in_one_line",
    "outcomes_of_plain_model",
    "outcomes_of_view",
    "relative_difference",
    "tolerated_difference_of_dtype",
]

TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-4}
COARSE_TOLERANCE = 5e-2


def tolerated_difference_of_dtype(dtype: torch.dtype) -> float:
    """How far two routes to the same value may differ, relative to it: rounding of the model's own dtype."""
    return TOLERANCES.get(dtype, COARSE_TOLERANCE)


def error_in_one_line(error: BaseException) -> str:
    """The first words of an error, on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def relative_difference(reference: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference, relative to the largest of the reference where that is above 1."""
    size = max(1.0, float(reference.abs().max()))
    return float((reference - other).abs().max() / size)


def difference_of_view(
    model: InspectableModel, encoding: Encoding, target: Target, attention: str | None = "eager"
) -> float:
    """View, with masks and positions given, against an untapped clone with none given: largest gap of logits."""
    chunk = chunk_of_whole_texts([encoding], target)
    plain = outcomes_of_plain_model(model.runner, chunk, attention)
    return relative_difference(plain.logits, outcomes_of_view(model.runner, chunk))


def chunk_of_whole_texts(encodings: Sequence[Encoding], target: Target) -> Chunk:
    """One pass over whole texts of equal length, with the same target."""
    plan = pieces_of_whole_texts(encodings, [target] * len(encodings))
    return Chunk(plan, plan[0].lengths, "exact")


@torch.inference_mode()
def outcomes_of_plain_model(
    runner: Runner,
    chunk: Chunk,
    attention: str | None = "eager",
    *,
    watch: TorchFunctionMode | None = None,
) -> Columns:
    """What an untapped clone answers that is given tokens only."""
    inputs = runner.arguments(chunk, "mask").inputs
    tokens = {name: value for name, value in inputs.items() if is_about_tokens(name)}
    with watch or nullcontext():
        plain = plain_clone(runner.loaded.hf, attention)
        runner.task.prepare_view(plain)
        output = plain(**tokens)
    return runner.columns(output, chunk)


def is_about_tokens(argument: str) -> bool:
    """Whether an argument says no more than a user would say: no mask and no positions."""
    return argument.endswith("input_ids") or argument in ("token_type_ids", "use_cache")


@torch.inference_mode()
def outcomes_of_view(runner: Runner, chunk: Chunk, heads: np.ndarray | None = None) -> torch.Tensor:
    """Logits of the view, with masks and positions given."""
    prepared = runner.arguments(chunk, "mask")
    prepared.call.view = runner.view
    prepared.call.heads = None if heads is None else torch.from_numpy(heads)
    return runner.columns(runner.forward(prepared), chunk).logits
