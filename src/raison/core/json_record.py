"""What every record is: frozen, validated, lossless in JSON, equal by content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, ClassVar, TypeVar

import numpy as np

from raison.core.errors import InputError

__all__ = ["Record", "array", "plain", "record", "records"]

R = TypeVar("R", bound="Record")


def array(dtype: str, **kwargs: Any) -> Any:
    """A dataclass field that holds a read-only NumPy array of `dtype`, a list in JSON."""
    return field(metadata={"dtype": dtype}, **kwargs)


def record(kind: str, **kwargs: Any) -> Any:
    """A dataclass field that holds one record of the class named `kind`, or None where that is allowed."""
    return field(metadata={"record": kind}, **kwargs)


def records(kind: str, **kwargs: Any) -> Any:
    """A dataclass field that holds a tuple of records of the class named `kind`."""
    return field(metadata={"records": kind}, **kwargs)


class Record:
    """Lossless JSON and equality by content, from the dataclass fields alone."""

    kinds: ClassVar[dict[str, type[Record]]] = {}

    def __init_subclass__(cls) -> None:
        Record.kinds[cls.__name__] = cls

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if value is None:
                continue
            if dtype := item.metadata.get("dtype"):
                value = np.array(value, dtype=dtype)
                value.setflags(write=False)
            elif isinstance(value, list):
                value = tuple(value)
            object.__setattr__(self, item.name, value)
        self.validate()

    def validate(self) -> None:
        """Raise `InputError` when the fields contradict each other."""

    def to_dict(self) -> dict[str, Any]:
        return {item.name: plain(getattr(self, item.name)) for item in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_dict(cls: type[R], data: Mapping[str, Any]) -> R:
        known = {item.name: item for item in fields(cls)}  # type: ignore[arg-type]
        if not isinstance(data, Mapping):
            raise InputError(f"This {cls.__name__} record is not an object with fields but {type(data).__name__}.")
        if data and not set(data) & set(known):
            raise InputError(f"This is no {cls.__name__} record: it has {', '.join(sorted(map(str, data))[:5])}.")
        if unknown := set(data) - set(known):
            raise InputError(
                f"This {cls.__name__} record has unknown fields ({', '.join(sorted(unknown))}): "
                "it was written by a newer raison; update raison to read it."
            )
        values = dict(data)
        try:
            for name, item in known.items():
                kind = item.metadata.get("records") or item.metadata.get("record")
                if kind and values.get(name) is not None:
                    build, given = Record.kinds[kind].from_dict, values[name]
                    values[name] = tuple(map(build, given)) if "records" in item.metadata else build(given)
            return cls(**values)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError(f"This is not a complete {cls.__name__} record: {error}.") from None

    def to_json(self) -> str:
        return self.written(self.to_dict(), allow_nan=False)

    def written(self, data: dict[str, Any], **how: Any) -> str:
        try:
            return json.dumps(data, ensure_ascii=False, **how)
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"This {type(self).__name__} holds what JSON can't ({error}): leave it out.") from None

    @classmethod
    def from_json(cls: type[R], text: str) -> R:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:  # a number may be too long, or it is nested too deep
            raise InputError(f"This is not JSON ({error}): write it with {cls.__name__}.to_json().") from None
        if not isinstance(data, dict):
            raise InputError(f"This JSON holds no {cls.__name__} record: write it with {cls.__name__}.to_json().")
        return cls.from_dict(data)

    def identity(self) -> dict[str, Any]:
        """The fields that make two records the same: all but those set apart, such as what a result cost."""
        apart = [item.name for item in fields(self) if item.metadata.get("apart")]  # type: ignore[arg-type]
        return {name: value for name, value in self.to_dict().items() if name not in apart}

    def content(self) -> str:
        """A hash of the content: the identity that seeds and stores use."""
        return hashlib.sha256(
            self.written(self.identity(), sort_keys=True).encode("utf-8", "surrogatepass")
        ).hexdigest()

    def __eq__(self, other: object) -> bool:
        # not by the fields: Python takes 1, 1.0 and True for the same, and their hashes would differ
        return type(self) is type(other) and self.content() == other.content()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self.content())


def plain(value: Any) -> Any:
    """The JSON form of a field: arrays and tuples become lists, records become objects."""
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    return value
