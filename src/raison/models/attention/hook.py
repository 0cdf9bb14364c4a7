"""Looking inside a forward pass without touching the user's model.

A *view* is a structural copy that shares every weight with the model and owns everything else: its
modules, hooks, configs and flags. Its attention is one stateless function; what a call wants recorded or
changed travels in a context variable, so threads can't disturb each other and nothing has to be undone.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

from raison.core import progress
from raison.core.errors import ModelError, Unsupported
from raison.models.attention.products import Mark, Products
from raison.models.relevance.mode import activation

__all__ = ["Block", "Call", "Seen", "bare", "current", "fingerprint", "running", "view_of"]

NAME = "raison"
LONG = 256  # tokens from which fused attention pays (0.95 x eager at 256, 0.8 x at 512, 0.55 x at 1,000; SmolLM2)
# what torch keeps in a module, compared as tensors and modules or not at all
PRIVATE = frozenset(vars(nn.Module())) - {"training"}


@dataclass
class Seen:
    """One attention map of a forward pass: kind is self, encoder, decoder or cross."""

    kind: str
    weights: torch.Tensor  # [b h s t]
    block: int  # the block it ran in, counted over all that ran; -1 outside of them


@dataclass
class Block:
    """One call of a block: what it was given and what it gave."""

    module: nn.Module
    args: tuple
    kwargs: dict[str, Any]
    before: int  # attention maps seen before it
    maps: int = 0  # attention maps seen in it
    output: torch.Tensor = field(default_factory=lambda: torch.empty(0))


@dataclass
class Call:
    """What one forward pass should record or change; lives in a context variable while it runs."""

    positions: list[torch.Tensor] | None = None  # per stream [b t]: original positions of the tokens
    record: frozenset[str] = frozenset()  # of {"attention", "softmaxes", "embeddings", "crossing", "blocks"}
    replace: list[torch.Tensor | None] | None = None  # per stream [b t d]: word embeddings to use instead
    present: list[torch.Tensor | None] | None = None  # per stream [b t]: False makes the word embedding zero
    rows: torch.Tensor | None = None  # [b m]: the only rows that the LM head computes
    packed: Any = None  # nodes of a trie: each token attends to its own ancestors (packed.py)
    tail: torch.Tensor | None = None  # [n 1 d]: hidden states from which the model goes on behind its blocks
    heads: torch.Tensor | None = None  # [l h]: factor of each attention head, counted over all maps
    view: Any = None  # what runs
    maps: list[Seen] = field(default_factory=list)
    crossing: list[list[torch.Tensor]] = field(default_factory=list)  # keys and values of each cross-attention
    blocks: list[Block] = field(default_factory=list)
    leaves: list[torch.Tensor] = field(default_factory=list)  # recorded word embeddings, per stream
    blocked: bool = False  # some attention row may see nothing
    block: int = -1  # the block that runs, or ran last
    layer: int = 0  # attention calls so far
    stream: int = 0  # embedding calls so far


_call: ContextVar[Call | None] = ContextVar("raison_call", default=None)


def current() -> Call | None:
    """The call that runs in this context, if any."""
    return _call.get()


@contextmanager
def running(call: Call) -> Iterator[Call]:
    """Make `call` the current one, around every pass that a model runs; who waits for it may end it here."""
    progress.check()
    token = _call.set(call)
    try:
        yield call
    finally:
        _call.reset(token)


class Softmaxes(Products):
    """Records the weights of every attention as a map: for families whose attention is not an interface."""

    def __init__(self, call: Call):
        super().__init__()
        self.call = call

    def other(self, name: str, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        result = func(*args, **kwargs)
        if name == "softmax" and isinstance(result, torch.Tensor) and result.dim() == 4:
            self.call.maps.append(Seen("self", result, self.call.block))
        return result


def attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The family's own eager attention, watched.

    The weights are never recomputed here: soft caps, sinks and biases are the family's business. Long texts that
    nobody looks into take the fused kernel, if that is what the user's model does. Where something is to change (a head
    switched off, a row that may see nothing), the weights change just before the family's own product with the values,
    so that what it does behind that product stays as it is.
    """
    call = _call.get()
    if call is not None and call.packed is not None:
        return call.packed.attend(eager_of(type(module)), module, query, key, value, attention_mask, **kwargs)
    if call is not None and fusible(module, call, key):
        call.layer += 1
        return fused_attention()(module, query, key, value, attention_mask, **kwargs)
    if call is not None and "crossing" in call.record and getattr(module, "raison_kind", "") == "cross":
        key, value = key.view_as(key), value.view_as(value)  # tensors of their own, met by all that crosses here
        call.crossing.append([key, value])
    eager = eager_of(type(module))
    if call is None:
        return eager(module, query, key, value, attention_mask, **kwargs)
    index, call.layer = call.layer, call.layer + 1
    factors = None if call.heads is None else call.heads[index]
    nothing = rows_that_see_nothing(attention_mask) if call.blocked and attention_mask is not None else None
    if factors is None and nothing is None:
        output, weights = eager(module, query, key, value, attention_mask, **kwargs)
    else:
        with Reweighted(factors, nothing) as watch:
            output, _ = eager(module, query, key, value, attention_mask, **kwargs)
        weights = watch.weights
        if weights is None:
            raise Unsupported(
                f"{type(module).__name__} multiplies its values in a way of its own, so none can be hidden."
            )
    if "attention" in call.record:
        call.maps.append(Seen(getattr(module, "raison_kind", "self"), weights, call.block))
    return output, weights


def rows_that_see_nothing(mask: torch.Tensor) -> torch.Tensor:
    """[b 1 s 1] of an additive mask [b 1 s t]: True where every key is hidden."""
    return (mask <= torch.finfo(mask.dtype).min / 2).all(-1, keepdim=True)


class Reweighted(Products):
    """Runs one attention with other weights: zero in some rows, scaled in each head."""

    def __init__(self, factors: torch.Tensor | None, nothing: torch.Tensor | None):
        super().__init__()
        self.factors = factors  # [h]
        self.nothing = nothing  # [b 1 s 1]
        self.weights: torch.Tensor | None = None  # [b h s t] as they were multiplied

    def product(self, mark: Mark, weights: torch.Tensor, values: torch.Tensor, multiply: Any) -> torch.Tensor:
        if self.nothing is not None:
            weights = weights.masked_fill(self.nothing, 0.0)
        if self.factors is not None:
            weights = weights * self.factors.to(weights)[None, :, None, None]
        self.weights = weights
        return super().product(mark, weights, values, multiply)


def fusible(module: nn.Module, call: Call, key: torch.Tensor) -> bool:
    """Long texts that nobody looks into run as the user's model runs them; short ones cost the same either way."""
    long = getattr(module, "raison_fused", False) and key.shape[2] >= LONG
    return long and not (call.blocked or call.record or call.heads is not None or torch.is_grad_enabled())


def fused_attention() -> Any:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    return ALL_ATTENTION_FUNCTIONS["sdpa"]


def eager_of(kind: type) -> Any:
    """The eager attention function of the file that defines an attention class."""
    for parent in kind.__mro__:
        function = getattr(sys.modules.get(parent.__module__), "eager_attention_forward", None)
        if function is not None:
            return function
    raise Unsupported(f"{kind.__name__} has no eager attention, so raison can't look inside this model.")


def register() -> None:
    """Make raison's attention and its mask known to transformers (both, or the mask would be dropped)."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    from raison.models.attention.masks import attention_mask

    ALL_ATTENTION_FUNCTIONS.register(NAME, attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register(NAME, attention_mask)


@torch.inference_mode(False)  # else the aliases could never be differentiated
def clone(model: nn.Module) -> Any:
    """A structural copy: own modules, configs and flags; frozen aliases of the same weights."""
    memo: dict[int, Any] = {}
    for parameter in model.parameters():
        memo[id(parameter)] = nn.Parameter(alias(parameter), requires_grad=False)
    for buffer in model.buffers():
        memo[id(buffer)] = alias(buffer) if buffer.is_inference() else buffer
    for value in computed_weights(model):
        memo[id(value)] = alias(value)
    try:
        copied = copy.deepcopy(model, memo)
    except Exception as error:
        raise ModelError(
            f"This model can't be viewed ({type(error).__name__}: {error}): pass the plain model."
        ) from error
    if hasattr(copied, "_hf_hook"):  # accelerate would put copies of hidden states, without gradients, in their place
        vars(copied).pop("forward", None)
    return copied.eval()


def alias(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as a tensor that can take part in a backward pass; one made in inference mode itself can't."""
    if not tensor.is_inference():
        return tensor.detach()
    empty = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return empty.set_(tensor.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())


def computed_weights(model: nn.Module) -> Iterator[torch.Tensor]:
    """Weights that a hook computes before each pass, as pruning does: plain attributes, which can't be copied."""
    for module in model.modules():
        for value in vars(module).values():
            if isinstance(value, torch.Tensor) and (value.grad_fn is not None or value.is_inference()):
                yield value


def configure(model: Any, implementation: str | None) -> None:
    """Set the attention of a clone (None: as it is), in every config that its modules hold."""
    configs = {id(m.config): m.config for m in model.modules() if hasattr(m, "config")}
    for config in configs.values():
        if implementation is not None:
            config._attn_implementation = implementation
        config.return_dict = True


def bare(model: nn.Module, implementation: str | None = "eager") -> Any:
    """An untapped clone with eager attention, or the user's own (None): what the load probe compares a view with."""
    copied = clone(model)
    configure(copied, implementation)
    return copied


def view_of(model: nn.Module, prepare: Any = None) -> Any:
    """A view of `model`: tapped attention, hooks on its word embeddings and on its LM head."""
    register()
    copied = clone(model)
    fused = getattr(copied.config, "_attn_implementation", None) == "sdpa"
    configure(copied, NAME)
    tables = word_tables(copied)
    for name, module in copied.named_modules():
        if isinstance(module, nn.Embedding) and module.weight.data_ptr() in tables:
            module.register_forward_hook(embed)
        if type(module).__module__ == "transformers.activations":  # some are several functions; rules want one
            module.forward = partial(activation, module.forward)
        if outermost(name, copied):
            module.register_forward_pre_hook(enter, with_kwargs=True)
            module.register_forward_hook(leave)
        module.raison_kind = kind_of(name, copied)
        module.raison_fused = fused
    head = copied.get_output_embeddings()
    if head is not None:
        head.register_forward_pre_hook(only_rows)
    if prepare is not None:
        prepare(copied)
    return copied


def word_tables(model: Any) -> set[int]:
    """Addresses of the word embeddings: one table, or the encoder's and the decoder's own."""
    parts = [model]
    if getattr(model.config, "is_encoder_decoder", False):
        parts += [getattr(model, name)() for name in ("get_encoder", "get_decoder") if hasattr(model, name)]
    found = [part.get_input_embeddings() for part in parts if hasattr(part, "get_input_embeddings")]
    return {table.weight.data_ptr() for table in found if isinstance(table, nn.Embedding)}


def kind_of(name: str, model: Any) -> str:
    """Which map an attention module of this path gives: self, or encoder, decoder, cross."""
    if not getattr(model.config, "is_encoder_decoder", False):
        return "self"
    path = name.split(".")
    if any(part in ("encoder_attn", "EncDecAttention", "crossattention", "cross_attn") for part in path):
        return "cross"
    return "decoder" if "decoder" in path else "encoder"


def outermost(name: str, model: nn.Module) -> bool:
    """Whether a module is an element of a module list that stands in no other: blocks are."""
    path = name.split(".")
    lists = [k for k in range(1, len(path)) if isinstance(model.get_submodule(".".join(path[:k])), nn.ModuleList)]
    return bool(lists) and lists[0] == len(path) - 1


def enter(module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
    """Hook before a block: count it, and keep what it is given for those who want to run it again."""
    call = _call.get()
    if call is None:
        return
    call.block += 1
    if "blocks" in call.record:
        call.blocks.append(Block(module, args, kwargs, len(call.maps)))


def leave(module: nn.Module, args: tuple, output: Any) -> None:
    """Hook behind a block."""
    call = _call.get()
    if call is not None and "blocks" in call.record:
        block = call.blocks[-1]
        block.output = output if isinstance(output, torch.Tensor) else output[0]
        block.maps = len(call.maps) - block.before


def embed(module: nn.Module, args: tuple, output: torch.Tensor) -> torch.Tensor | None:
    """Hook on the word table: replace, blank or record the embeddings of the running call."""
    call = _call.get()
    if call is None:
        return None
    index, call.stream = call.stream, call.stream + 1
    replacement = call.replace[index] if call.replace is not None else None
    if replacement is not None:
        output = replacement.to(output)
    present = call.present[index] if call.present is not None else None
    if present is not None:
        output = output * present[..., None].to(output)
    if "embeddings" in call.record:
        output = output.detach().requires_grad_(True)
        call.leaves.append(output)
    return output


def only_rows(module: nn.Module, args: tuple) -> tuple | None:
    """Hook on the LM head: compute the vocabulary only where somebody reads it."""
    call = _call.get()
    if call is None or call.rows is None:
        return None
    hidden = args[0]  # [b t d]
    index = call.rows.to(hidden.device)[..., None].expand(-1, -1, hidden.shape[-1])
    return (hidden.gather(1, index), *args[1:])


def fingerprint(model: nn.Module) -> tuple:
    """Where the weights live and how the modules are set; a view is made anew when either has changed.

    Weights changed in place need nothing, the view shares them. Moved tensors (`.to`, resized embeddings) and
    switched settings (another adapter, a scale, a config) are not shared, so they are looked at.
    """
    tensors = [*model.parameters(), *model.buffers()]
    places = tuple((id(t), t.data_ptr(), t.device, t.dtype, t.shape) for t in tensors)
    modules = list(model.modules())
    settings = tuple((id(m), hooks(m), tuple(simple(vars(m)))) for m in modules)
    configs = {id(m.config): m.config for m in modules if hasattr(m, "config")}
    return places, settings, tuple((key, repr(sorted(simple(vars(c))))) for key, c in configs.items())


def hooks(module: nn.Module) -> tuple:
    """The functions that run with a module: a view copies them when it is made."""
    return tuple(id(h) for table in (module._forward_pre_hooks, module._forward_hooks) for h in table.values())


def simple(attributes: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Settings of an object that are plain values; the training flag does not matter to a view."""
    for name, value in attributes.items():
        short = isinstance(value, (int, float, str)) or (isinstance(value, (tuple, list, dict)) and len(value) < 50)
        if isinstance(value, (tuple, list)) and any(isinstance(item, torch.Tensor) for item in value):
            continue  # an LSTM's list of its own weights: they are compared as tensors
        if short and name != "training" and name not in PRIVATE:
            yield name, repr(value)
