"""The raison command as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.helpers import cli_server


def raison(*args: str, stdin: str | bytes = "", fresh: bool = False) -> subprocess.CompletedProcess:
    """`fresh`: started by Python as a user's shell does it, which takes seconds to import what is needed."""
    given = stdin if isinstance(stdin, bytes) else stdin.encode()
    if fresh:
        command, env = [sys.executable, "-m", "raison", *args], {**os.environ, **cli_server.OFFLINE}
        found = subprocess.run(command, input=given, capture_output=True, env=env, timeout=120)
    else:
        found = cli_server.run(args, given, timeout=120)
    if isinstance(stdin, str):
        found.stdout, found.stderr = found.stdout.decode(), found.stderr.decode()
    return found


def one_sentence(result: subprocess.CompletedProcess, code: int) -> str:
    """A failure shows one line, no traceback, and nothing on stdout."""
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1 and lines[0].startswith("raison: ") and lines[0].endswith((".", "?")), (
        result.stderr
    )
    return lines[0]
