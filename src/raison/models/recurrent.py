"""States of a recurrent network over the tokens that are present."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

__all__ = ["over_present"]

# of a layer of torch's, in the order that torch.lstm wants
PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def over_present(network: nn.Module, embedded: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
    """[b t d] states of a recurrent network that reads the tokens that are there as if they were the whole text.

    Those tokens move together, run, and move back; a token that is not there has the state zero.
    """
    if bool(there.all()):
        states: torch.Tensor = network(embedded)[0]
        return states
    order = torch.argsort((~there).long(), dim=1, stable=True)  # those that are there first
    together = embedded.gather(1, order[..., None].expand_as(embedded))
    lengths = there.sum(1).clamp(min=1)
    if isinstance(network, nn.LSTM) and embedded.device.type == "cpu":
        states = states_of_lstm(network, together, lengths)
    else:
        packed = pack_padded_sequence(
            together, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(
            network(packed)[0], batch_first=True, total_length=embedded.shape[1]
        )

    places = order[..., None].expand(*order.shape, states.shape[-1])
    return torch.zeros_like(states).scatter(1, places, states) * there[..., None]


def states_of_lstm(network: nn.LSTM, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """States of a two-way LSTM over rows that are padded behind, without packing them.

    The way back reads each row from its own end. On a CPU torch has a fast LSTM for tensors and a slow one, step by
    step, for packed rows.
    """
    places = torch.arange(embedded.shape[1])
    ends = lengths[:, None]
    turned = torch.where(places < ends, ends - 1 - places, places)[..., None]  # its own inverse
    states = embedded
    for layer in range(network.num_layers):
        forward = run_recurrent_layer(network, f"l{layer}", states)
        backward = run_recurrent_layer(
            network, f"l{layer}_reverse", states.gather(1, turned.expand_as(states))
        )
        backward = backward.gather(1, turned.expand_as(backward))
        states = torch.cat([forward, backward], -1)
        if layer + 1 < network.num_layers:
            states = nn.functional.dropout(states, network.dropout, network.training)
    return states


def run_recurrent_layer(network: nn.LSTM, name: str, states: torch.Tensor) -> torch.Tensor:
    """[b t d] states of one layer in one direction."""
    weights: list[torch.Tensor] = [network.get_parameter(f"{part}_{name}") for part in PARTS]
    start = states.new_zeros(1, len(states), network.hidden_size)
    new_states, _, _ = torch.lstm(
        states,
        (start, start),
        weights,
        has_biases=True,
        num_layers=1,
        dropout=0.0,
        train=network.training,
        bidirectional=False,
        batch_first=True,
    )
    return new_states
