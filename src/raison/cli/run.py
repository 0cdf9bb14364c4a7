"""raison run, status, report and store (verify, repair, compact, export, query): a corpus explained by a run."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from raison.cli import options
from raison.cli.settings_options import Chosen
from raison.core.errors import InputError

if TYPE_CHECKING:
    from raison.runs.run_spec import RunSpec
    from raison.runs.status import Status

Spec = Annotated[
    Optional[Path],
    typer.Argument(help="A TOML file with model, data, methods, …; or use the flags."),
]
Out = Annotated[str, typer.Option("--out", help="Folder (or URL) of the run.")]
Model = Annotated[
    Optional[str],
    typer.Option("-m", "--model", help="Name (raison ls models), folder or hub name."),
]
Data = Annotated[Optional[str], typer.Option("-d", "--data", help="A data set or a file(text=…).")]
Methods = Annotated[
    Optional[list[str]], typer.Option("-M", "--method", help="A method or search; repeat it.")
]
Metrics = Annotated[Optional[list[str]], typer.Option("--metric", help="A metric; repeat it.")]
Split = Annotated[Optional[str], typer.Option("--split", help="Part of the data set.")]
Limit = Annotated[Optional[int], typer.Option("--limit", help="Only the first so many texts.")]
Target = Annotated[Optional[str], typer.Option("--target", help="predicted, gold, given or all.")]
Units = Annotated[
    Optional[str], typer.Option("--units", help="token, word, sentence, passage or slot.")
]
Removal = Annotated[Optional[str], typer.Option("--removal", help="What absence means.")]
Seed = Annotated[Optional[int], typer.Option("--seed", help="Seed of everything random.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in that folder.")]
Retry = Annotated[bool, typer.Option("--retry", help="With --resume: try again what failed.")]
Workers = Annotated[int, typer.Option("--workers", help="Processes; with Ray, actors.")]
Threads = Annotated[int, typer.Option("--threads", help="Of each worker.")]
Timeout = Annotated[
    Optional[float],
    typer.Option("--timeout", help="Seconds for a text; what takes longer is given up."),
]
Memory = Annotated[
    Optional[int], typer.Option("--memory", help="Megabytes beyond the model, of each worker.")
]
Ray = Annotated[Optional[str], typer.Option("--ray", help="Address of a Ray cluster, or local.")]
Gpus = Annotated[float, typer.Option("--gpus", help="Share of a GPU for each Ray worker.")]
Shard = Annotated[
    Optional[int],
    typer.Option("--shard-tokens", help="Tokens of a shard, which is done whole or not."),
]
Where = Annotated[str, typer.Argument(help="Folder (or URL) of a run.")]
Sql = Annotated[str, typer.Argument(help="select … from explanations …")]


def run_command(
    spec: Spec = None,
    out: Out = "",
    model: Model = None,
    data: Data = None,
    method: Methods = None,
    metric: Metrics = None,
    split: Split = None,
    limit: Limit = None,
    target: Target = None,
    units: Units = None,
    removal: Removal = None,
    seed: Seed = None,
    shard_tokens: Shard = None,
    resume: Resume = False,
    retry: Retry = False,
    workers: Workers = 1,
    threads: Threads = 1,
    timeout: Timeout = None,
    memory: Memory = None,
    ray: Ray = None,
    gpus: Gpus = 0.0,
    data_dir: options.DataDir = None,
    skip_broken: options.SkipBroken = False,
    device: options.Device = None,
    allow_pickle: options.AllowPickle = False,
    trust_remote_code: options.RemoteCode = False,
) -> None:
    """Explain a corpus: killed at any moment, it goes on with --resume and gives the same bytes."""
    from raison.runs.run_spec import Means, read_run_spec

    flags: Chosen = dict(
        model=model, data=data, methods=tuple(method) if method else None, metrics=tuple(metric) if metric else None,
        split=split, limit=limit, target=target, units=units, removal=removal, seed=seed, shard_tokens=shard_tokens,
        skip_broken=skip_broken or None,
    )  # fmt: skip
    given = {name: value for name, value in flags.items() if value is not None}
    if not out:
        raise InputError("A run needs a folder: name one with --out.")
    wanted: RunSpec | None = None
    if spec is not None:
        wanted = read_run_spec(spec, **given)
    elif not resume:
        wanted = run_spec_of_flags(given)
    folder = str(data_dir) if data_dir is not None else None
    means = Means(
        workers=workers, threads=threads, timeout=timeout, memory=memory, data_dir=folder,
        device=device, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code, ray=ray, gpus=gpus,
    )  # fmt: skip
    from raison.cli.progress import waiting

    with waiting("loading the libraries") as wait:
        from raison.runs.driver import run as start

        if wanted is None and given:
            wanted = spec_of_run_to_resume(out, given)
        wait(f"running {out}")
        ended = start(out, wanted, means, resume=resume, retry=retry)
    print_end_of_run(ended, out)


def spec_of_run_to_resume(out: str, given: Mapping[str, object]) -> RunSpec:
    """The spec of a run that is there, with what is given otherwise."""
    from raison.runs.run_spec import spec_with_changes
    from raison.runs.storage import place_of
    from raison.runs.store import spec_of_run

    if "spec.json" not in place_of(out):
        return run_spec_of_flags(given)
    return spec_with_changes(spec_of_run(place_of(out)), given)


def print_end_of_run(ended: Status, out: str) -> None:
    """Say on stderr what a run has done; refuse one in which every text failed."""
    from raison.runs.storage import place_of
    from raison.runs.store import spec_of_run

    for notice in ended.notices:
        print(f"raison: {notice}.", file=sys.stderr)
    failed = f", {ended.failed} failed" if ended.failed else ""
    print(
        f"{ended.texts_done} of {ended.texts} texts are explained{failed}: {out}", file=sys.stderr
    )
    if ended.failed and ended.failed == ended.texts_done * len(spec_of_run(place_of(out)).methods):
        raise InputError(
            "Every text failed: `raison store query` tells why (select id, failed from explanations)."
        )


def run_spec_of_flags(given: Mapping[str, object]) -> RunSpec:
    """The spec of a run without a file."""
    from raison.runs.run_spec import RunSpec

    flags = {
        "model": "-m MODEL (raison ls models, a folder or a hub name)",
        "data": "-d DATA (raison ls datasets)",
    }
    missing = [flag for name, flag in flags.items() if name not in given]
    if missing:
        raise InputError(
            f"A run needs a model and data: add {' and '.join(missing)}, or name a TOML file with them."
        )
    return RunSpec.of(given, "The command")


def status_command(where: Where, json: options.OneJson = False) -> None:
    """Say how far a run is."""
    from raison.runs.status import status_of_run
    from raison.runs.storage import place_of

    told = status_of_run(place_of(where)).to_json()
    if json:
        import json as writer

        print(writer.dumps(told))
        return
    for name, value in told.items():
        if name not in ("notices", "process", "host") and value is not None:
            print(f"{name.replace('_', ' ')}: {value}")
    for notice in told.get("notices", ()):
        print(f"notice: {notice}")


def report_command(
    where: Where,
    json: options.OneJson = False,
    out: Annotated[
        Optional[list[Path]], typer.Option("--out", help="Write it: .md, .csv, .json or .html.")
    ] = None,
    force: options.Force = False,
) -> None:
    """Turn a run into the tables of an evaluation, and its page."""
    from raison.cli.evaluate import check_endings_of_evaluation_files, publish_evaluation
    from raison.core.outputs import check_outputs

    check_endings_of_evaluation_files(out or [])
    check_outputs(out or [], force=force, inputs=run_files(where))
    from raison.cli.progress import waiting

    with waiting("reading the run"):
        from raison.runs.run_report import evaluation_of_run as made
        from raison.runs.storage import place_of

        found = made(place_of(where))
    publish_evaluation(found, json, out or [])


def verify_command(where: Where) -> None:
    """Read every byte of a run: checksums, counts and keys."""
    from raison.runs.storage import place_of
    from raison.runs.verify import verify_run as looked

    found = looked(place_of(where))
    for each in found.damage:
        print(f"raison: {each}.", file=sys.stderr)
    missing = ""
    if found.missing:
        missing = f", {len(found.missing)} shards are not done yet"
    print(f"{found.records} records in {found.shards} shards, {found.failed} failed{missing}")
    if found.damage:
        raise SystemExit(1)


def repair_command(where: Where) -> None:
    """Put damaged files aside, so that --resume makes their shards again."""
    from raison.runs.maintenance import repair_run as mended
    from raison.runs.run_lock import driver_lock
    from raison.runs.storage import place_of
    from raison.runs.store import spec_of_run

    place = place_of(where)
    spec_of_run(place)  # a mistyped name is no run
    with driver_lock(place):
        said = mended(place)
    for sentence in said or ["Nothing is damaged."]:
        print(sentence)


def compact_command(where: Where) -> None:
    """Put many shards into few files."""
    from raison.runs.maintenance import compact_shards as packed
    from raison.runs.run_lock import driver_lock
    from raison.runs.storage import place_of
    from raison.runs.store import spec_of_run

    place = place_of(where)
    spec_of_run(place)  # a mistyped name is no run
    with driver_lock(place):
        before, after = packed(place)
    print(f"{before} files became {after}")


def export_command(
    where: Where,
    out: Annotated[Path, typer.Argument(help="A .parquet file, or a folder for datasets.")],
    form: Annotated[str, typer.Option("--format", help="parquet or datasets.")] = "parquet",
    force: options.Force = False,
) -> None:
    """Write all explanations of a run as one table."""
    from raison.core.outputs import check_outputs
    from raison.runs.export_run import check_dataset_to_export
    from raison.runs.export_run import export_run as written
    from raison.runs.storage import place_of

    if form == "parquet":
        check_outputs([out], force=force, inputs=run_files(where), folders=True)
    elif form == "datasets":
        check_dataset_to_export(out, force=force)
    print(f"{written(place_of(where), out, form)} rows: {out}", file=sys.stderr)


def run_files(where: str) -> list[Path]:
    """What makes a run on this machine, which nothing is written over by whatever link."""
    from raison.runs.storage import Local, place_of

    place = place_of(where)
    names = ("spec.json", "environment.json", "plan", "shards", "costs")
    if not isinstance(place, Local):
        return []
    return [place.root / name for name in names]


def query_command(where: Where, sql: Sql, json: options.OneJson = False) -> None:
    """Ask a run in SQL."""
    from raison.runs.query import query_run as asked
    from raison.runs.storage import place_of

    names, rows = asked(place_of(where), sql)
    if json:
        import json as writer

        told = []
        for row in rows:
            values = map(finite_json_value_of_run, row)
            told.append(dict(zip(distinct_columns_of_run(names), values, strict=True)))
        print(writer.dumps(told, default=str, ensure_ascii=False, allow_nan=False))
        return
    from rich.table import Table
    from rich.text import Text

    from raison.show.terminal.style import terminal_console
    from raison.show.text_formats import clean_text

    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    for name in names:
        table.add_column(Text(clean_text(name)))  # no markup: texts may hold [brackets]
    for row in rows:
        cells = []
        for value in row:
            written = f"{value:.4f}" if isinstance(value, float) else str(value)
            cells.append(Text(clean_text(written)))
        table.add_row(*cells)
    terminal_console(highlight=False).print(table)


def distinct_columns_of_run(names: list[str]) -> list[str]:
    """Columns of one name told apart: a, a_2."""
    distinct: list[str] = []
    for number, name in enumerate(names):
        before = names[:number].count(name)
        distinct.append(f"{name}_{before + 1}" if before else name)
    return distinct


def finite_json_value_of_run(value: object) -> object:
    """What JSON holds; NaN and infinity as null, also in lists and structs."""
    if isinstance(value, dict):
        return {str(key): finite_json_value_of_run(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_json_value_of_run(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
