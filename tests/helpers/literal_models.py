"""Tiny models that the oracles of attribution are tried on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raison.testing.tiny import tiny_hf

IDS = [1, 17, 60, 33, 90, 41, 2]


TASKS = {"bert": "classification", "gpt2": "causal"}


LABEL = {"bert": 1, "gpt2": 77}


both = pytest.mark.parametrize("family", TASKS)


def opened(family, seed=0):
    """A tiny model whose norms have gains and shifts of their own."""
    hf, _ = tiny_hf(family, TASKS[family], seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in hf.named_parameters():
            if "LayerNorm" in name or ".ln_" in name:
                noise = torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
                weight.copy_(0.3 * noise + (1.0 if name.endswith("weight") else 0.0))
    return hf


def near(a, b, tolerance=1e-9):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    assert np.abs(a - b).max() <= tolerance * max(1.0, np.abs(b).max()), np.abs(a - b).max()
