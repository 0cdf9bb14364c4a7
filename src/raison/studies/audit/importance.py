"""How much each hidden state and each word matters to the answer, and each word to each hidden state (P2).

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

from raison.attention_models.adapter import Attentive
from raison.attention_models.module import Told
from raison.core.records import Encoding

__all__ = ["influence", "shares", "state_gradients", "state_removals"]

ROWS = 1 << 15  # tokens of a batched pass back, at most


def shares(values: np.ndarray) -> np.ndarray:
    """Sizes that add up to 1; zeros where there is nothing."""
    sizes = np.abs(values)
    total = sizes.sum(-1, keepdims=True)
    return np.divide(sizes, total, out=np.zeros_like(sizes), where=total > 0)


def real_tokens(encoding: Encoding, model: Any) -> np.ndarray:
    """Positions that attention is about: no special tokens, not even those that somebody typed."""
    special = getattr(model.hf.config, "special", ())
    return np.flatnonzero((encoding.start >= 0) & ~np.isin(encoding.ids, special))


def state_gradients(model: Attentive, encodings: Sequence[Encoding]) -> list[np.ndarray]:
    """[n] the gradient of the predicted class's probability at each hidden state, as shares of its size."""
    found: list[np.ndarray] = [np.zeros(0)] * len(encodings)
    for each in model.passes(encodings, graph=True):
        told: Any = each.told
        best = told.logits.softmax(-1).max(-1).values.sum()
        (slope,) = torch.autograd.grad(best, told.read)
        sizes = slope.norm(dim=-1).cpu().double().numpy()
        for owner, row in zip(each.owners, sizes, strict=True):
            found[owner] = shares(row[real_tokens(encodings[owner], model)])
    return found


def state_removals(model: Attentive, encodings: Sequence[Encoding]) -> list[np.ndarray]:
    """[n] how far the predicted class's probability moves without each hidden state, as shares."""
    found: list[np.ndarray] = [np.zeros(0)] * len(encodings)
    view = model.view
    for each in model.passes(encodings):
        told: Any = each.told
        b, t = told.scores.shape
        said = told.logits.softmax(-1)
        best = said.argmax(-1)
        with torch.inference_mode():
            alone = torch.eye(t, dtype=torch.bool, device=told.real.device)
            there = told.real[:, None, :] & ~alone  # [b i t] without i
            weights = view.normalizer(told.scores[:, None, :].expand(b, t, t), there)
            logits = view.decoder(weights @ told.read)  # [b i c]
            left = logits.softmax(-1).gather(-1, best[:, None, None].expand(b, t, 1))[..., 0]
            moved = (said.gather(1, best[:, None]) - left).abs().cpu().double().numpy()
        for owner, row in zip(each.owners, moved, strict=True):
            found[owner] = shares(row[real_tokens(encodings[owner], model)])
    return found


def influence(model: Any, encoding: Encoding, *, facets: bool = False) -> np.ndarray:
    """[p i] the share that each word has in each hidden state, of any classifier with word embeddings.

    The text runs once; then one batched pass back serves many hidden states (and facets), each with a slope of its own.
    """
    real = real_tokens(encoding, model)
    states, leaf = states_of(model, encoding)
    own = states[0].detach()
    width = own.shape[-1]
    asked = [(p, f) for p in real for f in (range(width) if facets else (None,))]
    sizes = np.zeros((len(asked), len(real)))
    most = max(1, ROWS // max(1, len(encoding)))
    for start in range(0, len(asked), most):
        part = asked[start : start + most]
        rows = torch.arange(len(part))
        places = torch.tensor([int(p) for p, _ in part])
        wanted = own.new_zeros(len(part), *states.shape)  # the slope of each row's number at all states
        if facets:
            wanted[rows, 0, places, torch.tensor([int(f) for _, f in part])] = 1.0  # type: ignore[arg-type]
        else:  # of the length of a state
            wanted[rows, 0, places] = functional.normalize(own[places], dim=-1)
        (slope,) = torch.autograd.grad(states, leaf, wanted, retain_graph=True, is_grads_batched=True)
        sizes[start : start + len(part)] = slope[:, 0, real].norm(dim=-1).cpu().double().numpy()
    if facets:
        sizes = np.sqrt(np.square(sizes).reshape(len(real), width, len(real)).sum(1))
    return shares(sizes)


def states_of(model: Any, encoding: Encoding) -> tuple[torch.Tensor, torch.Tensor]:
    """[1 t d] the last hidden states of a text, and its embeddings [1 t d] as leaves."""
    from raison.models.runner.batching import Chunk, pieces

    keep = np.ones((1, len(encoding)), bool)
    (piece,) = pieces(0, encoding, None, keep, False)
    prepared = model.runner.arguments(Chunk([piece], piece.lengths, "exact"), "mask")
    call = prepared.call
    call.view, call.record = model.runner.view, frozenset({"embeddings"})
    with torch.inference_mode(False):
        output = model.runner.forward(prepared, graph=True, hidden=True)
    states: Any = output.read if isinstance(output, Told) else output.hidden_states[-1]  # what attention reads
    return states, call.leaves[0]
