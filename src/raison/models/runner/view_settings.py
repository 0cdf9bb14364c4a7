"""What a forward pass may change in a model besides numbers, and how to put it back.

Some families change themselves while they run: BigBird replaces its attention modules once a text is short, dynamic
rotary embeddings keep the frequencies of the longest text so far. Then an answer would depend on what was asked before.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

__all__ = ["Settings", "settle"]

ABSENT = object()


class Settings:
    """The attributes, submodules, buffers and configs of a model as they are now.

    Names that begin with an underscore are left out, since transformers notes there what it has installed already; and
    tensors that are plain attributes, since pruning computes them before every pass.
    """

    def __init__(self, model: nn.Module):
        self.changes = 0  # how often something had to be put back
        self._tables = [(table, len(table), dict(public(table))) for table in tables_of(model)]
        self._entries = [
            (table, name, value)
            for table, _, saved in self._tables
            for name, value in saved.items()
        ]

    def changed(self) -> list[str]:
        """Names of what is no longer as it was."""
        names = [
            name for table, name, value in self._entries if table.get(name, ABSENT) is not value
        ]
        for table, size, saved in self._tables:
            if len(table) != size:
                names += [name for name, _ in public(table) if name not in saved]
        return names

    def restore(self) -> None:
        """Put everything back."""
        if not self.changed():
            return
        self.changes += 1
        for table, _, saved in self._tables:
            for name in [name for name, _ in public(table) if name not in saved]:
                del table[name]
            table.update(saved)


def tables_of(model: nn.Module) -> Iterator[dict[str, Any]]:
    """The dictionaries in which the modules of a model and their configs keep what they are."""
    configs: dict[int, Any] = {}
    for module in model.modules():
        yield vars(module)
        yield from (module._modules, module._buffers, module._parameters)
        config = getattr(module, "config", None)
        if hasattr(config, "__dict__"):
            configs[id(config)] = config
    yield from (vars(config) for config in configs.values())


def public(table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The entries of a table that count."""
    attributes = "_modules" in table  # of a module, beside its tables of buffers and parameters
    for name, value in table.items():
        computed = attributes and isinstance(value, torch.Tensor)
        if not name.startswith("_") and not computed:
            yield name, value


def settle(model: nn.Module, one_at_a_time: bool = False) -> Settings:
    """Let every pass of a model begin with the settings that it has now.

    `one_at_a_time`: for a model that is known to change itself, so that no thread meets the changes of another.
    """
    turn = threading.RLock()
    settings = Settings(model)

    def enter(*_: Any) -> None:
        if one_at_a_time:
            turn.acquire()

    def leave(*_: Any) -> None:
        settings.restore()
        if one_at_a_time:
            turn.release()

    model.register_forward_pre_hook(enter, prepend=True)
    model.register_forward_hook(leave, always_call=True)
    return settings
