"""Parameters of frozen dataclasses: checks of their values, and which of them differ from the defaults.

Methods, metrics and trainings are such dataclasses; their parameters come from a spec, a file or a command line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, TypeVar

from raison.core.errors import InputError
from raison.core.registry import suggest_name
from raison.core.spec import SpecValue

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "changed_parameters",
    "check_choice",
    "check_in_range",
    "check_integer",
    "dataclass_from_settings",
]

S = TypeVar("S", bound="DataclassInstance")


def check_integer(name: str, value: object, least: int, most: int | None = None) -> None:
    """Refuse a parameter that is not a whole number from `least` up (to `most`)."""
    highest = math.inf if most is None else most
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= highest:
        return

    reach = f"{least} to {most}"
    if most is None:
        reach = f"{least} up"
    raise InputError(f"{name} is a whole number from {reach}, not {value}.")


def check_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    """Refuse a parameter that is none of the words it may be."""
    if value in known:
        return
    *others, last = known
    raise InputError(f"{name} is {', '.join(others)} or {last}, not {value!r}.")


def check_in_range(name: str, value: object, low: float, high: float = math.inf) -> None:
    """Refuse a parameter that is not a number above `low` and up to `high`."""
    number = math.nan
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = value
    if low < number <= high and not math.isinf(number):
        return

    top = ""
    if not math.isinf(high):
        top = f" and at most {high:g}"
    raise InputError(f"{name} is a number above {low:g}{top}, not {value}.")


def changed_parameters(settings: DataclassInstance) -> dict[str, SpecValue]:
    """The parameters of a frozen dataclass that are not at their defaults."""
    changed = {}
    for item in fields(settings):
        value = getattr(settings, item.name)
        if value != item.default:
            changed[item.name] = value
    return changed


def dataclass_from_settings(kind: type[S], given: Mapping[str, object], where: str) -> S:
    """A dataclass from settings by name, as they stand in a file or on a command line.

    A name that it does not have, or one that it needs and is not given, is refused in a sentence.
    """
    parameters = fields(kind)
    known = [item.name for item in parameters]
    for name in given:
        if name not in known:
            hint = suggest_name(name, known)
            takes = ", ".join(known)
            raise InputError(f"{where} has no setting {name!r}.{hint} It takes {takes}.")
    for item in parameters:
        has_default = item.default is not MISSING or item.default_factory is not MISSING
        if item.name not in given and not has_default:
            raise InputError(f'{where} names no {item.name}: add {item.name} = "…".')
    try:
        return kind(**given)
    except TypeError as error:
        raise InputError(f"{where} can't be used ({error}).") from None
