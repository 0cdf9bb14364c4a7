"""Entropy and divergence of attentions (JSD), and distance of two answers (TVD), with slopes for adversaries."""

from __future__ import annotations

import torch

__all__ = ["entropy", "jsd", "tvd"]

TINY = 1e-30


def jsd(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """[..] Jensen-Shannon divergence in nats over the last axis; weights of 0 count as 0, and have finite slopes."""
    return entropy((first + second) / 2) - (entropy(first) + entropy(second)) / 2


def entropy(weights: torch.Tensor) -> torch.Tensor:
    """[…] the entropy of weights [… t] that add up to 1, in nats."""
    return -(weights * weights.clamp(min=TINY).log()).sum(-1)


def tvd(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """[..] ½ Σ |p − q| over classes."""
    return (first - second).abs().sum(-1) / 2
