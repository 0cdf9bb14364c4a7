"""A cache of the results of an audit, part by part, in a folder: the same audit goes on from there."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from raison.core import limits
from raison.core.errors import InputError
from raison.core.json_record import JsonObject, Record
from raison.core.outputs import check_folder
from raison.training.training_folder import write_training_file

__all__ = ["AuditIdentity", "ResultCache"]

IDENTITY = "audit.json"  # of which audit the parts are

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class AuditIdentity:
    """What tells one audit from another."""

    model: str  # a fingerprint of what it says of the texts
    data: str
    settings: JsonObject

    def difference(self, stored: Any) -> str | None:
        """The first thing in which a stored identity is another one."""
        if not isinstance(stored, dict):
            stored = {}
        for name, value in asdict(self).items():
            if stored.get(name, ...) != value:
                return name
        return next((name for name in stored if name not in asdict(self)), None)


class ResultCache:
    """Parts of one audit; without a folder nothing is kept."""

    def __init__(self, folder: Path | None, identity: AuditIdentity):
        self.folder = folder
        if folder is not None:
            claim_cache_folder(folder, identity)

    def get(self, name: str, kind: type[R], compute: Callable[[], R]) -> R:
        """The part that is stored, or computed and stored now."""
        (result,) = self.get_all(name, kind, lambda: [compute()])
        return result

    def get_all(
        self, name: str, kind: type[R], compute: Callable[[], Sequence[R]]
    ) -> tuple[R, ...]:
        """Likewise of several records under one name."""
        if self.folder is None:
            return tuple(compute())
        path = self.folder / f"{name}.json"
        if path.exists():
            try:
                stored = limits.read_json_text(path.read_text(encoding="utf-8"))
                return tuple(kind.from_dict(part) for part in stored)
            except (ValueError, TypeError, InputError):
                pass  # damaged: it is made again
        results = tuple(compute())
        dictionaries = []
        for result in results:
            dictionaries.append(result.to_dict())
        lines = json.dumps(dictionaries)
        with write_training_file(path) as half:
            half.write_text(lines + "\n", encoding="utf-8")
        return results

    def checkpoints(self, name: str) -> Path | None:
        """A folder for checkpoints of a part."""
        if self.folder is None:
            return None
        return self.folder / name


def claim_cache_folder(folder: Path, identity: AuditIdentity) -> None:
    """Make the folder one of this audit; refuse one that holds another audit, or something else."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{str(folder)!r} can't be written ({error.strerror}): choose another folder."
        ) from None

    path = folder / IDENTITY
    if not path.exists():
        check_folder(folder, lambda name: False, "an audit")
        with write_training_file(path) as half:
            half.write_text(json.dumps(asdict(identity), indent=1) + "\n", encoding="utf-8")
        return

    try:
        stored = limits.read_json_text(path.read_text(encoding="utf-8"))
    except ValueError:
        stored = {}
    if other := identity.difference(stored):
        raise InputError(
            f"{str(folder)!r} keeps an audit with another {other}: delete it, or choose another folder."
        )
