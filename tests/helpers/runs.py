"""Runs for tests: a tiny corpus, its spec, and processes that are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from raison.runs.export_run import export_run
from raison.runs.plan import plan_header_of
from raison.runs.run_spec import RunSpec
from raison.runs.storage import place_of

__all__ = [
    "METHODS",
    "WORDS",
    "actors_below",
    "children_of",
    "counts_of",
    "killed",
    "parquet_of",
    "shards_of",
    "spec_of",
    "write_texts",
]

WORDS = "a lovely film story the is and ending cast it very dull stale warm".split()
METHODS = ("leave_one_out", "gradient_norm")


def write_texts(path: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{' '.join(rng.choice(WORDS, size=rng.integers(3, 15)))} {k}" for k in range(count)]
    rows.append(rows[0])
    path.write_text("text,label\n" + "\n".join(f"{row},positive" for row in rows))


def spec_of(folder: Path, **more) -> RunSpec:
    base = {
        "model": str(folder / "model"), "data": str(folder / "data.csv"), "methods": METHODS,
        "metrics": ("comprehensiveness",), "shard_tokens": 250, "chunk_tokens": 80,
    }  # fmt: skip
    return RunSpec(**{**base, **more})


def parquet_of(place: Path) -> bytes:
    out = place.parent / f"{place.name}.parquet"
    export_run(place_of(place), out)
    return out.read_bytes()


def killed(
    folder: Path, place: Path, workers: int, kills: int, seed: int, ray: bool = False
) -> int:
    """Drive a run by the command line, killing driver or workers at random moments until it is done; kills done."""
    rng = random.Random(seed)
    command = [
        sys.executable,
        "-m",
        "raison",
        "run",
        "--out",
        str(place),
        "--resume",
        "--workers",
        str(workers),
    ]
    if ray:
        command += ["--ray", "local"]
    count = 0
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    while True:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
        )
        try:
            while process.poll() is None and count < kills:
                time.sleep(rng.uniform(0.05, 3.0))
                victims = children_of(process.pid) if workers > 1 and rng.random() < 0.6 else []
                victim = rng.choice(victims) if victims else process.pid
                try:
                    os.kill(victim, signal.SIGKILL)
                    count += 1
                except ProcessLookupError:
                    continue
                if victim == process.pid:
                    break
            code = process.wait()
        finally:
            told = process.stderr.read().decode()
            process.stderr.close()
        if code == 0:
            return count
        assert code == -signal.SIGKILL, told


def children_of(pid: int) -> list[int]:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    names = [(int(child), Path(f"/proc/{child}/cmdline")) for child in found]
    return [child for child, path in names if path.exists() and b"spawn_main" in path.read_bytes()]


def actors_below(pid: int, title: bytes = b"ray::WorkerActor") -> list[int]:
    """Processes of Ray's that descend from a process, by how their command line begins: workers, mostly."""
    parents: dict[int, int] = {}
    names: dict[int, bytes] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            names[int(path.name)] = (path / "cmdline").read_bytes()
        except (OSError, IndexError):
            continue

    def below(child: int) -> bool:
        while child in parents and child != pid:
            child = parents[child]
        return child == pid

    return [child for child, name in names.items() if name.startswith(title) and below(child)]


def shards_of(place: Path) -> list[Path]:
    return sorted((place / "shards").iterdir())


def counts_of(place):
    return plan_header_of(place_of(place)).counts
