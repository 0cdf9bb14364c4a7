"""A run as a table: Parquet, byte for byte the same for the same results; and questions to it in SQL."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from raison.core.errors import InputError, MissingExtra
from raison.core.evaluation import target_probability
from raison.core.findings import PredictionSummary
from raison.core.outputs import check_folder, check_outputs, replacing
from raison.runs.lines import plain
from raison.runs.storage import Local, Place, Unwritten
from raison.runs.store import records

__all__ = ["export", "query", "rows_of"]

GROUP = 2_000  # rows that are written together
TABLE = "export/explanations.parquet"
DATASET = re.compile(r"dataset_info\.json|state\.json|data-\d+-of-\d+\.arrow")  # files of a folder of `datasets`
MADE_OF = "export/made_of.json"


def rows_of(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One row for each explanation of a record, or for its failure."""
    example = record["example"]
    head = {
        "key": record["key"],
        "index": record["index"],
        "id": example["id"],
        "text": example["text"],
        "pair": example["pair"],
        "label": None if example["label"] is None else str(example["label"]),
        "method": record["method"],
        "failed": record["failed"]["reason"] if "failed" in record else None,
    }
    if "failed" in record:
        yield {**head, **dict.fromkeys(EMPTY), "numbers": {}}
        return
    numbers = record.get("numbers") or [{} for _ in record["explanations"]]
    for place, (each, told) in enumerate(zip(record["explanations"], numbers, strict=True)):
        prediction = prediction_of(each)
        yield {
            **head,
            "place": place,
            "target": each["target"]["text"],
            "predicted": None if prediction is None else prediction.text,
            "probability": target_probability(prediction),
            "removal": each["removal"],
            "units": each["units"]["level"],
            "names": each["units"]["names"],
            "scores": each["scores"],
            "selected": each["selected"],
            "order": each["order"],
            "numbers": told,
        }


def prediction_of(explanation: Mapping[str, Any]) -> PredictionSummary | None:
    """The prediction in the JSON of an explanation."""
    found = explanation["prediction"]
    return None if found is None else PredictionSummary.from_dict(found)


EMPTY = ("place", "target", "predicted", "probability", "removal", "units", "names", "scores", "selected", "order")


def flat(numbers: dict[str, Any]) -> dict[str, Any]:
    """Numbers of metrics as columns; a share has two, the F1 of averages four, a curve is a list."""
    made: dict[str, Any] = {}
    for key, value in numbers.items():
        if isinstance(value, list):
            made[f"{key}_part"], made[f"{key}_whole"] = value[:2]
            if len(value) == 4:  # the F1 of averages: first the precision, then the recall
                made[f"{key}_recall_part"], made[f"{key}_recall_whole"] = value[2:]
        else:
            made[key] = value["curve"] if isinstance(value, dict) else value
    return made


def export(place: Place, out: Path, form: str = "parquet") -> int:
    """Write all explanations as a Parquet file, or as a folder of Hugging Face's `datasets`; returns the rows."""
    if form not in ("parquet", "datasets"):
        raise InputError(f"A run is exported as parquet or datasets, not {form!r}.")
    if form == "parquet":
        check_outputs([out], force=True, folders=True)
        return to_parquet(place, out)
    try:
        import datasets
    except ImportError:
        raise MissingExtra("datasets", "data", "Exporting to Hugging Face datasets") from None
    check_dataset(out, force=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".", dir=out.parent) as scratch:  # beside it: so it can be put in place
        table, made = Path(scratch) / "explanations.parquet", Path(scratch) / "made"
        count = to_parquet(place, table)
        datasets.Dataset.from_parquet(str(table), cache_dir=scratch).save_to_disk(str(made))
        if out.exists():
            os.replace(out, Path(scratch) / "old")
        os.replace(made, out)
    return count


def check_dataset(out: Path, *, force: bool = False) -> None:
    """Refuse a folder that can't become one of `datasets`; with `force` an earlier one may be replaced."""
    try:
        earlier = any(out.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        earlier = False
    check_folder(out, lambda name: DATASET.fullmatch(name) is not None, "a folder of datasets")
    if earlier and not force:
        raise InputError(f"{str(out)!r} is there already: replace it with --force, or name another folder.")


def to_parquet(place: Place, out: Path) -> int:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("pyarrow", "data", "Exporting a run") from None
    every = (row for record in records(place) for row in rows_of(record))
    first = list(islice(every, GROUP))
    if not first:
        raise InputError(f"{str(place)!r} has no explanations yet: run it first.")
    # the first texts are the longest, and may all have failed: then the numbers' names stand further behind
    told = next((flat(row["numbers"]) for record in records(place) for row in rows_of(record) if row["numbers"]), {})
    schema = schema_of(told, arrow)
    count = 0
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with (
            replacing(out) as half,
            open(half, "wb") as file,
            parquet.ParquetWriter(file, schema, compression="zstd") as writer,
        ):
            group = first
            while group:
                columns = {name: [] for name in schema.names}  # type: ignore[var-annotated]
                for row in group:
                    whole = {**{k: v for k, v in row.items() if k != "numbers"}, **flat(row["numbers"])}
                    for name in schema.names:
                        columns[name].append(whole.get(name))
                try:
                    table = arrow.table(columns, schema=schema)
                except UnicodeEncodeError:
                    table = arrow.table(cleaned(columns), schema=schema)
                writer.write_table(table)
                count += len(group)
                group = list(islice(every, GROUP))
    except OSError as error:
        raise Unwritten(f"{str(out)!r} could not be written ({error.strerror or error}): make room first.") from None
    return count


def cleaned(value: Any) -> Any:
    """All texts as others can read them."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [cleaned(each) for each in value]
    return {key: cleaned(each) for key, each in value.items()} if isinstance(value, dict) else value


def schema_of(told: dict[str, Any], arrow: Any) -> Any:
    """Columns in a fixed order; those of numbers by their names in a row that has some."""
    text, number, whole = arrow.string(), arrow.float64(), arrow.int64()
    fields = [
        ("key", text), ("index", whole), ("place", whole), ("id", text), ("text", text), ("pair", text),
        ("label", text), ("method", text), ("target", text), ("predicted", text), ("probability", number),
        ("removal", text), ("units", text), ("names", arrow.list_(text)), ("scores", arrow.list_(number)),
        ("selected", arrow.list_(arrow.bool_())), ("order", arrow.list_(whole)), ("failed", text),
    ]  # fmt: skip
    fields += [(name, arrow.list_(number) if isinstance(value, list) else number) for name, value in told.items()]
    return arrow.schema(fields)


def contents(place: Local) -> bytes:
    """The table and what it was made of: names, sizes and times of the files."""
    shards = sorted((place.root / "shards").glob("*.jsonl"))
    found = [(path.name, path.stat()) for path in (place.root / TABLE, *shards) if path.is_file()]
    return json.dumps([[name, stat.st_size, stat.st_mtime_ns] for name, stat in found]).encode()


def query(place: Place, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Ask the table `explanations` something; it is exported first where that was not done since the last shard."""
    if not isinstance(place, Local):
        raise InputError("A query reads a run on this machine: export it to Parquet, and ask that.")
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("duckdb", "runs", "Asking a run in SQL") from None
    table = place.root / TABLE
    if not table.is_file() or place.get(MADE_OF) != contents(place):
        to_parquet(place, table)
        place.put(MADE_OF, contents(place))
    from pyarrow import dataset, fs

    try:
        rows = dataset.dataset(str(table), format="parquet", filesystem=fs.LocalFileSystem())
    except UnicodeEncodeError:
        raise InputError(f"{str(place)!r} has a name that is no Unicode: give the run folder another.") from None
    with duckdb.connect() as base:
        # it is given the rows, not the name of a file, which it would read as a pattern; so it need not open any
        base.register("explanations", rows)
        base.execute("set enable_external_access = false")
        base.execute("set python_enable_replacements = false")
        try:
            asked = base.extract_statements(sql)
            if len(asked) != 1 or asked[0].type != duckdb.StatementType.SELECT:
                raise InputError("A question is one select statement: select … from explanations …")
            found = base.execute(asked[0])
            names = [column[0] for column in found.description or []]
            return names, found.fetchall()
        except duckdb.Error as error:
            raise InputError(f"The question can't be answered ({str(error).splitlines()[0]}).") from None
