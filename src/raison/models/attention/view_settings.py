"""What there is to a model besides its numbers (configs, hooks, tables): whether a view still has it all, and how
each pass gives it back.

A view is made anew when the user's model has other tensors or settings (`view_fingerprint`). And some families change
themselves while they run: BigBird replaces its attention modules once a text is short, dynamic rotary embeddings keep
the frequencies of the longest text so far. Then an answer would depend on what was asked before, so every pass begins
with the settings that the view was made with (`keep_settings`).
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

__all__ = ["ModelSettings", "configs_of", "keep_settings", "view_fingerprint"]

# what torch keeps in a module, compared as tensors and modules or not at all
PRIVATE = frozenset(vars(nn.Module())) - {"training"}
SHORT = 50  # items of a list or dictionary that is compared
ABSENT = object()

Table = dict[str, Any]  # the attributes of an object, by name


# -- whether a view still fits its model ---------------------------------------------------------------------


def view_fingerprint(model: nn.Module) -> tuple[Hashable, ...]:
    """Where the weights live and how the modules are set; a view is made anew when either has changed.

    Weights changed in place need nothing, the view shares them. Moved tensors (`.to`, resized embeddings) and
    switched settings (another adapter, a scale, a config) are not shared, so they are looked at.
    """
    facts: list[Hashable] = []
    for tensor in (*model.parameters(), *model.buffers()):
        place = tensor.data_ptr()
        facts.append((id(tensor), place, tensor.device, tensor.dtype, tensor.shape))
    modules = list(model.modules())
    for module in modules:
        facts.append((id(module), hook_ids(module), plain_settings(vars(module))))
    for config in configs_of(modules):
        settings = sorted(plain_settings(vars(config)))
        facts.append((id(config), tuple(settings)))
    return tuple(facts)


def configs_of(modules: Iterable[nn.Module]) -> list[PreTrainedConfig]:
    """The configs that some modules hold, each once."""
    configs: dict[int, PreTrainedConfig] = {}
    for module in modules:
        config: PreTrainedConfig | None = getattr(module, "config", None)
        if config is not None and hasattr(config, "__dict__"):
            configs[id(config)] = config
    return list(configs.values())


def hook_ids(module: nn.Module) -> tuple[int, ...]:
    """The functions that run with a module: a view copies them when it is made."""
    hooks = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
    return tuple(id(hook) for hook in hooks)


def plain_settings(attributes: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Settings of an object that are plain values; the training flag does not matter to a view."""
    settings = []
    for name, value in attributes.items():
        if name != "training" and name not in PRIVATE and is_plain_setting(value):
            settings.append((name, repr(value)))
    return tuple(settings)


def is_plain_setting(value: object) -> bool:
    """Whether a value is compared: a number, a text, or a short collection."""
    if isinstance(value, (int, float, str)):
        return True
    if not isinstance(value, (tuple, list, dict)) or len(value) >= SHORT:
        return False
    # an LSTM's list of its own weights: they are compared as tensors
    return isinstance(value, dict) or not any(isinstance(item, torch.Tensor) for item in value)


# -- what a pass may change, and how to put it back ----------------------------------------------------------


class ModelSettings:
    """The attributes, submodules, buffers and configs of a model as they are now.

    Names that begin with an underscore are left out, since transformers notes there what it has installed already; and
    tensors that are plain attributes, since pruning computes them before every pass.
    """

    def __init__(self, model: nn.Module):
        self.changes = 0  # how often something had to be put back
        self._tables: list[tuple[Table, int, Table]] = []  # as it is now, its size, what it held
        self._entries: list[tuple[Table, str, object]] = []
        for table in tables_of(model):
            saved = dict(public_entries_of_table(table))
            self._tables.append((table, len(table), saved))
            self._entries += [(table, name, value) for name, value in saved.items()]

    def changed(self) -> list[str]:
        """Names of what is no longer as it was."""
        names = [
            name for table, name, value in self._entries if table.get(name, ABSENT) is not value
        ]
        for table, size, saved in self._tables:
            if len(table) != size:
                names += new_names_in_table(table, saved)
        return names

    def restore(self) -> None:
        """Put everything back."""
        if not self.changed():
            return
        self.changes += 1
        for table, _, saved in self._tables:
            for name in new_names_in_table(table, saved):
                del table[name]
            table.update(saved)


def new_names_in_table(table: Table, saved: Table) -> list[str]:
    """Names of what has come into a table since it was saved."""
    return [name for name, _ in public_entries_of_table(table) if name not in saved]


def tables_of(model: nn.Module) -> Iterator[Table]:
    """The dictionaries in which the modules of a model and their configs keep what they are."""
    modules = list(model.modules())
    for module in modules:
        yield vars(module)
        yield from (module._modules, module._buffers, module._parameters)
    for config in configs_of(modules):
        yield vars(config)


def public_entries_of_table(table: Table) -> Iterator[tuple[str, object]]:
    """The entries of a table that count."""
    attributes = "_modules" in table  # of a module, beside its tables of buffers and parameters
    for name, value in table.items():
        computed = attributes and isinstance(value, torch.Tensor)
        if not name.startswith("_") and not computed:
            yield name, value


def keep_settings(model: nn.Module, one_at_a_time: bool = False) -> ModelSettings:
    """Let every pass of a model begin with the settings that it has now.

    `one_at_a_time`: for a model that is known to change itself, so that no thread meets the changes of another.
    """
    turn = threading.RLock()
    settings = ModelSettings(model)

    def enter(*_: object) -> None:
        if one_at_a_time:
            turn.acquire()

    def leave(*_: object) -> None:
        settings.restore()
        if one_at_a_time:
            turn.release()

    model.register_forward_pre_hook(enter, prepend=True)
    model.register_forward_hook(leave, always_call=True)
    return settings
