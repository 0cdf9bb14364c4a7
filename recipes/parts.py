"""A recipe of many jobs in parts that can be run alone: each job for each seed, none that is done already."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from raison.core import progress
from raison.core.errors import RaisonError
from raison.training.fit import progress_log_lines

__all__ = ["run_parts"]


def run_parts(
    about: str,
    known: Mapping[str, Sequence[Any]],
    seeds: Callable[[Any], int],
    work: Callable[[Any, int, argparse.Namespace], None],
    options: Mapping[str, str] | None = None,
    optional: Mapping[str, str] | None = None,
) -> int:
    """The command line of a recipe: `work(job, seed, arguments)` for all jobs of the parts that are asked for.

    `options` and `optional` are more places that it wants and takes, by name, with what is said of them.
    """
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    named = {"data": "folder of the data sets", "out": "folder of the models", **(options or {})}
    for name, said in {**named, **(optional or {})}.items():
        parser.add_argument(f"--{name}", type=Path, required=name in named, help=said)
    parser.add_argument(
        "--part", action="append", choices=list(known), help="default: all, in this order"
    )
    parser.add_argument("--seeds", type=int, help="at most so many")
    arguments = parser.parse_args()
    start = time.process_time()
    try:
        with progress.listen(progress_log_lines(every=60.0)):
            for part in arguments.part or known:
                for job in known[part]:
                    for seed in range(min(seeds(job), arguments.seeds or seeds(job))):
                        work(job, seed, arguments)
                print(
                    f"{part}: {(time.process_time() - start) / 60:.0f} CPU minutes so far",
                    flush=True,
                )
    except RaisonError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0
