"""Artifact: what was fitted once and is used by methods, such as head statistics and document frequencies.

An artifact is a JSON file. A method names one by its path; results record the hash of its content, so that moving the
file changes nothing and changing it changes everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raison.core import limits
from raison.core.errors import InputError
from raison.core.json_record import JsonObject, Record, json_field
from raison.core.outputs import replacing_output

__all__ = ["Artifact"]


@dataclass(frozen=True, eq=False)
class Artifact(Record):
    """What was fitted, on which model, from what."""

    kind: str  # heads | idf
    data: JsonObject = json_field(required=True)
    model: str = ""  # name of the model it belongs to; empty: any
    about: JsonObject = json_field(apart=True)  # corpus, counts, versions

    def validate(self) -> None:
        if not isinstance(self.kind, str) or not isinstance(self.model, str):
            raise InputError("The kind of an artifact and the name of its model are texts.")
        for name, value in (("data", self.data), ("about", self.about)):
            if not isinstance(value, dict):
                raise InputError(f"The {name} of an artifact must be an object with fields.")

    def save(self, path: str | Path) -> None:
        with replacing_output(path) as half:
            half.write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def open(cls, path: str | Path, kind: str) -> Artifact:
        """Read a file that must hold an artifact of this kind."""
        try:
            with Path(path).open("rb") as file:
                content = limits.read_at_most(file, limits.FILE, repr(str(path)))
            text = content.decode("utf-8")
        except FileNotFoundError:
            raise InputError(
                f"There is no file {str(path)!r}: make it with `raison {kind}`."
            ) from None
        except (OSError, ValueError) as error:
            # a ValueError is bytes that are no UTF-8, or a name that no file can have
            raise InputError(
                f"{str(path)!r} can't be read ({error}): make it anew with `raison {kind}`."
            ) from None
        try:
            found = cls.from_json(text)
        except (InputError, RecursionError) as error:
            reason = str(error).partition(":")[0]
            raise InputError(
                f"{str(path)!r} is no file of `raison {kind}` ({reason}): make it anew."
            ) from None
        if found.kind != kind:
            raise InputError(
                f"{str(path)!r} holds {found.kind!r}, not {kind!r}: name a file made by `raison {kind}`."
            )
        return found
