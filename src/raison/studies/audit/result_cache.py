"""What an audit has found so far, part by part, in a folder: the same audit goes on from there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from raison.core import limits
from raison.core.errors import InputError
from raison.core.outputs import check_folder
from raison.studies.audit.adversary import Adversary
from raison.studies.audit.report import Shown, Spread
from raison.training.fit import saved

__all__ = ["Kept"]

KINDS = {kind.__name__: kind for kind in (Adversary, Shown, Spread)}
MARK = "audit.json"  # of which audit the parts are


class Kept:
    """Parts of one audit, which `mark` tells from any other; without a folder nothing is kept."""

    def __init__(self, folder: Path | None, mark: dict[str, Any]):
        self.folder = folder
        if folder is None:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{str(folder)!r} can't be written ({error.strerror}): choose another folder.") from None
        path = folder / MARK
        if path.exists():
            try:
                before = limits.from_json(path.read_text(encoding="utf-8"))
            except ValueError:
                before = {}
            if other := [key for key in {**mark, **before} if before.get(key, ...) != mark.get(key, ...)]:
                raise InputError(
                    f"{str(folder)!r} keeps an audit with another {other[0]}: delete it, or choose another folder."
                )
        else:
            check_folder(folder, lambda name: False, "an audit")
            with saved(path) as half:
                half.write_text(json.dumps(mark, indent=1) + "\n", encoding="utf-8")

    def __call__(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` makes, once."""
        if self.folder is None:
            return make()
        path = self.folder / f"{name}.json"
        if path.exists():
            try:
                return unpacked(limits.from_json(path.read_text(encoding="utf-8")))
            except (ValueError, TypeError):
                pass  # damaged: it is made again
        made = make()
        with saved(path) as half:
            half.write_text(json.dumps(packed(made)) + "\n", encoding="utf-8")
        return made

    def place(self, name: str) -> Path | None:
        """A folder for checkpoints of a part."""
        return None if self.folder is None else self.folder / name


def packed(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {"is a": type(value).__name__, **asdict(value)}
    if isinstance(value, dict):
        return {key: packed(item) for key, item in value.items()}
    return [packed(item) for item in value] if isinstance(value, (list, tuple)) else value


def unpacked(value: Any) -> Any:
    """Lists become tuples, as in what was packed."""
    if isinstance(value, dict):
        made = {key: unpacked(item) for key, item in value.items()}
        return KINDS[made.pop("is a")](**made) if value.get("is a") in KINDS else made
    return tuple(unpacked(item) for item in value) if isinstance(value, list) else value
