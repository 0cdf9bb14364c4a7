"""Running a download client as a child process: watched, limited in its patience, never left behind."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from raison.core.progress import report

__all__ = ["ClientFailed", "run_download_client"]

PAUSE = 0.2  # seconds between two looks at the growing file


class ClientFailed(Exception):
    """The client ended with an error or went silent; the message is its own last word."""


def run_download_client(
    command: list[str],
    scratch: Path,
    size: int,
    name: str,
    patience: float,
    env: dict[str, str] | None = None,
) -> None:
    """Run `command` in `scratch` and report how much of `size` bytes has arrived; raise `Failed` if it fails.

    The child gets `scratch` for its temporary files, so that the growing download is seen there and goes away
    with it. A child that writes nothing for `patience` seconds is ended.
    """
    places = {key: str(scratch) for key in ("TMPDIR", "TEMP", "TMP")}
    said = scratch / "client.log"
    with said.open("wb") as log:  # a pipe that nobody empties would block the child
        settings = {**os.environ, **places, **(env or {})}
        try:
            child = subprocess.Popen(
                command,
                cwd=scratch,
                env=settings,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise ClientFailed(f"it can't be started: {error.strerror}") from error
        try:
            arrived, since = 0, time.monotonic()
            while child.poll() is None:
                now = largest_downloaded_file(scratch)
                if now > arrived:
                    arrived, since = now, time.monotonic()
                elif time.monotonic() - since > patience:
                    raise ClientFailed(f"nothing arrived for {patience:.0f} seconds")
                report(min(arrived, size) // 1_000_000, size // 1_000_000, f"MB of {name}")
                time.sleep(PAUSE)
        finally:  # also on Ctrl-C: a child must not go on writing into a folder that is being removed
            if child.poll() is None:
                child.kill()
            child.wait()
    if child.returncode != 0:
        raise ClientFailed(last_line_of_client(said.read_text(encoding="utf-8", errors="replace")))
    report(size // 1_000_000, size // 1_000_000, f"MB of {name}")


def largest_downloaded_file(folder: Path) -> int:
    """The size of the largest file below `folder`: a client may keep a second, growing or finished, copy."""
    best = 0
    for place, _, files in os.walk(folder):  # walks on when a folder vanishes under it
        for file in files:
            try:
                best = max(best, os.stat(os.path.join(place, file)).st_size)
            except OSError:
                continue
    return best


def last_line_of_client(text: str) -> str:
    """The last error line of a client's output, short enough for a sentence."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    full = [line for line in lines if "No space left" in line]
    errors = [line for line in lines if "error" in line.lower()]
    words = (full or errors or lines or ["it gave no reason"])[-1]
    return words.removeprefix("ERROR: ").removeprefix("npm error ").rstrip(".:")[:200]
