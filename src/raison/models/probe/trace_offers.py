"""What traces of a model offer: gradients, hidden states, attention; and whether heads can be switched off."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from raison.core.records import Encoding, Target
from raison.models.attention.products import name_of_product_function
from raison.models.probe.view_differences import (
    chunk_of_whole_texts,
    error_in_one_line,
    outcomes_of_plain_model,
    outcomes_of_view,
    relative_difference,
    tolerated_difference_of_dtype,
)
from raison.models.protocol import Trace
from raison.models.transformers_model import TransformersModel

__all__ = ["heads_can_be_switched_off", "offers_of_traces"]

log = logging.getLogger("raison")


def offers_of_traces(model: TransformersModel, encoding: Encoding, target: Target) -> set[str]:
    """gradients, hidden, attention: what a trace really brings."""
    target = replace(target, output="logit")  # the gradient of a log-probability of 1.0 is zero
    offers: set[str] = set()
    try:
        gradient = one_trace(model, encoding, target, "gradients").gradient
        if gradient is None or not torch.isfinite(gradient).all() or not bool(gradient.any()):
            return offers
        offers.add("gradients")

        trace = one_trace(
            model, encoding, target, "gradients", "hidden", "hidden_gradients", "readout"
        )
        if trace.readout is not None and abs(trace.readout.sum() - 1) < 1e-3:
            offers.add("hidden")
        seen = attention_is_seen(model, encoding, target, depth=len(trace.hidden) - 1)
        if seen and "hidden" in offers:
            offers.add("attention")
    except Exception as error:
        # the code of any model runs here, and what can't be recorded is not offered
        log.info("%s: not everything can be recorded (%s)", model.name, error_in_one_line(error))
    return offers


def one_trace(model: TransformersModel, encoding: Encoding, target: Target, *want: str) -> Trace:
    """The trace of one text."""
    ((_, trace),) = model.trace([encoding], [target], want=frozenset(want))
    return trace


def attention_is_seen(
    model: TransformersModel, encoding: Encoding, target: Target, *, depth: int
) -> bool:
    """Whether every block shows its own map, to the tap or else to a function mode; the runner notes which."""
    for bypass in (False, True):
        model.runner.bypasses_tap = bypass
        trace = one_trace(model, encoding, target, "attention_gradients")
        last = trace.maps[-1:]
        moves = all(seen.gradient is not None and bool(seen.gradient.any()) for seen in last)
        if moves and trace_has_map_of_every_block(trace, depth):
            return True
    model.runner.bypasses_tap = False
    return False


def trace_has_map_of_every_block(trace: Trace, depth: int) -> bool:
    """Whether each of `depth` blocks has its own map: methods number maps as blocks, and hybrids attend in some."""
    blocks: dict[str, list[int]] = {}
    for seen in trace.maps:
        blocks.setdefault(seen.kind, []).append(seen.block)
    for each in blocks.values():
        if len(set(each)) < len(each):
            return False  # two maps of one block

    counts = {kind: len(each) for kind, each in blocks.items()}
    if "self" in counts:
        return counts["self"] == depth
    return counts.get("encoder", 0) > 0 and counts.get("decoder", 0) == counts.get("cross", 0) > 0


class HeadsOff(TorchFunctionMode):
    """Multiplies what comes out of each attention's softmax with the factors of its heads: literal, and slow."""

    def __init__(self, factors: np.ndarray):
        super().__init__()
        # [h] for each attention, in the order in which they run
        self.factors = iter(torch.from_numpy(factors))

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if (
            name_of_product_function(func) == "softmax"
            and isinstance(result, torch.Tensor)
            and result.dim() == 4
        ):
            return result * next(self.factors).to(result)[None, :, None, None]
        return result


def heads_can_be_switched_off(model: TransformersModel, encoding: Encoding, target: Target) -> bool:
    """Whether heads that are switched off in the view change what they change in an untapped clone."""
    runner = model.runner
    if runner.bypasses_tap:
        return False
    try:
        maps = one_trace(model, encoding, target, "attention").maps
        attentions = np.arange(len(maps))
        heads = np.arange(len(maps[0].weights))
        numbers = np.add.outer(attentions, heads)
        every_second_head = (numbers % 2).astype(float)
        chunk = chunk_of_whole_texts([encoding], target)
        viewed = outcomes_of_view(runner, chunk, every_second_head)
        literal = outcomes_of_plain_model(runner, chunk, watch=HeadsOff(every_second_head)).logits
    except Exception as error:  # the code of any model runs here
        log.info("%s: heads can't be switched off (%s)", model.name, error_in_one_line(error))
        return False
    return relative_difference(literal, viewed) <= tolerated_difference_of_dtype(
        runner.loaded.dtype
    )
