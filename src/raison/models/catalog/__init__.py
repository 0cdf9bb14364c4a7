"""The catalog of models that work without an account: small, pinned, taken from the hub or from package registries.

One file per model, which registers its own entry; nothing here imports torch before a model is opened, so
that listing the catalog is instant.
"""

from __future__ import annotations

import importlib
import pkgutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raison.core.errors import ModelError

__all__ = [
    "CatalogEntry",
    "ModelAndTokenizer",
    "catalog_entries",
    "register_catalog_folder",
    "register_catalog_model",
]

# of transformers, of whatever class; the model is in evaluation mode
ModelAndTokenizer = tuple[Any, Any]
Opener = Callable[[], ModelAndTokenizer]


@dataclass(frozen=True)
class CatalogEntry:
    """A model of the catalog; `size` is what it takes on the disk, in bytes."""

    name: str
    description: str
    licence: str
    size: int
    opener: Opener
    hidden: bool = False  # a model for tests or a part of another one: not listed to users
    # of a model that explains itself: a loader opens it (registry.loaders), not the opener
    folder: Path | None = None

    def open(self) -> ModelAndTokenizer:
        """The transformers model, in evaluation mode, and its tokenizer; the first call may download them."""
        return self.opener()


_entries: dict[str, CatalogEntry] = {}
_scanned = False
_lock = threading.Lock()


def register_catalog_model(
    name: str, description: str, licence: str, size: int, hidden: bool = False
) -> Callable[[Opener], Opener]:
    """Decorator: the function opens the model called `name`."""

    def add(opener: Opener) -> Opener:
        if name in _entries and _entries[name].opener.__module__ != opener.__module__:
            raise ValueError(f"two models called {name!r} in the catalog")
        _entries[name] = CatalogEntry(name, description, licence, size, opener, hidden)
        return opener

    return add


def register_catalog_folder(
    name: str, description: str, licence: str, size: int, folder: Path
) -> None:
    """A model that explains itself, in a folder that comes with raison."""

    def refused() -> ModelAndTokenizer:
        raise ModelError(
            f"{name!r} is a model that explains itself and no plain one: name another model here."
        )

    _entries[name] = CatalogEntry(name, description, licence, size, refused, folder=folder)


def catalog_entries() -> dict[str, CatalogEntry]:
    """Every model of the catalog by name, hidden ones included."""
    global _scanned
    with _lock:
        if not _scanned:
            for module in pkgutil.iter_modules(__path__, __name__ + "."):
                importlib.import_module(module.name)
            _scanned = True
    return dict(sorted(_entries.items()))
