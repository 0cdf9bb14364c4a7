"""Settings: dataclass fields that are options of the command line too, and a record from settings by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, TypeVar

from raison.core.errors import InputError, suggest_name

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["SETTING", "Setting", "dataclass_from_settings", "setting"]

SETTING = "setting"  # under which a field's metadata holds what the command line says of it

T = TypeVar("T")
S = TypeVar("S", bound="DataclassInstance")


@dataclass(frozen=True)
class Setting:
    """What the command line says of a field that is one of its options."""

    help: str
    option: str  # its names, such as --freeze/--tune; empty: that of the field
    envvar: str | None
    derived: bool


def setting(
    default: T, help: str, *, option: str = "", envvar: str | None = None, derived: bool = False
) -> T:
    """A field of a dataclass that is an option of the command line as well, by the same name and default.

    A `derived` one follows from other settings where nobody chooses it, so the option has no default.
    """
    told = Setting(help=help, option=option, envvar=envvar, derived=derived)
    return field(default=default, metadata={SETTING: told})


def dataclass_from_settings(record: type[S], given: Mapping[str, object], where: str) -> S:
    """The record; a name that it does not have, or one that it needs and is not given, is refused in a sentence."""
    settings = fields(record)
    known = [item.name for item in settings]
    for name in given:
        if name not in known:
            hint = suggest_name(name, known)
            takes = ", ".join(known)
            raise InputError(f"{where} has no setting {name!r}.{hint} It takes {takes}.")
    for item in settings:
        has_default = item.default is not MISSING or item.default_factory is not MISSING
        if item.name not in given and not has_default:
            raise InputError(f'{where} names no {item.name}: add {item.name} = "…".')
    try:
        return record(**given)
    except TypeError as error:
        raise InputError(f"{where} can't be used ({error}).") from None
