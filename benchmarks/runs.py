"""raison run: what two workers bring, whether cost stays flat, and what the store costs.

    python benchmarks/runs.py              # writes benchmarks/results/runs.md; needs SST
    python benchmarks/runs.py --quick      # small numbers; prints and writes no file

One thread for each worker. Throughput is measured on the wall, all else in CPU time; needs two idle cores.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from measure import data_option, table, verdicts, write

from raison.core.records import Example
from raison.core.registry import methods
from raison.engine import run_methods
from raison.models.load import load
from raison.runs import checked_lines
from raison.runs import worker as run_worker
from raison.runs.driver import do_shards_alone, run
from raison.runs.planner import make_plan
from raison.runs.query import query_run
from raison.runs.queue import ShardQueue
from raison.runs.run_spec import Means, RunSpec
from raison.runs.status import Tally
from raison.runs.storage import place_of
from raison.runs.verify import verify_run
from raison.runs.worker import Worker
from raison.testing import tiny_hf

ABOUT = "(one thread a worker; throughput on the wall, the rest in CPU time)"
WORDS = "a lovely film story the is and ending cast it very dull stale warm".split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    data_option(parser)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--part", type=int, help="one of the five alone")
    parser.add_argument("--flat", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.flat:
        return one_flat(*arguments.flat)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        for number, part in enumerate(parts(place, arguments.data, arguments.quick), 1):
            if arguments.part in (None, number):
                found = part()
                print("\n".join(found), flush=True)
                if not arguments.quick:
                    write("runs", "Runs: what a corpus costs", ABOUT, number, found)


def parts(place: Path, data: Path, quick: bool) -> list[Callable[[], list[str]]]:
    return [
        lambda: workers(place, data, 60 if quick else 1000),
        lambda: flat(place, (100, 400) if quick else (1000, 20_000)),
        lambda: store(data, 40 if quick else 300),
        lambda: large(place, 2_000 if quick else 100_000),
        lambda: planned(place, data, 60 if quick else 500),
    ]


def workers(place: Path, data: Path, limit: int) -> list[str]:
    """Tokens per second of the same run by one and two workers, of a pool and of Ray."""
    spec = RunSpec(
        "sentiment",
        "sst2",
        methods=("leave_one_out",),
        split="test",
        limit=limit,
        shard_tokens=limit,
    )
    found: dict[str, float] = {}
    ways = {"pool, 1 worker": {"timeout": 600.0}, "pool, 2 workers": {"workers": 2}}
    ways |= {"Ray, 1 worker": {"ray": "local"}, "Ray, 2 workers": {"ray": "local", "workers": 2}}
    for name, way in ways.items():
        out = place / name.replace(" ", "-")
        means = Means(data_dir=str(data), **way)
        run(out, spec, means)
        sizes = json.loads((out / "plan" / "header.json").read_text())["sizes"]
        stamps = sorted(
            (path.stat().st_mtime, sizes[int(path.stem)]) for path in (out / "shards").iterdir()
        )
        # from each worker's first shard on: loading the model is paid once, whatever the corpus
        first = means.workers - 1
        found[name] = sum(size for _, size in stamps[first + 1 :]) / (
            stamps[-1][0] - stamps[first][0]
        )
    rows = [[name, f"{value:.0f}"] for name, value in found.items()]
    held = []
    for kind in ("pool", "Ray"):
        ratio = found[f"{kind}, 2 workers"] / found[f"{kind}, 1 worker"]
        held.append((f"{kind}: two workers at least 1.7 x one", f"{ratio:.2f} x", ratio >= 1.7))
    head = f"## 1. Throughput: leave_one_out of {limit} sentences of SST-2 by the sentiment model"
    return [head, "", *table(("workers", "tokens of text a second"), rows), *verdicts(held)]


def corpus(place: Path, count: int) -> Path:
    folder = place / "tiny"
    if not (folder / "config.json").exists():
        hf, tokenizer = tiny_hf("bert", "classification")
        copy.deepcopy(hf).float().save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    rng = np.random.default_rng(0)
    path = place / f"texts-{count}.csv"
    rows = (f"{' '.join(rng.choice(WORDS, size=rng.integers(5, 12)))} {k}" for k in range(count))
    path.write_text("text\n" + "\n".join(rows))
    return path


def one_flat(model: str, data: str, out: str) -> None:
    """A run in a process of its own: its CPU time and its largest memory."""
    run(out, RunSpec(model, data, methods=("gradient_norm",)))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss / 1000}))


def flat(place: Path, counts: tuple[int, int]) -> list[str]:
    """CPU time of an explanation and memory of the driver, of a small and a large corpus."""
    rows, spent, memory = [], [], []
    for count in (10, *counts):
        data = corpus(place, count)
        command = [
            sys.executable,
            __file__,
            "--flat",
            str(place / "tiny"),
            str(data),
            str(place / f"flat-{count}"),
        ]
        told = subprocess.run(
            command, capture_output=True, text=True, check=True, env=os.environ
        ).stdout
        found = json.loads(told.splitlines()[-1])
        if count == 10:
            begin = found["cpu"]  # libraries and model
            continue
        spent.append(1000 * (found["cpu"] - begin) / count)
        memory.append(found["memory"])
        rows.append([f"{count:,}", f"{spent[-1]:.2f}", f"{memory[-1]:.0f}"])
    ratio, grown = spent[1] / spent[0], memory[1] / memory[0]
    held = [
        ("cost per explanation flat within 10 %", f"{ratio:.2f} x", 0.9 <= ratio <= 1.1),
        ("memory of the driver does not grow", f"{grown:.2f} x", grown <= 1.1),
    ]
    head = "## 2. A small and a large corpus (a tiny model, gradient_norm, in one process)"
    return [head, "", *table(("texts", "CPU ms each", "largest memory, MB"), rows), *verdicts(held)]


def store(data: Path, limit: int) -> list[str]:
    """What a leave-one-out run adds to the calls that explain: both in the same run, so no other batches or moments."""
    import torch

    torch.set_num_threads(1)
    model = load("sentiment")
    spec = RunSpec("sentiment", "sst2", methods=("leave_one_out",), split="test", limit=limit)
    inside, depth = 0.0, 0

    def timed(plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal inside, depth
            clock, depth = time.process_time(), depth + 1
            try:
                return plain(*given, **named)
            finally:
                depth -= 1
                inside += time.process_time() - clock if depth == 0 else 0

        return call

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        whole = timed(
            lambda *given, **named: list(run_methods(*given, **named))
        )  # what anyone would call
        stack.enter_context(patch.object(run_worker, "run_methods", whole))
        for name in ("encode", "predict"):
            stack.enter_context(patch.object(model, name, timed(getattr(model, name))))
        where = place_of(Path(folder) / "r")
        header = make_plan(where, spec, model, data)
        worker = Worker(where, spec, Means(), model)
        clock = time.process_time()
        do_shards_alone(worker, ShardQueue(list(range(header.shards))), Tally(where, header))
        spent = time.process_time() - clock
    check = (
        "the store adds at most 3 %",
        f"{100 * (spent / inside - 1):+.1f} %",
        spent <= 1.03 * inside,
    )
    return [f"## 3. The store: leave_one_out of {limit} sentences of SST-2", *verdicts([check])]


def large(place: Path, count: int) -> list[str]:
    """Verify and ask a store of many explanations: shards of a small run, copied under other texts and keys."""
    from raison.runs.identity import key_of_work, method_identity
    from raison.runs.plan import HEADER, plan_file, plan_header_bytes, plan_header_of
    from raison.runs.store import spec_of_run

    small = place / "small"
    run(
        small,
        RunSpec(
            str(corpus(place, 200).parent / "tiny"),
            str(place / "texts-200.csv"),
            methods=("gradient_norm",),
        ),
    )
    big = place / "big"
    shutil.copytree(small, big, ignore=shutil.ignore_patterns("shards", "plan"))
    where, spec = place_of(big), spec_of_run(place_of(small))
    identity = json.loads((big / "environment.json").read_text())["model"]
    known = method_identity(methods.build("gradient_norm"))
    rows = [
        json.loads(b)
        for p in sorted((small / "shards").iterdir())
        for b in checked_lines.read_checked_lines(p.read_bytes(), "x").bodies
    ]
    counts: list[int] = []
    for shard in range(0, count, 1000):
        made = []
        for index in range(shard, min(shard + 1000, count)):
            row = dict(rows[index % len(rows)])
            row["index"] = index
            row["example"] = {
                **row["example"],
                "text": f"{row['example']['text']} {index}",
                "id": str(index),
            }
            row["key"] = key_of_work(identity, spec, known, Example.from_dict(row["example"]))
            made.append(row)
        number = shard // 1000
        where.put(f"shards/{number:06d}.jsonl", checked_lines.pack_lines(made, [number]))
        texts = [{"index": row["index"], "tokens": 10, "example": row["example"]} for row in made]
        where.put(
            plan_file(number),
            checked_lines.pack_lines([{"chunks": [list(range(len(made)))]}, *texts], [number]),
        )
        counts.append(len(made))
    header = plan_header_of(place_of(small))
    assert header is not None
    sizes = tuple(10 * each for each in counts)
    many = {
        "shards": len(counts),
        "texts": count,
        "tokens": 10 * count,
        "sizes": sizes,
        "counts": tuple(counts),
    }
    where.put(HEADER, plan_header_bytes(asdict(replace(header, **many))))
    clock = time.perf_counter()
    found = verify_run(where)
    looked = time.perf_counter() - clock
    assert found.whole and found.records == count
    sql = "select predicted, count(*), avg(list_max(scores)) from explanations group by 1"
    clock = time.perf_counter()
    query_run(where, sql)  # the first question exports
    first = time.perf_counter() - clock
    clock = time.perf_counter()
    query_run(where, sql)
    asked = time.perf_counter() - clock
    held = [
        (f"{count:,} explanations verified in under 60 s", f"{looked:.1f} s", looked < 60),
        (
            "an aggregate query in under 2 s",
            f"{asked:.2f} s; {first:.1f} s with the export before it",
            asked < 2,
        ),
    ]
    return [f"## 4. A store of {count:,} explanations", *verdicts(held)]


COSTED = ("gradient_norm", "integrated_gradients(steps=32)", "leave_one_out", "refined")
CORPUS, CORES = 1e9, 32  # tokens; cores of a machine
MACHINES = (1, 10, 100)


def planned(place: Path, data: Path, limit: int) -> list[str]:
    """What a large corpus would take: explaining goes to all cores, planning stays with one process."""
    rows, head = [], ["method", "tokens a second and core", "bytes a token", "core-hours"]
    model = load("sentiment")
    clock = time.process_time()
    read = make_plan(
        place_of(place / "planned"), RunSpec("sentiment", "sst2", split="train"), model, data
    )
    planning = read.tokens / (time.process_time() - clock)
    for name in COSTED:
        out = place / f"cost-{name.partition('(')[0]}"
        spec = RunSpec("sentiment", "sst2", methods=(name,), split="test", limit=limit)
        where = place_of(out)
        header = make_plan(where, spec, model, data)
        worker = Worker(where, spec, Means(), model)
        clock = time.process_time()
        do_shards_alone(worker, ShardQueue(list(range(header.shards))), Tally(where, header))
        rate = header.tokens / (time.process_time() - clock)
        size = sum(path.stat().st_size for path in (out / "shards").iterdir()) / header.tokens
        hours = [
            CORPUS / planning / 3600 + CORPUS / rate / 3600 / CORES / count for count in MACHINES
        ]
        rows.append(
            [
                name,
                f"{rate:,.0f}",
                f"{size:.0f}",
                f"{CORPUS / rate / 3600:,.0f}",
                *(f"{h:,.1f} h" for h in hours),
            ]
        )
    head += [f"{count} machine{'s' * (count > 1)}" for count in MACHINES]
    return [
        "## 5. A planned corpus of 10⁹ tokens (sentiment, sentences of SST-2, one thread)", "",
        f"Planning reads and tokenizes {planning:,.0f} tokens a second in one process. Hours on machines of {CORES} "
        "such cores = planning + core-hours / cores.", "",
        *table(head, rows),
    ]  # fmt: skip


if __name__ == "__main__":
    main()
