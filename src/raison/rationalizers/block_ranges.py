"""Runs a range of the blocks of any encoder by its own code, from states instead of words, and its final norm alone.

A shell is a shallow copy of the encoder, made for one call, whose list holds only the wished blocks: embeddings, masks,
rotary angles and the final norm stay the family's business, and no modelling file is copied. Each block stands behind a
`Gate`, which may put other states in the place of those that arrive, and keeps what comes and goes. Nothing of the
encoder is changed, so threads can't meet.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, cast

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

from raison.core.errors import Unsupported

__all__ = [
    "BlockStates",
    "Inputs",
    "apply_final_norm",
    "blocks_of_encoder",
    "ignores_positions",
    "is_decoder",
    "run_blocks",
]

TRIED_TOKENS = 40  # tokens that change places to see whether places matter

M = TypeVar("M", bound=nn.Module)
Inputs: TypeAlias = dict[str, torch.Tensor]  # arguments of an encoder
BlockOutput: TypeAlias = "torch.Tensor | tuple[torch.Tensor, ...]"  # as a family's blocks give it
Attribute: TypeAlias = Any  # of a block, whatever its kind


def blocks_of_encoder(encoder: PreTrainedModel, name: str = "") -> tuple[str, nn.ModuleList]:
    """The path of the list of an encoder's blocks, and the list."""
    depth = getattr(encoder.config, "num_hidden_layers", None)
    outer_lists: list[str] = []
    for path, module in encoder.named_modules():
        inside = any(path.startswith(f"{outer}.") for outer in outer_lists)
        if isinstance(module, nn.ModuleList) and not inside:
            outer_lists.append(path)
            if len(module) == depth and len(module) > 1:
                return path, module
    called = name or type(encoder).__name__
    if is_decoder(encoder.config):
        raise Unsupported(
            f"{called} is no encoder of BERT's kind, so it can't be split: use one such as minilm."
        )
    raise Unsupported(
        f"{called} has no list of {depth} blocks of its own, so it can't be split into generator and predictor: use an "
        "encoder such as BERT, RoBERTa, DistilBERT, ELECTRA or ModernBERT."
    )


def no_states() -> torch.Tensor:
    """In the place of states that are not there yet."""
    return torch.empty(0)


def is_decoder(config: PretrainedConfig) -> bool:
    """Whether a model of this config writes text."""
    decodes = getattr(config, "is_decoder", False)
    return bool(decodes or getattr(config, "is_encoder_decoder", False))


@dataclass
class BlockStates:
    """What a range of blocks was given and gave."""

    entered: torch.Tensor = field(default_factory=no_states)  # [b t d] given to the first block
    left: list[torch.Tensor] = field(default_factory=list)  # of each block
    output: torch.Tensor = field(default_factory=no_states)  # [b t d] behind the final norm


class StandIn(nn.Module):
    """In the place of a block: what an encoder asks the block about itself (its kind of attention) is the block's."""

    def __init__(self, block: nn.Module):
        super().__init__()
        self.block = block

    def __getattr__(self, name: str) -> Attribute:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("block"), name)


class Gate(StandIn):
    """Runs its block, on other states where there are some, and keeps what comes and goes."""

    def __init__(
        self,
        block: nn.Module,
        kept: BlockStates,
        states: torch.Tensor | None,
        factor: torch.Tensor | None,
    ):
        super().__init__(block)
        self.kept, self.states, self.factor = kept, states, factor

    def forward(self, hidden_states: torch.Tensor, *args: object, **kwargs: object) -> BlockOutput:
        states = hidden_states
        if self.states is not None:
            states = self.states
        if not self.kept.left:
            self.kept.entered = states
        if self.factor is not None:
            states = states * self.factor[..., None]
        output: BlockOutput = self.block(states, *args, **kwargs)
        if isinstance(output, torch.Tensor):
            self.kept.left.append(output)
        else:
            self.kept.left.append(output[0])
        return output


class Constant(StandIn):
    """In the place of all blocks: gives what it was made with."""

    def __init__(self, output: BlockOutput, block: nn.Module):
        super().__init__(block)
        self.output = output

    def forward(self, *args: object, **kwargs: object) -> BlockOutput:
        return self.output


def run_blocks(
    encoder: PreTrainedModel,
    first: int,
    last: int,
    inputs: Inputs,
    *,
    states: torch.Tensor | None = None,
    factors: Sequence[torch.Tensor | None] | None = None,
) -> BlockStates:
    """Run blocks first … last − 1. `inputs` are the encoder's arguments; `states` [b t d] enter in the place of the
    embeddings, which need not be computed then; `factors` [b t], one for each block, scale what it is given."""
    path, blocks = blocks_of_encoder(encoder)
    kept = BlockStates()
    if factors is None:
        factors = [None] * (last - first)
    gates: list[nn.Module] = []
    for block, factor in zip(blocks[first:last], factors, strict=True):
        entering = None if gates else states
        gates.append(Gate(block, kept, entering, factor))
    if states is not None:
        inputs = block_inputs_without_words(encoder, inputs, states)
    short_encoder = encoder_with_blocks(encoder, path, gates)
    kept.output = short_encoder(**inputs).last_hidden_state
    return kept


def apply_final_norm(
    encoder: PreTrainedModel, states: torch.Tensor, inputs: Inputs
) -> torch.Tensor:
    """States from between two blocks as they would leave the encoder: behind its final norm, where it has one."""
    path, blocks = blocks_of_encoder(encoder)
    arguments = block_inputs_without_words(encoder, inputs, states)
    for block_output in (states, (states,)):  # blocks of some families give a tuple
        constant = Constant(block_output, blocks[0])
        norm_alone = encoder_with_blocks(encoder, path, [constant])
        output: torch.Tensor = norm_alone(**arguments).last_hidden_state
        if output.shape == states.shape:
            return output
    raise Unsupported(
        f"States can't be put through {type(encoder).__name__}: use an encoder such as BERT."
    )


def block_inputs_without_words(
    encoder: PreTrainedModel, inputs: Inputs, states: torch.Tensor
) -> Inputs:
    """The arguments with blank embeddings in the place of words, since `states` enter instead."""
    width = cast(nn.Embedding, encoder.get_input_embeddings()).embedding_dim
    others = {name: tensor for name, tensor in inputs.items() if name != "input_ids"}
    return {**others, "inputs_embeds": states.new_zeros(*states.shape[:2], width)}


@torch.no_grad()
def ignores_positions(encoder: PreTrainedModel) -> bool:
    """Whether blocks know no places but those in the states, so that tokens can be moved together: it is tried.

    Rotary angles, relative positions and windows are told by places in the batch.
    """
    weight = next(encoder.parameters())
    random = torch.Generator().manual_seed(0)
    width = int(encoder.config.hidden_size)
    states = torch.randn(1, TRIED_TOKENS, width, generator=random).to(weight)
    order = torch.randperm(TRIED_TOKENS, generator=random).to(weight.device)
    mask = torch.ones(1, TRIED_TOKENS, dtype=torch.long, device=weight.device)
    inputs = {"attention_mask": mask}
    depth = len(blocks_of_encoder(encoder)[1])

    training = [module for module in encoder.modules() if module.training]
    encoder.eval()  # dropout is no place
    straight = run_blocks(encoder, 0, depth, inputs, states=states).left[-1]
    moved = run_blocks(encoder, 0, depth, inputs, states=states[:, order]).left[-1]
    for module in training:
        module.training = True
    return bool(torch.allclose(straight[:, order], moved, rtol=1e-3, atol=1e-3))


def encoder_with_blocks(
    encoder: PreTrainedModel, path: str, gates: Sequence[nn.Module]
) -> PreTrainedModel:
    """The encoder with other blocks: copies of the modules on the way to the list, everything else is shared."""
    *names, last = path.split(".")
    top = shallow_copy(encoder)
    node: nn.Module = top
    for name in names:
        child = shallow_copy(node.get_submodule(name))
        node._modules[name] = child
        node = child
    node._modules[last] = nn.ModuleList(gates)
    if "pooler" in top._modules:
        top._modules["pooler"] = None  # nobody reads it
    return top


def shallow_copy(module: M) -> M:
    """The same module with a table of submodules of its own."""
    copied = copy.copy(module)
    copied._modules = dict(module._modules)
    return copied
