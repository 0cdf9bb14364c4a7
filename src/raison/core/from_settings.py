"""A frozen record from settings by name, as they stand in a file or on a command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, TypeVar

from raison.core.errors import InputError
from raison.core.registry import suggest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["filled"]

S = TypeVar("S", bound="DataclassInstance")


def filled(record: type[S], given: Mapping[str, object], where: str) -> S:
    """The record; a name that it does not have, or one that it needs and is not given, is refused in a sentence."""
    settings = fields(record)
    known = [item.name for item in settings]
    for name in given:
        if name not in known:
            raise InputError(
                f"{where} has no setting {name!r}.{suggest(name, known)} It takes {', '.join(known)}."
            )
    for item in settings:
        if item.name not in given and item.default is MISSING and item.default_factory is MISSING:
            raise InputError(f'{where} names no {item.name}: add {item.name} = "…".')
    try:
        return record(**given)
    except TypeError as error:
        raise InputError(f"{where} can't be used ({error}).") from None
