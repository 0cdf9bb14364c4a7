"""A model with moved word embeddings or shuffled weights, which shares the rest and leaves the user's model alone."""

from __future__ import annotations

import zlib
from collections.abc import Collection

import torch
from torch import nn

from raison.models.attention.view import clone_of, word_tables_of_view
from raison.models.protocol import InspectableModel

__all__ = ["with_moved_embeddings", "with_shuffled_weights"]


def with_moved_embeddings(
    model: InspectableModel, ids: torch.Tensor, by: torch.Tensor
) -> InspectableModel:
    """The word embeddings of `ids` [k] moved `by` [k d]; an output layer that is tied to them stays where it is."""
    hf = clone_of(model.hf)
    tables = word_tables_of_view(hf)
    for module in hf.modules():
        if isinstance(module, nn.Embedding) and module.weight.data_ptr() in tables:
            weight = module.weight.detach().clone()
            weight[ids] += by.to(weight)
            module.weight = nn.Parameter(weight, requires_grad=False)
    return model.with_weights(hf)


def with_shuffled_weights(
    model: InspectableModel, chosen: Collection[str], seed: int
) -> InspectableModel:
    """The entries of every chosen weight in random places: as large as before, and of no use.

    Weights that are tied stay tied. A vector of equal entries (a fresh norm) can't be told from its shuffle.
    """
    hf = clone_of(model.hf)
    fresh: dict[int, nn.Parameter] = {}
    for name, parameter in hf.named_parameters():
        if name in chosen:
            # by its name, so that more weights chosen means the same ones shuffled alike, and others too
            seed_of_name = seed * 2**32 + zlib.crc32(name.encode())
            generator = torch.Generator().manual_seed(seed_of_name)
            order = torch.randperm(parameter.numel(), generator=generator)
            flat = parameter.detach().reshape(-1)
            mixed = flat[order.to(parameter.device)].reshape(parameter.shape)
            fresh[id(parameter)] = nn.Parameter(mixed, requires_grad=False)
    for module in hf.modules():
        for name, value in list(module._parameters.items()):
            if value is not None and id(value) in fresh:
                setattr(module, name, fresh[id(value)])
    return model.with_weights(hf)
