"""Tables in Parquet, which pyarrow reads."""

from __future__ import annotations

from pathlib import Path

from raison.core.errors import MissingExtra
from raison.datasets.dataset_rows import Broken, Row, Rows
from raison.datasets.json_files import Json
from raison.datasets.text_files import open_error

__all__ = ["read_parquet"]


def read_parquet(path: Path) -> Rows[Json]:
    """The rows of a Parquet file; `line` counts them."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingExtra("pyarrow", "data", "Reading Parquet files") from None

    number = 0
    try:
        with ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1024):
                for record in batch.to_pylist():
                    number += 1
                    yield Row(str(path), number, record)
    except ArrowException as error:
        why = str(error).splitlines()[0]
        yield Broken(str(path), number + 1, f"it is not Parquet or damaged here ({why})")
    except OSError as error:
        raise open_error(path, error) from None
