"""States of a recurrent network over the tokens that are present."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

__all__ = ["over_present"]

PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")  # of a layer of torch's, in the order that torch.lstm wants


def over_present(network: nn.Module, embedded: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
    """[b t d] states of a recurrent network; a token that is not there does not exist: the others are read as if they
    were the whole text. They move together, run, and move back."""
    if bool(there.all()):
        states: torch.Tensor = network(embedded)[0]
        return states
    order = torch.argsort((~there).long(), dim=1, stable=True)  # those that are there first
    wide = order[..., None].expand_as(embedded)
    lengths = there.sum(1).clamp(min=1)
    if isinstance(network, nn.LSTM) and embedded.device.type == "cpu":
        together = both_ways(network, embedded.gather(1, wide), lengths)
    else:
        packed = pack_padded_sequence(embedded.gather(1, wide), lengths.cpu(), batch_first=True, enforce_sorted=False)
        together, _ = pad_packed_sequence(network(packed)[0], batch_first=True, total_length=embedded.shape[1])
    back = order[..., None].expand(*order.shape, together.shape[-1])
    return torch.zeros_like(together).scatter(1, back, together) * there[..., None]


def both_ways(network: nn.LSTM, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """States of a two-way LSTM over rows that are padded behind, without packing them: the way back reads each row
    from its own end. On a CPU torch has a fast LSTM for tensors and a slow one, step by step, for packed rows."""
    places = torch.arange(embedded.shape[1])
    ends = lengths[:, None]
    turned = torch.where(places < ends, ends - 1 - places, places)[..., None]  # its own inverse
    states = embedded
    for layer in range(network.num_layers):
        ways = []
        for way in ("", "_reverse"):
            weights = [getattr(network, f"{name}_l{layer}{way}") for name in PARTS]
            start = states.new_zeros(1, len(states), network.hidden_size)
            read = states.gather(1, turned.expand_as(states)) if way else states
            out = torch.lstm(read, (start, start), weights, True, 1, 0.0, network.training, False, True)[0]
            ways.append(out.gather(1, turned.expand_as(out)) if way else out)
        states = torch.cat(ways, -1)
        if layer + 1 < network.num_layers:
            states = nn.functional.dropout(states, network.dropout, network.training)
    return states
