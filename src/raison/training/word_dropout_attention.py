"""The attention through which word dropout gets into any transformers model, and which heads it reaches.

While `word_dropout_attention(model)` is open, the model's configs name an attention of ours. It calls the family's own
eager function with one more mask joined to its own; what is kept travels in a context variable. So soft caps, windows,
biases and grouped heads stay the family's business, and the mask is a full 4-D one: nothing is ever said by gaps in
`position_ids`, which transformers would read as packed sequences. Afterwards the configs say what they said before.

Blocked pairs get the lowest number of the mask's dtype instead of a constant that is added, and rows in which all
pairs are blocked give exactly 0, as evaluation does (models/attention/view_hooks.py); a constant added to every score
of a row would leave its softmax as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import nn
from transformers import PretrainedConfig

from raison.core.errors import Unsupported
from raison.models.attention.view import attention_kind
from raison.models.attention.view_hooks import eager_attention_of, register_attention
from raison.training.word_dropout import Keeps, attention_pairs_after_dropout

__all__ = [
    "AttentionReach",
    "attention_keeping_only",
    "heads_within_reach",
    "word_dropout_attention",
]

Transformer: TypeAlias = Any  # a model of transformers, plain or wrapped by peft

NAME = "raison_dropout"
SIZE = 7  # tokens of the sequence that a model is tried on
KEPT = 3  # each so manyeth of them is kept
# flags of modules, by their old and new name
CHECKPOINTING = ("gradient_checkpointing", "activation_checkpointing")


@dataclass
class AttentionReach:
    """Which attentions of a model are reached, and with how many heads."""

    kinds: dict[int, str]  # id of a module -> self | encoder | decoder | cross
    heads: dict[str, int] = field(default_factory=dict)  # kind -> heads


_reach: ContextVar[AttentionReach | None] = ContextVar("raison_reach", default=None)
_keeps: ContextVar[Keeps | None] = ContextVar("raison_keeps", default=None)


def attention_with_keeps(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **kwargs: object,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The family's own eager attention, with the keeps of the running pass joined to its mask."""
    eager = eager_attention_of(type(module))
    reach = _reach.get()
    keeps = _keeps.get()
    kind = "self"
    keep = None
    if reach is not None:
        kind = reach.kinds.get(id(module), kind)
        reach.heads[kind] = query.shape[1]
    if keeps is not None:
        keep = keeps.of(kind)
    if keep is None:
        whole: tuple[torch.Tensor, torch.Tensor | None] = eager(
            module, query, key, value, attention_mask, **kwargs
        )
        return whole

    heads = query.shape[1]
    length = query.shape[2]
    keep_of_heads = keep[:, :heads]
    allowed = attention_pairs_after_dropout(keep_of_heads, kind, length)  # [b h s t]
    if attention_mask is None:
        attention_mask = torch.zeros((), dtype=query.dtype, device=query.device)
    lowest = torch.finfo(attention_mask.dtype).min
    expanded = attention_mask.expand(allowed.shape)
    mask = expanded.masked_fill(~allowed, lowest)
    output, weights = eager(module, query, key, value, mask, **kwargs)  # output [b s h d]
    # [b h s]: must not become an average of what may not be seen
    nothing = (mask <= lowest / 2).all(-1)
    nothing = nothing.transpose(1, 2)[..., None]
    return output.masked_fill(nothing, 0.0), weights


@contextmanager
def word_dropout_attention(model: Transformer) -> Iterator[AttentionReach]:
    """While it is open, the attention of `model` (plain or wrapped by peft) listens to `attention_keeping_only`."""
    if model_uses_checkpointing(model):
        raise Unsupported(
            "Word dropout and gradient checkpointing exclude each other (what is computed again would be computed "
            "without dropout): turn checkpointing off first."
        )
    register_attention(NAME, attention_with_keeps)
    configs: dict[int, PretrainedConfig] = {}
    kinds: dict[int, str] = {}
    for name, module in model.named_modules():
        kinds[id(module)] = attention_kind(name, model)
        if hasattr(module, "config"):
            configs[id(module.config)] = module.config
    before = {}
    for number, config in configs.items():
        before[number] = config._attn_implementation
    reach = AttentionReach(kinds)
    token = _reach.set(reach)
    try:
        for config in configs.values():
            config._attn_implementation = NAME
        yield reach
    finally:
        _reach.reset(token)
        for number, config in configs.items():
            config._attn_implementation = before[number]


def model_uses_checkpointing(model: Transformer) -> bool:
    """Whether a part of the model computes its forward pass again during the backward pass."""
    for module in model.modules():
        for name in CHECKPOINTING:
            if getattr(module, name, False) is True:
                return True
    return False


@contextmanager
def attention_keeping_only(keeps: Keeps | None) -> Iterator[None]:
    """Forward passes inside see only what is kept; None: everything."""
    token = _keeps.set(keeps)
    try:
        yield
    finally:
        _keeps.reset(token)


@torch.inference_mode()
def heads_within_reach(model: Transformer, name: str) -> dict[str, int]:
    """Heads of each kind of attention; refuses a model in which dropped tokens would still be seen.

    The model is tried, not believed: with some tokens dropped, other words in their places must change nothing in the
    rows that may not see them.
    """
    refusal = Unsupported(
        f"The attention of {name} can't be reached through transformers' attention interface, so words can't be "
        "dropped from it: use another model."
    )
    was_training = model.training
    model.eval()
    try:
        heads = heads_if_dropout_hides(model)
    except (RuntimeError, TypeError, ValueError, KeyError) as error:
        raise refusal from error
    finally:
        model.train(was_training)
    if heads is None:
        raise refusal
    return heads


def heads_if_dropout_hides(model: Transformer) -> dict[str, int] | None:
    """Heads of each kind of attention; None where dropped tokens are seen."""
    two_sides = model_has_two_sides(model)
    with word_dropout_attention(model) as reach:
        trial_logits_after_dropout(model, None, other_words=False)
        wanted = {"self"}
        if two_sides:
            wanted = {"encoder", "decoder", "cross"}
        if set(reach.heads) != wanted:
            return None

        device = next(model.parameters()).device
        most_heads = max(reach.heads.values())
        keep = torch.zeros(1, most_heads, SIZE, dtype=torch.bool, device=device)
        keep[..., ::KEPT] = True
        trials = [Keeps(target=keep)]
        if two_sides:
            trials.append(Keeps(source=keep))
        for keeps in trials:
            if not dropout_hides_words(model, keeps):
                return None
        return dict(reach.heads)


def dropout_hides_words(model: Transformer, keeps: Keeps) -> bool:
    """Whether other words in dropped places change nothing, although they do where nothing is dropped."""
    first = trial_logits_after_dropout(model, keeps, other_words=False)
    other = trial_logits_after_dropout(model, keeps, other_words=True)
    plain = trial_logits_after_dropout(model, None, other_words=False)
    changed = trial_logits_after_dropout(model, None, other_words=True)
    rows = torch.ones(SIZE, dtype=torch.bool)
    if keeps.target is not None:
        rows = keeps.target[0, 0]
    is_hidden = torch.equal(first[rows], other[rows])
    is_ignored = torch.equal(plain[rows], changed[rows])
    return is_hidden and not is_ignored


def trial_logits_after_dropout(
    model: Transformer, keeps: Keeps | None, *, other_words: bool
) -> torch.Tensor:
    """[t v] logits of a short sequence; with `other_words` others stand where nothing is kept."""
    vocabulary = model.config.get_text_config().vocab_size
    device = next(model.parameters()).device
    places = torch.arange(SIZE, device=device)
    ids = places * 5 % (vocabulary - 1) + 1
    changed = ids
    if other_words:
        is_kept = places % KEPT == 0
        others = (ids + 2) % vocabulary
        changed = torch.where(is_kept, ids, others)

    everything = torch.ones_like(ids)
    inputs = {"input_ids": changed[None], "attention_mask": everything[None]}
    if model_has_two_sides(model):
        inputs["decoder_input_ids"] = changed[None]
        if keeps is not None and keeps.source is None:
            inputs["input_ids"] = ids[None]
        if keeps is not None and keeps.target is None:
            inputs["decoder_input_ids"] = ids[None]
    with attention_keeping_only(keeps):
        logits: torch.Tensor = model(**inputs, use_cache=False).logits[0]
    return logits


def model_has_two_sides(model: Transformer) -> bool:
    """Whether the model is an encoder-decoder."""
    return bool(getattr(model.config, "is_encoder_decoder", False))
