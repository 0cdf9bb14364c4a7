"""Export of a run as a table: Arrow rows in a Parquet file, the same bytes for the same results, or a folder of
Hugging Face's datasets.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from raison.core.errors import InputError, MissingExtra
from raison.core.outputs import check_folder, check_outputs, replacing_output
from raison.runs.checked_lines import line_with_replaced_surrogates
from raison.runs.result_records import COLUMNS, ExplanationRow, columns_of_numbers, explanation_rows
from raison.runs.storage import Place, Unwritten
from raison.runs.store import records_of_run

if TYPE_CHECKING:
    import pyarrow

__all__ = ["check_dataset_to_export", "export_run", "run_to_parquet"]

GROUP = 2_000  # rows that are written together
DATASET = re.compile(
    r"dataset_info\.json|state\.json|data-\d+-of-\d+\.arrow"
)  # files of a folder of `datasets`

T = TypeVar("T")


def export_run(place: Place, out: Path, form: str = "parquet") -> int:
    """Write all explanations as a Parquet file, or as a folder of Hugging Face's `datasets`; returns the rows."""
    if form == "parquet":
        check_outputs([out], force=True, folders=True)
        return run_to_parquet(place, out)
    if form == "datasets":
        check_dataset_to_export(out, force=True)
        return run_to_dataset(place, out)
    raise InputError(f"A run is exported as parquet or datasets, not {form!r}.")


def check_dataset_to_export(out: Path, *, force: bool = False) -> None:
    """Refuse a folder that can't become one of `datasets`; with `force` an earlier one may be replaced."""
    try:
        earlier = any(out.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        earlier = False
    check_folder(out, lambda name: DATASET.fullmatch(name) is not None, "a folder of datasets")
    if earlier and not force:
        raise InputError(
            f"{str(out)!r} is there already: replace it with --force, or name another folder."
        )


def run_to_dataset(place: Place, out: Path) -> int:
    """Write a folder of `datasets`; returns the rows."""
    try:
        import datasets
    except ImportError:
        raise MissingExtra("datasets", "data", "Exporting to Hugging Face datasets") from None
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=".", dir=out.parent
    ) as name:  # beside it: so it can be put in place
        scratch = Path(name)
        table = scratch / "explanations.parquet"
        folder = scratch / "made"
        count = run_to_parquet(place, table)
        datasets.Dataset.from_parquet(str(table), cache_dir=name).save_to_disk(str(folder))
        if out.exists():
            os.replace(out, scratch / "old")
        os.replace(folder, out)
    return count


def run_to_parquet(place: Place, out: Path) -> int:
    """Write a Parquet file; returns the rows."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("pyarrow", "data", "Exporting a run") from None
    rows = rows_of_run(place)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{str(place)!r} has no explanations yet: run it first.")
    # the first texts are the longest, and may all have failed: then the numbers' names stand further behind
    measured = next((row for row in rows_of_run(place) if row.numbers), first)
    schema = arrow_schema_of_run(columns_of_numbers(measured.numbers))
    count = 0
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with (
            replacing_output(out) as half,
            open(half, "wb") as file,
            parquet.ParquetWriter(file, schema, compression="zstd") as writer,
        ):
            for group in groups_of_run_rows(rows_of_run(place), GROUP):
                writer.write_table(arrow_table_of_run(group, schema))
                count += len(group)
    except OSError as error:
        raise Unwritten(
            f"{str(out)!r} could not be written ({error.strerror or error}): make room first."
        ) from None
    return count


def rows_of_run(place: Place) -> Iterator[ExplanationRow]:
    for record in records_of_run(place):
        yield from explanation_rows(record)


def groups_of_run_rows(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Neighbours, so many at a time."""
    waiting = iter(items)
    while group := list(islice(waiting, size)):
        yield group


def arrow_table_of_run(rows: list[ExplanationRow], schema: pyarrow.Schema) -> pyarrow.Table:
    """Some rows as a table."""
    import pyarrow

    columns: dict[str, list[object]] = {name: [] for name in schema.names}
    for row in rows:
        values = row.columns()
        for name in schema.names:
            columns[name].append(values.get(name))
    try:
        return pyarrow.table(columns, schema=schema)
    except UnicodeEncodeError:
        return pyarrow.table(exported_value_with_clean_texts(columns), schema=schema)


def exported_value_with_clean_texts(value: object) -> object:
    """A value whose texts others can read."""
    if isinstance(value, str):
        return line_with_replaced_surrogates(value)
    if isinstance(value, list):
        return [exported_value_with_clean_texts(each) for each in value]
    if isinstance(value, dict):
        return {key: exported_value_with_clean_texts(each) for key, each in value.items()}
    return value


def arrow_schema_of_run(number_columns: Mapping[str, object]) -> pyarrow.Schema:
    """Columns in a fixed order; those of numbers by their names in a row that has some."""
    import pyarrow

    text, number, whole = pyarrow.string(), pyarrow.float64(), pyarrow.int64()
    kinds = {
        "index": whole,
        "place": whole,
        "probability": number,
        "names": pyarrow.list_(text),
        "scores": pyarrow.list_(number),
        "selected": pyarrow.list_(pyarrow.bool_()),
        "order": pyarrow.list_(whole),
    }
    fields = [(name, kinds.get(name, text)) for name in COLUMNS]
    for name, value in number_columns.items():
        fields.append((name, pyarrow.list_(number) if isinstance(value, list) else number))
    return pyarrow.schema(fields)
