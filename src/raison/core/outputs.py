"""Checks of the paths that a command writes, before its work begins: each is writable and replaces no run or
foreign file; at the end they are put in place whole.

A result goes to a regular file. It never takes the place of something that the command reads or that belongs to a run,
and of another file only where that was asked for (`--force`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from raison.core.errors import InputError
from raison.core.files import is_half_written, write_whole

__all__ = [
    "check_folder",
    "check_outputs",
    "refuse_foreign_files",
    "replacing_output",
    "run_folder_around",
]

Named = str | os.PathLike[str]

EXPORTS = "export"  # the folder of a run for files that are made of it


def check_outputs(
    outputs: Iterable[Named | None],
    *,
    force: bool = False,
    inputs: Iterable[Named | None] = (),
    folders: bool = False,
) -> None:
    """Refuse, before any work, a file that can't or must not be written.

    `inputs` are the files and folders that the work reads; with `force` another file may be replaced; with `folders`
    the folder of a file is made where it is missing.
    """
    read = [Path(each).expanduser() for each in inputs if each is not None]
    seen: set[Path] = set()
    for each in outputs:
        if each is None:
            continue
        path = Path(each)
        check_output_file(path, read, force=force, folders=folders)
        real = path.resolve()
        if real in seen:
            raise InputError(
                f"{str(path)!r} is named for two results: give each a file of its own."
            )
        seen.add(real)


def check_output_file(path: Path, read: list[Path], *, force: bool, folders: bool) -> None:
    """Refuse one file to write to."""
    name = repr(str(path))
    if path.is_dir():
        raise InputError(f"{name} is a folder: name a file in it.")
    if path.exists() and not path.is_file():
        raise InputError(f"{name} is a device or a pipe: name a regular file.")
    real = resolved_path(path)
    if folders and not is_writable(real, nearest_folder(real)):
        raise InputError(f"{name} could not be written: choose a folder that is yours.")
    if not folders and not is_writable(real, real.parent):
        raise InputError(f"{name} can't be written: choose a folder that exists and is yours.")
    run = run_folder_around(real)
    if run is not None:
        raise InputError(
            f"{name} is inside of the run {str(run)!r}: name a file outside of it, or in its {EXPORTS}/."
        )
    for each in read:
        if path.exists() and is_part_of(real, each):
            raise InputError(f"{name} is read by this command ({str(each)!r}): name another file.")
    if path.exists() and not force:
        raise InputError(f"{name} is there already: replace it with --force, or name another file.")


def nearest_folder(path: Path) -> Path:
    """The first folder above a path that exists."""
    return next(folder for folder in path.parents if folder.exists())


def is_writable(path: Path, folder: Path) -> bool:
    """Whether a file can be made in a folder, or replaced there."""
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return False
    return not path.exists() or os.access(path, os.W_OK)


def resolved_path(path: Path) -> Path:
    """Where a file really lies, behind all links."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # links in a circle
        raise InputError(
            f"{str(path)!r} is a link that leads nowhere: name another file."
        ) from None


def is_part_of(real: Path, given: Path) -> bool:
    """Whether a file that is there is the given file, or one in the given folder, by whatever name or link."""
    if not given.is_dir():
        return given.exists() and os.path.samefile(real, given)
    if given.resolve() in real.parents:
        return True
    real_stat = os.stat(real)
    for folder, _, names in os.walk(given):
        for name in names:
            path = os.path.join(folder, name)
            try:
                stat = os.stat(path)
            except OSError:  # a link that leads nowhere, or a file that has just gone
                continue
            if os.path.samestat(real_stat, stat):
                return True
    return False


def run_folder_around(path: Path) -> Path | None:
    """The folder of the run that a path lies in, unless it is in the run's folder of exports."""
    real = resolved_path(path)
    for folder in real.parents:
        top_name = real.relative_to(folder).parts[0]
        if top_name != EXPORTS and is_run_folder(folder):
            return folder
    return None


def is_run_folder(folder: Path) -> bool:
    """Whether a folder holds a run; one that was stopped early has a spec and little more."""
    header = folder / "plan" / "header.json"
    if header.is_file():
        return True
    spec = folder / "spec.json"
    if not spec.is_file():
        return False
    for name in ("plan", "shards", "environment.json", "lock"):
        path = folder / name
        if path.exists():
            return True
    return False


def check_folder(folder: Path, ours: Callable[[str], bool], what: str) -> None:
    """Refuse a folder to write to that holds something else than `what`, or lies inside of a run.

    `ours` tells by its name whether a file is of such a folder.
    """
    run = run_folder_around(folder)
    if run is not None:
        raise InputError(
            f"{str(folder)!r} is inside of the run {str(run)!r}: name a folder outside of it."
        )
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        if folder.exists():
            raise InputError(f"{str(folder)!r} is a file: name a folder.") from None
        return
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"{str(folder)!r} can't be read ({reason}): name another folder."
        ) from None
    refuse_foreign_files(str(folder), names, ours, what)


def refuse_foreign_files(
    folder: str, names: Iterable[str], ours: Callable[[str], bool], what: str
) -> None:
    """Refuse a folder with a file that is not ours; what one of us has left half written is."""
    for name in sorted(names):
        if not ours(name) and not is_half_written(name):
            raise InputError(
                f"{folder!r} holds something else than {what} ({name}): name a new or an empty folder."
            )


@contextmanager
def replacing_output(path: Named) -> Iterator[Path]:
    """A name to write to; at the end that file takes the place of `path` whole, or nothing is changed."""
    named = Path(path)
    try:
        with write_whole(resolved_path(named), suffix=named.suffix) as half:
            yield half
    except OSError as error:
        reason = error.strerror or str(error)
        # the user knows it by this name
        raise OSError(error.errno, reason, str(path)) from None
