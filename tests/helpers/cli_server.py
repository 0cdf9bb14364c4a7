"""The command line in a process of its own that has the libraries imported already: a test waits for the command alone.

Importing torch and transformers takes seconds, a hundred commands minutes. So this file, run as a program, imports them
once and forks a process for each command; arguments, folder, environment, streams and exit code are as in a shell.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.helpers.paths import ROOT

OFFLINE = {"HF_HUB_OFFLINE": "1"}  # whatever the user's own setting is: no test asks the hub
STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}
IMPORTED = "torch scipy.stats rich.console transformers.modeling_utils transformers.models.auto.modeling_auto".split()
IMPORTED += "transformers.models.bert.modeling_bert transformers.models.llama.modeling_llama raison.api".split()


def run(args: tuple[str, ...], given: bytes, timeout: float) -> subprocess.CompletedProcess[bytes]:
    """What `raison ARGS` gives."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in STREAMS:
            (folder / name).write_bytes(given if name == "stdin" else b"")
        asked = {
            "args": args,
            "cwd": os.getcwd(),
            "env": {**os.environ, **OFFLINE},
            "streams": place,
            "timeout": timeout,
        }
        answer = served(json.dumps(asked))
        out, err = ((folder / name).read_bytes() for name in ("stdout", "stderr"))
    if answer == "late":
        raise subprocess.TimeoutExpired(["raison", *args], timeout, out, err)
    return subprocess.CompletedProcess(["raison", *args], int(answer), out, err)


def served(line: str) -> str:
    server = server_of(os.getpid())
    server.stdin.write(line + "\n")
    server.stdin.flush()
    return server.stdout.readline().strip()


@cache
def server_of(process: int) -> subprocess.Popen[str]:
    """One for each process that tests; it ends with the end of its input."""
    command, pipe = [sys.executable, "-m", "tests.helpers.cli_server"], subprocess.PIPE
    server = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT, env={**os.environ, **OFFLINE}
    )
    atexit.register(server.communicate)
    return server


def serve() -> None:
    from raison.cli.progress import quiet

    quiet()  # as a command does it, before they are imported
    for name in IMPORTED:
        __import__(name)
    for line in sys.stdin:
        asked = json.loads(line)
        if not (child := os.fork()):
            sys.exit(command(asked))  # however it ends, it never comes back to this loop
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print("late" if code == -signal.SIGALRM else code, flush=True)


def command(asked: dict) -> None:
    """What the forked process does."""
    signal.alarm(int(asked["timeout"]))
    os.chdir(asked["cwd"])
    os.environ.update(asked["env"])
    for number, (name, mode) in enumerate(STREAMS.items()):
        stream = open(Path(asked["streams"]) / name, mode)  # noqa: SIM115 - for as long as the process lives
        os.dup2(stream.fileno(), number)
        setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115
    sys.argv = ["raison", *asked["args"]]
    from raison.cli.app import main

    main()


if __name__ == "__main__":
    serve()
