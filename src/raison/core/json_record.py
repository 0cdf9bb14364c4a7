"""What every record is: frozen, validated, lossless in JSON, equal by content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from raison.core.errors import InputError

__all__ = ["JsonObject", "Record", "plain", "record", "records"]

JsonObject = dict[str, Any]  # an object of JSON, of any shape

R = TypeVar("R", bound="Record")


def record(kind: str, *, default: object = MISSING) -> Any:
    """A dataclass field that holds one record of the class named `kind`, or None where that is allowed."""
    return field(default=default, metadata={"record": kind})


def records(kind: str, *, default: object = MISSING) -> Any:
    """A dataclass field that holds a tuple of records of the class named `kind`."""
    return field(default=default, metadata={"records": kind})


@dataclass(frozen=True, eq=False)
class Record:
    """Lossless JSON and equality by content, from the dataclass fields alone."""

    kinds: ClassVar[dict[str, type[Record]]] = {}

    def __init_subclass__(cls) -> None:
        Record.kinds[cls.__name__] = cls

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            convert = item.metadata.get("convert")
            if convert is not None and value is not None:
                value = convert(value)
            elif isinstance(value, list):
                value = tuple(value)
            object.__setattr__(self, item.name, value)
        self.validate()

    def validate(self) -> None:
        """Raise `InputError` when the fields contradict each other."""

    def to_dict(self) -> JsonObject:
        """The record as JSON has it."""
        return {item.name: plain(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def from_dict(cls: type[R], data: Mapping[str, Any]) -> R:
        """The record that `to_dict` wrote; `InputError` where it is none of this kind."""
        known = {item.name: item for item in fields(cls)}
        if not isinstance(data, Mapping):
            raise InputError(
                f"This {cls.__name__} record is not an object with fields but {type(data).__name__}."
            )
        if data and not set(data) & set(known):
            raise InputError(
                f"This is no {cls.__name__} record: it has {', '.join(sorted(map(str, data))[:5])}."
            )
        unknown = set(data) - set(known)
        if unknown:
            raise InputError(
                f"This {cls.__name__} record has unknown fields ({', '.join(sorted(unknown))}): "
                "it was written by a newer raison; update raison to read it."
            )
        try:
            return cls(**{name: value_of_field(known[name], value) for name, value in data.items()})
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError(f"This is not a complete {cls.__name__} record: {error}.") from None

    def to_json(self) -> str:
        """The record as one line of JSON."""
        return self.written(self.to_dict(), allow_nan=False)

    def written(self, data: JsonObject, *, sort_keys: bool = False, allow_nan: bool = True) -> str:
        """The fields as JSON; `InputError` where a value is not of JSON's kinds."""
        try:
            return json.dumps(data, ensure_ascii=False, sort_keys=sort_keys, allow_nan=allow_nan)
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(
                f"This {type(self).__name__} holds what JSON can't ({error}): leave it out."
            ) from None

    @classmethod
    def from_json(cls: type[R], text: str) -> R:
        """The record that `to_json` wrote."""
        try:
            data = json.loads(text)
        except (
            ValueError,
            RecursionError,
        ) as error:  # a number may be too long, or it is nested too deep
            raise InputError(
                f"This is not JSON ({error}): write it with {cls.__name__}.to_json()."
            ) from None
        if not isinstance(data, dict):
            raise InputError(
                f"This JSON holds no {cls.__name__} record: write it with {cls.__name__}.to_json()."
            )
        return cls.from_dict(data)

    def identity(self) -> JsonObject:
        """The fields that make two records the same: all but those set apart, such as what a result cost."""
        apart = [item.name for item in fields(self) if item.metadata.get("apart")]
        return {name: value for name, value in self.to_dict().items() if name not in apart}

    def content(self) -> str:
        """A hash of the content: the identity that seeds and stores use."""
        text = self.written(self.identity(), sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def __eq__(self, other: object) -> bool:
        # not by the fields: Python takes 1, 1.0 and True for the same, and their hashes would differ
        return (
            isinstance(other, Record)
            and type(self) is type(other)
            and self.content() == other.content()
        )

    def __hash__(self) -> int:
        return hash(self.content())


def value_of_field(item: Field[Any], value: Any) -> Any:
    """The value of a field from its JSON: objects become records where the field holds some."""
    if value is None:
        return None
    if "records" in item.metadata:
        kind = Record.kinds[item.metadata["records"]]
        return tuple(kind.from_dict(each) for each in value)
    if "record" in item.metadata:
        return Record.kinds[item.metadata["record"]].from_dict(value)
    return value


def plain(value: Any) -> Any:
    """The JSON form of a field: arrays and tuples become lists, records become objects."""
    if isinstance(value, Record):
        return value.to_dict()
    # NumPy is not imported for this: settings are records too, and the command line has to start fast
    if type(value).__module__.partition(".")[0] == "numpy":
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return value
