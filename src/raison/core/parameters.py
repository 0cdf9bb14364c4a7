"""Parameters of frozen dataclasses: checks of their values, and which of them differ from the defaults.

Methods, metrics and trainings are such dataclasses; their parameters come from a spec, a file or a command line.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING

from raison.core.errors import InputError
from raison.core.spec import SpecValue

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "changed_parameters",
    "check_choice",
    "check_in_range",
    "check_integer",
    "check_not_negative",
]


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


def check_not_negative(name: str, value: float) -> None:
    """Refuse a parameter that is below zero, or no number."""
    if not value >= 0:
        raise InputError(f"{name} is a number from 0 up, not {value}.")


def changed_parameters(settings: DataclassInstance) -> dict[str, SpecValue]:
    """The parameters of a frozen dataclass that are not at their defaults."""
    changed = {}
    for item in fields(settings):
        value = getattr(settings, item.name)
        if value != item.default:
            changed[item.name] = value
    return changed
