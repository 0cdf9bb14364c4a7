"""Transformer attribution: gradient ⊙ relevance of attention weights, rolled out through all heads or some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.errors import InputError
from raison.methods.base import Answer, Batch, Method, method
from raison.methods.lrp import ALPHA_BETA
from raison.methods.rollout import (
    map_on_axis,
    mean_map_of_heads,
    normalise_rows,
    roll_out,
    rows_of_answer,
)
from raison.methods.trace_answers import answer_with_conservation, require_traced, sum_of_relevance
from raison.models.protocol import Map, Model, Trace
from raison.models.relevance.mode import Heads

__all__ = ["ATTRIBUTION_WATCHES", "TransformerAttribution", "attribute_through_heads"]

ATTRIBUTION_WATCHES = frozenset({"attention_gradients", "readout"})


@method("transformer_attribution")
@dataclass(frozen=True)
class TransformerAttribution(Method):
    """Chefer 2021b: gradient ⊙ relevance of the attention weights, positive part, rolled out.

    Ā_l = mean_h (∇A^l ⊙ R^l)⁺ + I, rows normalised; C = Ā_L ··· Ā_1; score = the rows of the answer in C, less
    the path around all attention. R by the rules of `lrp`. (The code of P4 calls this one GAE.)
    """

    paper = "Chefer et al. 2021b"
    signed = False
    additive = True
    needs = frozenset({"gradients", "attention"})
    watches = ATTRIBUTION_WATCHES

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return attribute_through_heads(model, batch, None)


def attribute_through_heads(model: Model, batch: Batch, heads: Heads | None) -> list[Answer]:
    """Roll out gradient ⊙ relevance for every example, through some heads or (None) through all.

    Two passes: one for the gradients of the attention weights, one for their relevance.
    """
    plain = dict(model.trace(batch.encodings, batch.targets, want=ATTRIBUTION_WATCHES))
    if heads is not None:
        first = next(iter(plain.values()))
        check_shape_of_heads(heads, first.maps, model)

    rules = ALPHA_BETA.through(heads)
    as_released = heads is not None and heads.released
    want = frozenset({"relevance", "attention"})
    answers: dict[int, Answer] = {}
    for index, trace in model.trace(batch.encodings, batch.targets, want=want, rules=rules):
        if as_released:
            # with a mask the published code does not halve what it saves for the roll-out
            scores = rolled_out_relevance(trace, plain.pop(index), factor=2.0)
            # it does not conserve, and does not claim to
            answers[index] = Answer(scores, diagnostics={"relevance_sum": sum_of_relevance(trace)})
        else:
            scores = rolled_out_relevance(trace, plain.pop(index))
            answers[index] = answer_with_conservation(scores, trace)
    return [answers[index] for index in range(len(batch))]


def rolled_out_relevance(trace: Trace, plain: Trace, factor: float = 1.0) -> np.ndarray:
    """Ā_l = mean_h (∇A ⊙ R)⁺ + I with rows normalised, multiplied from the last block to the first, at the answer.

    Less the path that no attention takes: row i has Π_l 1 / Σ_j Ā_lij of itself whatever the heads do, which is nearly
    everything where an answer is read from all rows. (The published code sets the entry of [CLS] to zero.)
    """
    size = len(trace.encoding)
    identity = np.eye(size)
    blocks = []
    around_attention = np.ones(size)
    for relevance_map, plain_map in zip(trace.maps, plain.maps, strict=True):
        gradient = require_traced(plain_map.gradient)
        product = gradient * require_traced(relevance_map.relevance) * factor
        weights = mean_map_of_heads(product.clamp_min(0))
        block = map_on_axis(size, relevance_map, weights) + identity
        around_attention /= block.sum(1)
        blocks.append(normalise_rows(block))
    through_attention = roll_out(blocks, size) - np.diag(around_attention)
    return rows_of_answer(plain, through_attention)


def check_shape_of_heads(heads: Heads, maps: Sequence[Map], model: Model) -> None:
    """Refuse heads of another model."""
    layers, width = len(maps), len(maps[0].weights)
    shape = heads.syntactic.shape
    if shape != (layers, width):
        other = " x ".join(map(str, shape))
        raise InputError(
            f"This file has {other} heads, but {model.name} has {layers} x {width}: make one with "
            f"`raison heads -m {model.name}`."
        )
