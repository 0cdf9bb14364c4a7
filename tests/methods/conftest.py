"""What tests of several methods share: a tiny model of each task."""

from __future__ import annotations

import pytest
import torch

from raison.models.load import load
from raison.testing import tiny_hf, tiny_model
from tests.helpers.compared_scores import TASKS


@pytest.fixture(scope="module", params=TASKS)
def model(request):
    """A tiny model whose norms have gains and shifts of their own: ones and zeros would hide mistakes."""
    tiny = tiny_model(request.param, TASKS[request.param])
    hf, _ = tiny_hf(request.param, TASKS[request.param])
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in hf.named_parameters():
            if "LayerNorm" in name or ".ln_" in name:
                noise = torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
                weight.copy_(0.3 * noise + (1.0 if name.endswith("weight") else 0.0))
    return load(hf, tiny.tokenizer)
