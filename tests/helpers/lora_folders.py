"""Tiny models with LoRA adapters."""

import torch
from transformers import BertConfig

from raison.models.mean_pooled_bert import MeanPooledBert

IDS = torch.tensor([[1, 5, 9, 2], [1, 7, 2, 0]])


MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])


def tiny_bert():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=20,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=16,
        num_labels=2,
    )
    return MeanPooledBert(config).eval()
