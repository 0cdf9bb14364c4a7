"""Whether a view still fits its model."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import torch
from torch import nn

__all__ = ["view_fingerprint"]

# what torch keeps in a module, compared as tensors and modules or not at all
PRIVATE = frozenset(vars(nn.Module())) - {"training"}
SHORT = 50  # items of a list or dictionary that is compared


def view_fingerprint(model: nn.Module) -> tuple[Hashable, ...]:
    """Where the weights live and how the modules are set; a view is made anew when either has changed.

    Weights changed in place need nothing, the view shares them. Moved tensors (`.to`, resized embeddings) and
    switched settings (another adapter, a scale, a config) are not shared, so they are looked at.
    """
    tensors = [*model.parameters(), *model.buffers()]
    places = tuple((id(t), t.data_ptr(), t.device, t.dtype, t.shape) for t in tensors)
    modules = list(model.modules())
    settings = tuple(
        (id(module), hook_ids(module), plain_settings(vars(module))) for module in modules
    )
    configs = {id(module.config): module.config for module in modules if hasattr(module, "config")}
    config_settings = tuple(
        (key, tuple(sorted(plain_settings(vars(config))))) for key, config in configs.items()
    )
    return places, settings, config_settings


def hook_ids(module: nn.Module) -> tuple[int, ...]:
    """The functions that run with a module: a view copies them when it is made."""
    hooks = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
    return tuple(id(hook) for hook in hooks)


def plain_settings(attributes: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Settings of an object that are plain values; the training flag does not matter to a view."""
    settings = []
    for name, value in attributes.items():
        if name != "training" and name not in PRIVATE and is_plain(value):
            settings.append((name, repr(value)))
    return tuple(settings)


def is_plain(value: object) -> bool:
    """Whether a value is compared: a number, a text, or a short collection."""
    if isinstance(value, (int, float, str)):
        return True
    if not isinstance(value, (tuple, list, dict)) or len(value) >= SHORT:
        return False
    # an LSTM's list of its own weights: they are compared as tensors
    return isinstance(value, dict) or not any(isinstance(item, torch.Tensor) for item in value)
