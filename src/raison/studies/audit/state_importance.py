"""Importance of hidden states for the answer (gradients, removals), and the influence of words on hidden states (P2).

    g_ŷ(h_i) = ‖∂ŷ/∂h_i‖ / Σ_k        D_ŷ(h_i) = |ŷ − ŷ₋ᵢ| / Σ_k  with the score of i at −∞ and φ applied again
    g_hp(x_i) = ‖∂‖h_p‖/∂x_i‖ / Σ_k    the influence of word i on the size of hidden state p (P2 eq. 5)
    facets    = ‖∂h_p/∂x_i‖_F / Σ_k    on hidden state p itself (P2 App. A)

ŷ is the probability of the predicted class. Gradients go through the attention as well: with the graph cut there,
∂ŷ/∂h_i would be α_i times the same vector for all i, and would agree with α by construction. Of words (x) the methods
`gradient_norm` and `leave_one_out` tell the same things.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from raison.attention_models.adapter import AttentionModel, to_numpy
from raison.attention_models.module import ClassifierOutput
from raison.core.records import Encoding
from raison.models.protocol import InspectableModel
from raison.models.runner.batching import Chunk, pieces

__all__ = [
    "importance_as_shares",
    "influence_on_states",
    "real_tokens_with_states",
    "state_gradients",
    "state_removals",
    "states_and_embeddings",
]

ROWS = 1 << 15  # tokens of a batched pass back, at most


def importance_as_shares(values: np.ndarray) -> np.ndarray:
    """Sizes that add up to 1; zeros where there is nothing."""
    sizes = np.abs(values)
    total = sizes.sum(-1, keepdims=True)
    zeros = np.zeros_like(sizes)
    has_size = total > 0
    shares = np.divide(sizes, total, out=zeros, where=has_size)
    return np.asarray(shares)


def real_tokens_with_states(encoding: Encoding, model: InspectableModel) -> np.ndarray:
    """Positions that attention is about: no special tokens, not even those that somebody typed."""
    special = getattr(model.hf.config, "special_ids", ())
    in_text = encoding.start >= 0
    is_special = np.isin(encoding.ids, special)
    return np.flatnonzero(in_text & ~is_special)


def state_gradients(model: AttentionModel, encodings: Sequence[Encoding]) -> list[np.ndarray]:
    """[n] the gradient of the predicted class's probability at each hidden state, as shares of its size."""
    found: list[np.ndarray] = [np.zeros(0)] * len(encodings)
    for batch in model.passes(encodings, graph=True):
        output: Any = batch.output  # of which a pass fills every field
        probabilities = output.logits.softmax(-1)
        of_predicted = probabilities.max(-1).values
        (slope,) = torch.autograd.grad(of_predicted.sum(), output.read)
        size_of_slope = slope.norm(dim=-1)
        sizes = to_numpy(size_of_slope)
        for owner, row in zip(batch.owners, sizes, strict=True):
            real = real_tokens_with_states(encodings[owner], model)
            sizes_at_words = row[real]
            found[owner] = importance_as_shares(sizes_at_words)
    return found


def state_removals(model: AttentionModel, encodings: Sequence[Encoding]) -> list[np.ndarray]:
    """[n] how far the predicted class's probability moves without each hidden state, as shares."""
    found: list[np.ndarray] = [np.zeros(0)] * len(encodings)
    for batch in model.passes(encodings):
        moves = to_numpy(moves_without_each_state(model, batch.output))
        for owner, row in zip(batch.owners, moves, strict=True):
            real = real_tokens_with_states(encodings[owner], model)
            moves_of_words = row[real]
            found[owner] = importance_as_shares(moves_of_words)
    return found


@torch.inference_mode()
def moves_without_each_state(model: AttentionModel, output: Any) -> torch.Tensor:
    """[b i] how far the predicted class's probability moves when hidden state i gets no attention."""
    view = model.view
    texts, tokens = output.scores.shape
    probabilities = output.logits.softmax(-1)
    predicted = probabilities.argmax(-1)

    device = output.real.device
    itself = torch.eye(tokens, dtype=torch.bool, device=device)
    real = output.real[:, None, :]
    others = real & ~itself  # [b i t] without i
    scores = output.scores[:, None, :].expand(texts, tokens, tokens)
    attention = view.normalizer(scores, others)
    context = attention @ output.read
    logits = view.decoder(context)  # [b i c]

    of_predicted = predicted[:, None, None].expand(texts, tokens, 1)
    left = logits.softmax(-1)
    without = left.gather(-1, of_predicted)[..., 0]
    whole = probabilities.gather(1, predicted[:, None])
    change = whole - without
    moves: torch.Tensor = change.abs()
    return moves


def influence_on_states(
    model: InspectableModel, encoding: Encoding, *, facets: bool = False
) -> np.ndarray:
    """[p i] the share that each word has in each hidden state, of any classifier with word embeddings.

    The text runs once; then one batched pass back serves many hidden states (and facets), each with a slope of its own.
    """
    real = real_tokens_with_states(encoding, model)
    words = len(real)
    states, leaf = states_and_embeddings(model, encoding)
    width = states.shape[-1]
    positions = torch.from_numpy(real)
    if facets:
        positions = positions.repeat_interleave(width)
        one_facet_each = torch.eye(width, dtype=states.dtype)
        slopes = one_facet_each.repeat(words, 1)
    else:  # of the length of a state
        states_of_words = states[0].detach()[positions]
        slopes = functional.normalize(states_of_words, dim=-1)

    count = len(positions)
    sizes = np.zeros((count, words))
    length = max(1, len(encoding))
    most = max(1, ROWS // length)
    for start in range(0, count, most):
        part = slice(start, start + most)
        positions_of_part = positions[part]
        slopes_of_part = slopes[part]
        # the slope of each row's number at all states
        wanted = states.new_zeros(len(positions_of_part), *states.shape)
        rows = torch.arange(len(wanted))
        wanted[rows, 0, positions_of_part] = slopes_of_part.to(wanted)
        (slope,) = torch.autograd.grad(
            states, leaf, wanted, retain_graph=True, is_grads_batched=True
        )
        at_words = slope[:, 0, real]
        size_at_words = at_words.norm(dim=-1)
        sizes[part] = to_numpy(size_at_words)

    if facets:
        squares = np.square(sizes)
        by_facet = squares.reshape(words, width, words)
        sizes = np.sqrt(by_facet.sum(1))
    return importance_as_shares(sizes)


def states_and_embeddings(
    model: InspectableModel, encoding: Encoding
) -> tuple[torch.Tensor, torch.Tensor]:
    """[1 t d] the last hidden states of a text, and its embeddings [1 t d] as leaves."""
    everything = np.ones((1, len(encoding)), bool)
    (piece,) = pieces(0, encoding, None, everything, False)
    chunk = Chunk([piece], piece.lengths, "exact")
    prepared = model.runner.arguments(chunk, "mask")
    call = prepared.call
    call.view = model.runner.view
    call.record = frozenset({"embeddings"})
    with torch.inference_mode(False):
        output = model.runner.forward(prepared, graph=True, hidden=True)
    # of an attention classifier the states that attention reads
    if isinstance(output, ClassifierOutput):
        states: Any = output.read
    else:
        states = output.hidden_states[-1]
    return states, call.leaves[0]
