"""Record, the base class of all results: frozen, validated, lossless in JSON, equal by content.

`record_field`, `records_field` and `json_field` say what a field of a record holds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from raison.core.errors import InputError

__all__ = [
    "JsonObject",
    "Record",
    "json_field",
    "record_field",
    "records_field",
    "to_json_value",
]

JsonObject = dict[str, Any]  # an object of JSON, of any shape

R = TypeVar("R", bound="Record")


def record_field(kind: str, *, default: object = MISSING) -> Any:
    """A dataclass field that holds one record of the class named `kind`, or None where that is allowed."""
    return field(default=default, metadata={"record": kind})


def records_field(kind: str, *, default: object = MISSING) -> Any:
    """A dataclass field that holds a tuple of records of the class named `kind`."""
    return field(default=default, metadata={"records": kind})


def json_field(*, apart: bool = False, required: bool = False) -> Any:
    """A dataclass field that holds an object of JSON, by default an empty one; what the caller passes is copied.

    With `apart` it is no part of the record's identity.
    """
    metadata = {"json": True, "apart": apart}
    if required:
        return field(metadata=metadata)
    return field(default_factory=dict, metadata=metadata)


@dataclass(frozen=True, eq=False)
class Record:
    """Lossless JSON and equality by content, from the dataclass fields alone."""

    kinds: ClassVar[dict[str, type[Record]]] = {}

    def __init_subclass__(cls) -> None:
        Record.kinds[cls.__name__] = cls

    def __post_init__(self) -> None:
        for item in fields(self):
            value = stored_record_value(item, getattr(self, item.name))
            object.__setattr__(self, item.name, value)
        self.validate()

    def validate(self) -> None:
        """Raise `InputError` when the fields contradict each other."""

    @classmethod
    def check_format(cls, data: Mapping[str, object]) -> None:
        """Raise `InputError` when JSON of this class was written in a format that is not read any more."""

    def to_dict(self) -> JsonObject:
        """The record as JSON has it."""
        return {item.name: to_json_value(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def from_dict(cls: type[R], data: Mapping[str, object]) -> R:
        """The record that `to_dict` wrote; `InputError` where it is none of this kind."""
        kind = cls.__name__
        if not isinstance(data, Mapping):
            shape = type(data).__name__
            raise InputError(f"This {kind} record is not an object with fields but {shape}.")
        cls.check_format(data)
        known = {item.name: item for item in fields(cls)}
        unknown = set(data) - set(known)
        if unknown and len(unknown) == len(data):
            some_names = ", ".join(sorted(map(str, data))[:5])
            raise InputError(f"This is no {kind} record: it has {some_names}.")
        if unknown:
            names = ", ".join(sorted(unknown))
            raise InputError(
                f"This {kind} record has unknown fields ({names}): "
                "it was written by a newer raison; update raison to read it."
            )
        try:
            values = {name: value_from_json(known[name], value) for name, value in data.items()}
            return cls(**values)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError(f"This is not a complete {kind} record: {error}.") from None

    def to_json(self) -> str:
        """The record as one line of JSON."""
        return self.json_text(self.to_dict(), allow_nan=False)

    def json_text(
        self, data: JsonObject, *, sort_keys: bool = False, allow_nan: bool = True
    ) -> str:
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
        advice = f"write it with {cls.__name__}.to_json()"
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:  # also a long number, or deep nesting
            raise InputError(f"This is not JSON ({error}): {advice}.") from None
        if not isinstance(data, dict):
            raise InputError(f"This JSON holds no {cls.__name__} record: {advice}.")
        return cls.from_dict(data)

    def identity(self) -> JsonObject:
        """The fields that make two records the same: all but those set apart, such as what a result cost."""
        same = self.to_dict()
        for item in fields(self):
            if item.metadata.get("apart"):
                same.pop(item.name, None)
        return same

    def content(self) -> str:
        """A hash of the content: the identity that seeds and stores use."""
        text = self.json_text(self.identity(), sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def __eq__(self, other: object) -> bool:
        # not by the fields: Python takes 1, 1.0 and True for the same, and their hashes would differ
        if not isinstance(other, Record) or type(self) is not type(other):
            return False
        return self.content() == other.content()

    def __hash__(self) -> int:
        return hash(self.content())


def stored_record_value(item: Field[object], value: object) -> object:
    """The value of a field as a record keeps it: converted as the field wants it, lists as tuples."""
    if "json" in item.metadata:
        return to_json_value(value)
    if "convert" in item.metadata and value is not None:
        return item.metadata["convert"](value)
    if isinstance(value, list):
        return tuple(value)
    return value


def value_from_json(item: Field[object], value: Any) -> object:
    """The value of a field from its JSON: objects become records where the field holds some."""
    if value is None:
        return None
    if "records" in item.metadata:
        kind = Record.kinds[item.metadata["records"]]
        return tuple(kind.from_dict(each) for each in value)
    if "record" in item.metadata:
        kind = Record.kinds[item.metadata["record"]]
        return kind.from_dict(value)
    return value


def to_json_value(value: Any) -> object:
    """A value as JSON has it: arrays and tuples become lists, records become objects."""
    if isinstance(value, Record):
        return value.to_dict()
    # NumPy is not imported for this: settings are records too, and the command line has to start fast
    if type(value).__module__.partition(".")[0] == "numpy":
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [to_json_value(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_json_value(item) for key, item in value.items()}
    return value
