"""A two-way GRU over word embeddings as the encoder of a rationalizer: RNP as Lei et al. (2016) made it."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, TypeAlias

import torch
from torch import nn

from raison.models.recurrent import over_present

__all__ = ["Encoder", "GRUEncoder"]

Encoder: TypeAlias = Any  # an encoder of transformers, or a GRUEncoder


class GRUEncoder(nn.Module):
    """Reads embeddings [b t d] of the tokens that are present; the word table belongs to the generator's own."""

    TYPE = "gru"

    def __init__(self, stored: Mapping[str, Any]):
        super().__init__()
        self.config = SimpleNamespace(**stored, to_dict=lambda: dict(stored))
        self.words = nn.Embedding(stored["vocab_size"], stored["embedding_size"])
        self.gru = nn.GRU(
            stored["embedding_size"],
            stored["hidden_size"] // 2,
            batch_first=True,
            bidirectional=True,
        )

    def get_input_embeddings(self) -> nn.Embedding:
        return self.words

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """[b t d] the embeddings of these tokens."""
        embeddings: torch.Tensor = self.words(ids)
        return embeddings

    def forward(self, embedded: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        return over_present(self.gru, embedded, present)
