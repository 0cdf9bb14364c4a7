"""How word dropout gets into any transformers model: through its attention interface, without a fork.

While `attending(model)` is open, the model's configs name an attention of ours, which calls the family's own eager
function with one more mask joined to its own; what is kept travels in a context variable. So soft caps, windows, biases
and grouped heads stay the family's business, and the mask is a full 4-D one: nothing is ever said by gaps in
`position_ids`, which transformers would read as packed sequences. Afterwards the configs say what they said before.

Blocked pairs get the lowest number of the mask's dtype instead of a constant that is added, and rows in which all
pairs are blocked give exactly 0, as evaluation does (models/attention/hook.py); a constant added to every score of a
row would leave its softmax as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from raison.core.errors import Unsupported
from raison.models.attention.registration import eager_of, register_attention
from raison.models.attention.view import attention_kind
from raison.training.dropout import Keeps, pairs

__all__ = ["Reach", "attending", "keeping_only", "reach_of"]

NAME = "raison_dropout"
SIZE = 7  # tokens of the sequence that a model is tried on
CHECKPOINTING = ("gradient_checkpointing", "activation_checkpointing")  # flags of modules, by their old and new name


@dataclass
class Reach:
    """Which attentions of a model are reached, and with how many heads."""

    kinds: dict[int, str]  # id of a module -> self | encoder | decoder | cross
    heads: dict[str, int] = field(default_factory=dict)  # kind -> heads


_reach: ContextVar[Reach | None] = ContextVar("raison_reach", default=None)
_keeps: ContextVar[Keeps | None] = ContextVar("raison_keeps", default=None)


def attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The family's own eager attention, with the keeps of the running pass joined to its mask."""
    eager = eager_of(type(module))
    reach, keeps = _reach.get(), _keeps.get()
    kind = reach.kinds.get(id(module), "self") if reach is not None else "self"
    if reach is not None:
        reach.heads[kind] = query.shape[1]
    keep = keeps.of(kind) if keeps is not None else None
    if keep is None:
        return eager(module, query, key, value, attention_mask, **kwargs)
    allowed = pairs(keep[:, : query.shape[1]], kind, query.shape[2])  # [b h s t]
    if attention_mask is None:
        attention_mask = torch.zeros((), dtype=query.dtype, device=query.device)
    lowest = torch.finfo(attention_mask.dtype).min
    mask = attention_mask.expand(allowed.shape).masked_fill(~allowed, lowest)
    output, weights = eager(module, query, key, value, mask, **kwargs)  # output [b s h d]
    nothing = (mask <= lowest / 2).all(-1)  # [b h s]: must not become an average of what may not be seen
    return output.masked_fill(nothing.transpose(1, 2)[..., None], 0.0), weights


@contextmanager
def attending(model: Any) -> Iterator[Reach]:
    """While it is open, the attention of `model` (plain or wrapped by peft) listens to `keeping_only`."""
    if any(getattr(module, name, False) is True for module in model.modules() for name in CHECKPOINTING):
        raise Unsupported(
            "Word dropout and gradient checkpointing exclude each other (what is computed again would be computed "
            "without dropout): turn checkpointing off first."
        )
    register_attention(NAME, attention)
    configs = list({id(m.config): m.config for m in model.modules() if hasattr(m, "config")}.values())
    before = [config._attn_implementation for config in configs]
    token = _reach.set(Reach({id(module): attention_kind(name, model) for name, module in model.named_modules()}))
    try:
        for config in configs:
            config._attn_implementation = NAME
        found = _reach.get()
        assert found is not None
        yield found
    finally:
        _reach.reset(token)
        for config, name in zip(configs, before, strict=True):
            config._attn_implementation = name


@contextmanager
def keeping_only(keeps: Keeps | None) -> Iterator[None]:
    """Forward passes inside see only what is kept; None: everything."""
    token = _keeps.set(keeps)
    try:
        yield
    finally:
        _keeps.reset(token)


@torch.inference_mode()
def reach_of(model: Any, name: str) -> dict[str, int]:
    """Heads of each kind of attention; refuses a model in which dropped tokens would still be seen.

    The model is tried, not believed: with some tokens dropped, other words in their places must change nothing in the
    rows that may not see them.
    """
    apart = bool(getattr(model.config, "is_encoder_decoder", False))
    refusal = Unsupported(
        f"The attention of {name} can't be reached through transformers' attention interface, so words can't be "
        "dropped from it: use another model."
    )
    was = model.training
    model.eval()
    try:
        with attending(model) as reach:
            run(model, apart, None, 0)
            wanted = {"encoder", "decoder", "cross"} if apart else {"self"}
            if set(reach.heads) != wanted:
                raise refusal
            keep = torch.zeros(
                1, max(reach.heads.values()), SIZE, dtype=torch.bool, device=next(model.parameters()).device
            )
            keep[..., ::3] = True
            tried = [Keeps(target=keep), Keeps(source=keep)] if apart else [Keeps(target=keep)]
            for keeps in tried:
                first, other = (run(model, apart, keeps, change) for change in (0, 1))
                plain, changed = (run(model, apart, None, change) for change in (0, 1))
                rows = keep[0, 0] if keeps.target is not None else torch.ones_like(keep[0, 0])
                if not torch.equal(first[rows], other[rows]) or torch.equal(plain[rows], changed[rows]):
                    raise refusal
            return dict(reach.heads)
    except (RuntimeError, TypeError, ValueError, KeyError) as error:
        raise refusal from error
    finally:
        model.train(was)


def run(model: Any, apart: bool, keeps: Keeps | None, change: int) -> torch.Tensor:
    """[t v] logits of a short sequence; `change` puts other words where nothing is kept."""
    vocabulary = model.config.get_text_config().vocab_size
    plain = torch.arange(SIZE) * 5 % (vocabulary - 1) + 1
    other = torch.where(torch.arange(SIZE) % 3 == 0, plain, (plain + 2) % vocabulary) if change else plain
    device = next(model.parameters()).device
    ids, changed = plain[None].to(device), other[None].to(device)
    if not apart:
        inputs = {"input_ids": changed, "attention_mask": torch.ones_like(ids)}
    else:
        about_source = keeps is None or keeps.source is not None
        about_target = keeps is None or keeps.target is not None
        inputs = {
            "input_ids": changed if about_source else ids,
            "attention_mask": torch.ones_like(ids),
            "decoder_input_ids": changed if about_target else ids,
        }
    with keeping_only(keeps):
        found: torch.Tensor = model(**inputs, use_cache=False).logits[0]
    return found
