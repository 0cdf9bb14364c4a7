"""Families: the facts about model architectures, one small file each.

Most families need none: what a model does with positions, masks and attention is learned from its own
functions. A file here states the exceptions, and names the family for the tables.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from raison.core.registry import families

__all__ = ["Family", "family_of", "register_family"]


@dataclass(frozen=True)
class Family:
    """What raison must know about an architecture that its config and functions do not say."""

    name: str
    model_types: tuple[str, ...]  # of transformers configs
    # argument | module | relative | none: how original positions reach the model
    positions: str = "argument"
    offset: Callable[[Any], int] = lambda config: 0  # what position 0 is called
    # tokens from which it attends in another way, if not in the config
    reach: Callable[[Any], int] = lambda config: 0
    prepare: Callable[[Any], None] | None = None  # instance-level hooks on a fresh view
    note: str = ""  # one sentence for the generated table


def register_family(entry: Family) -> Family:
    """Register a family under its name."""
    families.register(entry.name)(entry)
    return entry


def family_of(model: Any) -> Family:
    """The family of a model; an unknown one is described by the signature of its forward alone."""
    model_type = getattr(model.config, "model_type", "") or type(model).__name__.lower()
    for name in families:
        known: Family = families[name]
        if model_type in known.model_types:
            return known
    takes = "position_ids" in inspect.signature(model.forward).parameters
    return Family(
        model_type,
        (model_type,),
        positions="argument" if takes else "none",
        note="not in the tables",
    )
