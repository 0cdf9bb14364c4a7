"""The storage of a run, a local or a remote place: a folder, or a URL; files are written whole or not at all."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from raison.core.errors import InputError, MissingExtra, RaisonError, first_line_of
from raison.core.files import remove_half_written, write_whole

__all__ = ["Local", "Place", "Unwritten", "place_of"]


P = ParamSpec("P")
R = TypeVar("R")


class Unwritten(RaisonError):
    """A file of a run could not be written: the disk is full, mostly."""


class Place(ABC):
    """Named files; names have / between their parts."""

    @abstractmethod
    def put(self, name: str, data: bytes) -> None:
        """Write a file whole; after a crash it is there or it is not."""

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """What a file holds; None if there is none."""

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """Names of the files in a folder, sorted."""

    @abstractmethod
    def entries(self) -> list[str]:
        """Names of all that is in the run folder itself, files and folders."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""

    @abstractmethod
    def move(self, name: str, other: str) -> None:
        """Give a file another name."""

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None


class Local(Place):
    """A folder on this machine, or on a shared disk."""

    def __init__(self, root: Path):
        self.root = root

    def __str__(self) -> str:
        return str(self.root)

    def put(self, name: str, data: bytes) -> None:
        path = self.root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with write_whole(path, durable=True) as half:
                half.write_bytes(data)
        except OSError as error:
            reason = error.strerror or str(error)
            raise Unwritten(
                f"{str(path)!r} could not be written ({reason}): mend that, and resume the run."
            ) from None

    def get(self, name: str) -> bytes | None:
        try:
            return (self.root / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(
                f"{str(self.root / name)!r} can't be read ({reason}): check the run folder."
            ) from None

    def __contains__(self, name: str) -> bool:
        return (self.root / name).is_file()

    def names(self, folder: str) -> list[str]:
        try:
            found = sorted(
                entry.name for entry in os.scandir(self.root / folder) if entry.is_file()
            )
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [name for name in found if not name.startswith(".")]

    def entries(self) -> list[str]:
        try:
            return os.listdir(self.root)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(
                f"{str(self.root)!r} can't be read ({reason}): check the run folder."
            ) from None

    def delete(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)

    def move(self, name: str, other: str) -> None:
        (self.root / other).parent.mkdir(parents=True, exist_ok=True)
        os.replace(self.root / name, self.root / other)

    def remove_half_written(self) -> None:
        """Delete what killed writers left behind."""
        remove_half_written(self.root)


class Remote(Place):
    """A folder of any file system of fsspec; object stores put a file whole by nature."""

    def __init__(self, url: str):
        try:
            import fsspec
        except ImportError:
            raise MissingExtra("fsspec", "runs", "A run at a URL") from None
        try:
            self.fs, self.root = fsspec.core.url_to_fs(url)
        except Exception as error:  # every file system has its own
            raise InputError(
                f"{url!r} can't be opened ({first_line_of(error)}): name a folder or another URL."
            ) from None
        self.url = url

    def __str__(self) -> str:
        return self.url

    def path(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}"

    def guarded(self, action: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        """What an action of the file system returns; its errors, but for a missing file, in a sentence."""
        try:
            return action(*arguments, **options)
        except FileNotFoundError:
            raise
        except Exception as error:  # every file system has its own
            raise Unwritten(
                f"{self.url!r} can't be reached ({first_line_of(error)}): mend that, and resume the run."
            ) from None

    def put(self, name: str, data: bytes) -> None:
        path = self.path(name)
        self.guarded(self.fs.makedirs, path.rpartition("/")[0], True)
        self.guarded(self.fs.pipe_file, path, data)

    def get(self, name: str) -> bytes | None:
        try:
            content: bytes = self.guarded(self.fs.cat_file, self.path(name))
            return content
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        try:
            self.fs.invalidate_cache()
            paths = self.guarded(self.fs.ls, self.path(folder), False)
        except FileNotFoundError:
            return []
        return sorted(path.rpartition("/")[2] for path in paths)

    def entries(self) -> list[str]:
        try:
            self.fs.invalidate_cache()
            paths = self.guarded(self.fs.ls, self.root, False)
        except FileNotFoundError:
            return []
        names = []
        for path in paths:
            if path.rstrip("/") != self.root.rstrip(
                "/"
            ):  # some file systems list a folder as an entry of itself
                names.append(path.rstrip("/").rpartition("/")[2])
        return names

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self.guarded(self.fs.rm_file, self.path(name))

    def move(self, name: str, other: str) -> None:
        data = self.get(name)
        if data is not None:
            self.put(other, data)
            self.delete(name)


def place_of(where: str | os.PathLike[str]) -> Place:
    """The place of a path or URL."""
    name = os.fspath(where)
    if not name.strip():
        raise InputError("The name of the run is empty: name a folder.")
    for ours in ("file://", "local://"):  # a folder, which can do more as such
        name = name.removeprefix(ours)
    if "://" in name:
        return Remote(name)
    try:
        return Local(Path(name).expanduser())
    except RuntimeError:
        raise InputError(f"{name!r} names a user that is not here: name a folder.") from None
