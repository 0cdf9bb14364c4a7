"""What the benchmarks share: CPU time, memory in a process of its own, sentences, tables."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import gzip
import json
import os
import re
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

__all__ = [
    "HERE",
    "cpu",
    "data_option",
    "grown",
    "log",
    "peak_of",
    "sentences",
    "table",
    "verdicts",
    "write",
]

HERE = Path(__file__).resolve().parent


def log(*words: object) -> None:
    print(*words, file=sys.stderr, flush=True)


def cpu(action: Callable[[], Any]) -> float:
    """Seconds of processor time."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        action()
    return time.process_time() - start


def grown(warm: Callable[[], Any], action: Callable[[], Any]) -> float:
    """How many MB an action holds at most beyond what the process held before it, after a warm-up.

    Linux forgets the largest resident size on request; elsewhere loading the model may have held more.
    """
    warm()
    give_back()
    forget = Path("/proc/self/clear_refs")
    if not forget.exists():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        action()
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    forget.write_text("5")
    before = resident("VmHWM")
    action()
    return (resident("VmHWM") - before) / 1024


def give_back() -> None:
    """Ask the allocator for what the warm-up freed, or the action would seem to need nothing."""
    gc.collect()
    with contextlib.suppress(
        OSError, AttributeError
    ):  # another C library than glibc keeps what it keeps
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def resident(what: str) -> int:
    """A line of /proc/self/status, in kB."""
    text = Path("/proc/self/status").read_text()
    return int(re.search(rf"{what}:\s*(\d+)", text)[1])  # type: ignore[index]


def peak_of(script: str, *arguments: str) -> str:
    """What a script prints last when it is told to measure one side (--peak NAME) in a process of its own."""
    found = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)
    if found.returncode:
        log(found.stderr)
        return "-"
    return f"{json.loads(found.stdout.splitlines()[-1]):.0f}"


def data_option(parser: argparse.ArgumentParser) -> None:
    beside = HERE.parents[1] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("RAISON_DATA", beside)))


def sentences(data: Path, count: int) -> list[str]:
    """The first sentences of SST-2's development set."""
    path = data / "sst2" / "dev.tsv.gz"
    if not path.is_file():
        raise SystemExit("SST-2 is needed: pass its parent folder with --data or set RAISON_DATA")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.split("\t")[0] for line in file][:count]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


def verdicts(checks: Sequence[tuple[str, str, bool]]) -> list[str]:
    """What was required, what was measured, and whether it is met."""
    return [
        "",
        *table(
            ("required", "measured", "met"),
            [(a, b, "yes" if c else "**NO**") for a, b, c in checks],
        ),
    ]


def machine() -> str:
    path = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.*)", path.read_text()) if path.is_file() else None
    return found.group(1) if found else "an unknown processor"


def write(name: str, title: str, about: str, number: int, lines: Sequence[str]) -> None:
    """Put a section ("## 2. …") into the results of a benchmark; the others stay as they are."""
    results = HERE / "results" / f"{name}.md"
    sections: dict[int, str] = {}
    if results.is_file():
        for part in results.read_text(encoding="utf-8").split("\n## ")[1:]:
            sections[int(part.split(".")[0])] = "## " + part.strip()
    sections[number] = "\n".join(lines).strip()
    versions = " ".join(f"{package} {version(package)}," for package in ("torch", "transformers"))
    head = f"# {title}\n\n`python benchmarks/{name}.py` {about}\n{machine()}, {versions[:-1]}."
    results.write_text(
        "\n\n".join([head, *(sections[n] for n in sorted(sections))]) + "\n", encoding="utf-8"
    )
