"""Views: clones of the user's model that share its weights, so that one can look inside without touching it.

A *view* is a structural copy that shares every weight with the model and owns everything else: its
modules, hooks, configs and flags. Its attention is one stateless function; what a call wants recorded or
changed travels in a context variable, so threads can't disturb each other and nothing has to be undone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import nn

from raison.core.errors import ModelError
from raison.models.attention.view_hooks import (
    NAME,
    activation,
    begin_block,
    end_block,
    keep_asked_rows_at_head,
    register_view_attention,
    replace_embeddings,
)
from raison.models.attention.view_settings import configs_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["attention_kind", "clone_of", "plain_clone", "view_of", "word_tables_of_view"]

M = TypeVar("M", bound=nn.Module)

# names of modules
CROSS_ATTENTION = frozenset({"encoder_attn", "EncDecAttention", "crossattention", "cross_attn"})


@torch.inference_mode(False)  # else the aliases could never be differentiated
def clone_of(model: M) -> M:
    """A structural copy: own modules, configs and flags; frozen aliases of the same weights."""
    memo: dict[int, object] = {}
    for parameter in model.parameters():
        memo[id(parameter)] = nn.Parameter(alias_of_weight(parameter), requires_grad=False)
    for buffer in model.buffers():
        memo[id(buffer)] = alias_of_weight(buffer) if buffer.is_inference() else buffer
    for value in computed_weights(model):
        memo[id(value)] = alias_of_weight(value)
    try:
        copied = copy.deepcopy(model, memo)
    except Exception as error:
        raise ModelError(
            f"This model can't be viewed ({type(error).__name__}: {error}): pass the plain model."
        ) from error
    if "_hf_hook" in vars(copied):
        # accelerate would put copies of hidden states, without gradients, in their place
        vars(copied).pop("forward", None)
    return copied.eval()


def alias_of_weight(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as a tensor that can take part in a backward pass; one made in inference mode itself can't."""
    if not tensor.is_inference():
        return tensor.detach()
    empty = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return empty.set_(
        tensor.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride()
    )


def computed_weights(model: nn.Module) -> Iterator[torch.Tensor]:
    """Weights that a hook computes before each pass, as pruning does: plain attributes, which can't be copied."""
    for module in model.modules():
        for value in vars(module).values():
            if not isinstance(value, torch.Tensor):
                continue
            if value.grad_fn is not None or value.is_inference():
                yield value


def set_attention(model: nn.Module, implementation: str | None) -> None:
    """Set the attention of a clone (None: as it is), in every config that its modules hold."""
    for config in configs_of(model.modules()):
        if implementation is not None:
            config._attn_implementation = implementation
        config.return_dict = True


def plain_clone(model: M, implementation: str | None = "eager") -> M:
    """An untapped clone with eager attention, or the user's own (None): what the load probe compares a view with."""
    copied = clone_of(model)
    set_attention(copied, implementation)
    return copied


def view_of(
    model: PreTrainedModel, prepare: Callable[[PreTrainedModel], None] | None = None
) -> PreTrainedModel:
    """A view of `model`: tapped attention, hooks on its word embeddings and on its LM head."""
    register_view_attention()
    copied = clone_of(model)
    fused = getattr(copied.config, "_attn_implementation", None) == "sdpa"
    set_attention(copied, NAME)
    tables = word_tables_of_view(copied)
    for name, module in copied.named_modules():
        if isinstance(module, nn.Embedding) and module.weight.data_ptr() in tables:
            module.register_forward_hook(replace_embeddings)
        if type(module).__module__ == "transformers.activations":
            # some are several functions; rules want one
            module.forward = partial(activation, module.forward)
        if is_block_of_view(name, copied):
            module.register_forward_pre_hook(begin_block, with_kwargs=True)
            module.register_forward_hook(end_block)
        vars(module)["raison_kind"] = attention_kind(name, copied)
        vars(module)["raison_fused"] = fused
    head = copied.get_output_embeddings()
    if head is not None:
        head.register_forward_pre_hook(keep_asked_rows_at_head)
    if prepare is not None:
        prepare(copied)
    return copied


def word_tables_of_view(model: PreTrainedModel) -> set[int]:
    """Addresses of the word embeddings: one table, or the encoder's and the decoder's own."""
    parts = [model]
    if is_encoder_decoder(model):
        parts += [
            getattr(model, name)()
            for name in ("get_encoder", "get_decoder")
            if hasattr(model, name)
        ]
    tables = [
        part.get_input_embeddings() for part in parts if hasattr(part, "get_input_embeddings")
    ]
    return {table.weight.data_ptr() for table in tables if isinstance(table, nn.Embedding)}


def is_encoder_decoder(model: PreTrainedModel) -> bool:
    """Whether a model has two streams: source and what is written."""
    return bool(getattr(model.config, "is_encoder_decoder", False))


def attention_kind(name: str, model: PreTrainedModel) -> str:
    """Which map an attention module of this path gives: self, or encoder, decoder, cross."""
    if not is_encoder_decoder(model):
        return "self"
    path = name.split(".")
    if not CROSS_ATTENTION.isdisjoint(path):
        return "cross"
    return "decoder" if "decoder" in path else "encoder"


def is_block_of_view(name: str, model: nn.Module) -> bool:
    """Whether a module is an element of a module list that stands in no other."""
    parent, _, _ = name.rpartition(".")
    path = parent.split(".")
    above = [".".join(path[:length]) for length in range(1, len(path) + 1)]
    lists = [each for each in above if isinstance(model.get_submodule(each), nn.ModuleList)]
    return bool(lists) and lists[0] == parent
