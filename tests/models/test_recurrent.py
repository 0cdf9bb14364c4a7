"""A recurrent network over the tokens that are present."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from raison.models.recurrent import over_present


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_fast_lstm_is_torchs_own_over_packed_rows(layers):
    torch.manual_seed(0)
    network = torch.nn.LSTM(6, 4, layers, batch_first=True, bidirectional=True).double()
    there = torch.tensor(
        [[1, 1, 1, 1, 1], [1, 0, 1, 1, 0], [0, 0, 1, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]]
    ).bool()
    embedded = torch.randn(5, 5, 6, dtype=torch.float64, requires_grad=True)
    found = over_present(network, embedded, there)
    slope = torch.autograd.grad(found.square().sum(), [embedded, *network.parameters()])
    wanted = torch.zeros(5, 5, 8, dtype=torch.float64)
    for row, kept in enumerate(there):
        if kept.any():
            packed = pack_sequence([embedded[row, kept]])
            wanted[row, kept] = network(packed)[0].data
    assert torch.allclose(found, wanted, atol=1e-12)
    truth = torch.autograd.grad(wanted.square().sum(), [embedded, *network.parameters()])
    assert all(
        torch.allclose(one, other, atol=1e-10) for one, other in zip(slope, truth, strict=True)
    )
    single = over_present(network.float(), embedded.detach().float(), there)
    assert torch.allclose(single.double(), wanted, atol=1e-6)
