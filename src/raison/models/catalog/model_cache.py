"""The cache of finished model folders on the disk: built once, published whole, checked at every use."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from raison.core import limits
from raison.core.errors import ModelError
from raison.core.fingerprint import sha256_of_file
from raison.core.progress import report
from raison.models.catalog.build_lock import hold_build_lock

__all__ = ["Origin", "build_in_cache", "cache_root", "origin_of_folder"]

MANIFEST = "manifest.json"
# bytes: files up to this size are compared by digest too; hashing weights would cost a second
SMALL = 16 << 20
log = logging.getLogger("raison")

Origin = dict[str, str]  # where a model came from: a registry or the hub, and which version
Maker = Callable[[Path, Path], Origin]


def cache_root() -> Path:
    """The cache folder: RAISON_CACHE, else the place that the operating system has for caches."""
    chosen = os.environ.get("RAISON_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "raison"
    if os.name == "nt":
        return (
            Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
            / "raison"
            / "cache"
        )
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "raison"


def build_in_cache(name: str, version: str, maker: Maker, room: int = 0) -> Path:
    """The finished folder of a model, made by `maker(folder, scratch)` if it isn't there yet.

    The maker fills `folder`, may use `scratch` for downloads, and returns where the model came from. Nobody
    sees the folder before it is whole, and whatever stops the maker leaves nothing behind. `room` is how many
    bytes the making takes.
    """
    home = cache_root() / "models"
    folder = home / f"{name}-{version}"
    with disk_errors_as_model_errors(name):
        if (
            damage_of_folder(folder) is None
        ):  # looked at without the lock, so that a read-only cache can serve
            return folder
        home.mkdir(parents=True, exist_ok=True)
        with hold_build_lock(
            home / f".{name}-{version}.lock",
            lambda: report(0, 1, f"{name}, which another process is making"),
        ):
            broken = damage_of_folder(folder)
            if broken is None:  # another process made it while we waited
                return folder
            if folder.exists():
                log.warning("The cached model %r is damaged (%s); it is made anew.", name, broken)
            # what a killed process left: nobody else can be at work while we hold the lock
            for old in home.glob(f".making-{name}-{version}-*"):
                shutil.rmtree(old, ignore_errors=True)
            require_space_on_disk(home, room, name)
            make_folder_in_workshop(
                folder, home / f".making-{name}-{version}-{uuid.uuid4().hex[:8]}", maker
            )
    return folder


def make_folder_in_workshop(folder: Path, workshop: Path, maker: Maker) -> None:
    """Run the maker in a sibling of the folder and publish the result with one rename."""
    made, scratch = workshop / "made", workshop / "scratch"
    try:
        made.mkdir(parents=True)
        scratch.mkdir()
        origin = maker(made, scratch)
        files = {
            path.relative_to(made).as_posix(): facts_of_cached_file(path)
            for path in sorted(made.rglob("*"))
            if path.is_file()
        }
        (made / MANIFEST).write_text(
            json.dumps({"source": origin, "files": files}, indent=1), encoding="utf-8"
        )
        usual = (made / MANIFEST).stat().st_mode
        for name in (
            files
        ):  # some writers make files that only their owner may read, which a shared cache can't use
            os.chmod(made / name, usual)
        if folder.exists():
            os.rename(folder, workshop / "damaged")
        os.rename(made, folder)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def origin_of_folder(folder: Path) -> Origin:
    """Where the model in a finished folder came from."""
    origin: Origin = limits.read_json_text((folder / MANIFEST).read_text(encoding="utf-8"))[
        "source"
    ]
    return origin


def facts_of_cached_file(path: Path) -> dict[str, int | str]:
    """By what a file is known again: its size, and the digest of one that is not large."""
    size = path.stat().st_size
    if size > SMALL:
        return {"bytes": size}
    return {"bytes": size, "sha256": sha256_of_file(path)}


def damage_of_folder(folder: Path) -> str | None:
    """What is wrong with a finished folder, if anything."""
    try:
        files = limits.read_json_text((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        for name, wanted in files.items():
            if (folder / name).stat().st_size != wanted["bytes"]:
                return f"{name} has another size than when it was made"
            if "sha256" in wanted and sha256_of_file(folder / name) != wanted["sha256"]:
                return f"{name} has other contents than when it was made"
    except (FileNotFoundError, NotADirectoryError) as error:
        return f"{Path(error.filename or folder).name} is missing"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{MANIFEST} can't be read"
    return None


def require_space_on_disk(home: Path, room: int, name: str) -> None:
    """Say before a long download that its result will not fit."""
    free = shutil.disk_usage(home).free
    if free < room:
        needed = f"{room / 1e6:.0f} MB in {cache_root()}"
        raise ModelError(
            f"{name!r} needs {needed} but only {free / 1e6:.0f} MB are free there: make room, "
            "or set RAISON_CACHE to a folder on a larger disk."
        )


@contextmanager
def disk_errors_as_model_errors(name: str) -> Iterator[None]:
    """Turn a full disk or a cache that can't be written into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise cache_disk_full_error(name) from error
        reason = error.strerror or error
        raise ModelError(
            f"{name!r} can't be put into the cache {cache_root()} ({reason}): set RAISON_CACHE to a folder "
            "that you can write to."
        ) from error
    except (
        Exception
    ) as error:  # safetensors and the download clients say it with exceptions of their own
        if "No space left" in str(error):
            raise cache_disk_full_error(name) from error
        raise


def cache_disk_full_error(name: str) -> ModelError:
    root = cache_root()
    return ModelError(
        f"The disk is full, so {name!r} can't be put into the cache {root}: make room, or set RAISON_CACHE to a "
        "folder on a larger disk."
    )
