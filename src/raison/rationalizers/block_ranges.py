"""A stretch of the blocks of any encoder, run by the encoder's own code.

A shell is a shallow copy of the encoder, made for one call, whose list holds only the wished blocks: embeddings, masks,
rotary angles and the final norm stay the family's business, and no modelling file is copied. Each block stands behind a
`Gate`, which may put other states in the place of those that arrive, and keeps what comes and goes. Nothing of the
encoder is changed, so threads can't meet.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from raison.core.errors import Unsupported

__all__ = ["Stretch", "blocks_of", "normed", "placeless", "stretch"]

TURNED = 40  # tokens that are turned to see whether places matter


def blocks_of(encoder: nn.Module, name: str = "") -> tuple[str, nn.ModuleList]:
    """The path of the list of an encoder's blocks, and the list."""
    depth = getattr(encoder.config, "num_hidden_layers", None)
    inner: list[str] = []
    for path, module in encoder.named_modules():
        if isinstance(module, nn.ModuleList) and not any(path.startswith(f"{outer}.") for outer in inner):
            inner.append(path)
            if len(module) == depth and depth > 1:
                return path, module
    called = name or type(encoder).__name__
    if getattr(encoder.config, "is_decoder", False) or getattr(encoder.config, "is_encoder_decoder", False):
        raise Unsupported(f"{called} is no encoder of BERT's kind, so it can't be split: use one such as minilm.")
    raise Unsupported(
        f"{called} has no list of {depth} blocks of its own, so it can't be split into generator and predictor: use an "
        "encoder such as BERT, RoBERTa, DistilBERT, ELECTRA or ModernBERT."
    )


@dataclass
class Stretch:
    """What a stretch of blocks was given and gave."""

    entered: torch.Tensor = field(default_factory=lambda: torch.empty(0))  # [b t d] what the first block was given
    left: list[torch.Tensor] = field(default_factory=list)  # of each block
    output: torch.Tensor = field(default_factory=lambda: torch.empty(0))  # [b t d] behind the encoder's final norm


class Gate(nn.Module):
    """A block of the shell."""

    def __init__(self, block: nn.Module, seen: Stretch, states: torch.Tensor | None, factor: torch.Tensor | None):
        super().__init__()
        self.block, self.seen, self.states, self.factor = block, seen, states, factor

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:  # some encoders ask a block about itself (its kind of attention)
            return getattr(super().__getattr__("block"), name)

    def forward(self, hidden_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        states = hidden_states if self.states is None else self.states
        if not self.seen.left:
            self.seen.entered = states
        output = self.block(states if self.factor is None else states * self.factor[..., None], *args, **kwargs)
        self.seen.left.append(output if isinstance(output, torch.Tensor) else output[0])
        return output


def stretch(
    encoder: nn.Module,
    first: int,
    last: int,
    inputs: dict[str, Any],
    *,
    states: torch.Tensor | None = None,
    factors: Sequence[torch.Tensor | None] | None = None,
) -> Stretch:
    """Run blocks first … last − 1. `inputs` are the encoder's arguments; `states` [b t d] enter in the place of the
    embeddings, which need not be computed then; `factors` [b t], one for each block, scale what it is given."""
    path, blocks = blocks_of(encoder)
    seen = Stretch()
    gates = []
    for number in range(first, last):
        factor = factors[number - first] if factors is not None else None
        gates.append(Gate(blocks[number], seen, states if number == first else None, factor))
    if states is not None:
        table: Any = encoder.get_input_embeddings()  # type: ignore[operator]
        blank = states.new_zeros(*states.shape[:2], table.weight.shape[1])
        inputs = {**{key: value for key, value in inputs.items() if key != "input_ids"}, "inputs_embeds": blank}
    seen.output = shell(encoder, path, gates)(**inputs).last_hidden_state
    return seen


class Through(nn.Module):
    """In the place of all blocks: gives what it was made with."""

    def __init__(self, states: Any, like: nn.Module):
        super().__init__()
        self.states, self.like = states, like

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("like"), name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.states


def normed(encoder: nn.Module, states: torch.Tensor, inputs: dict[str, Any]) -> torch.Tensor:
    """States from between two blocks as they would leave the encoder: behind its final norm, where it has one."""
    path, blocks = blocks_of(encoder)
    table: Any = encoder.get_input_embeddings()  # type: ignore[operator]
    blank = states.new_zeros(*states.shape[:2], table.weight.shape[1])
    given = {**{key: value for key, value in inputs.items() if key != "input_ids"}, "inputs_embeds": blank}
    for left in (states, (states,)):  # blocks of some families give a tuple
        found: torch.Tensor = shell(encoder, path, [Through(left, blocks[0])])(**given).last_hidden_state
        if found.shape == states.shape:
            return found
    raise Unsupported(f"States can't be put through {type(encoder).__name__}: use an encoder such as BERT.")


@torch.no_grad()
def placeless(encoder: nn.Module) -> bool:
    """Whether blocks know no places but those in the states, so that tokens can be moved together: it is tried.

    Rotary angles, relative positions and windows are told by places in the batch.
    """
    width = int(encoder.config.hidden_size)  # type: ignore[union-attr, arg-type]
    weight: Any = next(encoder.parameters())
    random = torch.Generator().manual_seed(0)
    states = torch.randn(1, TURNED, width, generator=random).to(weight)
    turned = torch.randperm(TURNED, generator=random).to(weight.device)
    seen = {"attention_mask": torch.ones(1, TURNED, dtype=torch.long, device=weight.device)}
    depth = len(blocks_of(encoder)[1])
    training = [module for module in encoder.modules() if module.training]
    encoder.eval()  # dropout is no place
    first, other = (stretch(encoder, 0, depth, seen, states=each).left[-1] for each in (states, states[:, turned]))
    for module in training:
        module.training = True
    return bool(torch.allclose(first[:, turned], other, rtol=1e-3, atol=1e-3))


def shell(encoder: nn.Module, path: str, gates: Sequence[nn.Module]) -> Any:
    """The encoder with other blocks: copies of the modules on the way to the list, everything else is shared."""
    *way, last = path.split(".")
    top = node = opened(encoder)
    for name in way:
        child = node._modules[name]
        assert child is not None
        node._modules[name] = node = opened(child)
    node._modules[last] = nn.ModuleList(gates)
    if "pooler" in top._modules:
        top._modules["pooler"] = None  # nobody reads it
    return top


def opened(module: nn.Module) -> nn.Module:
    made = copy.copy(module)
    made._modules = dict(module._modules)
    return made
