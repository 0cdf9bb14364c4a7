"""Queries to a run in SQL."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from raison.core.errors import InputError, MissingExtra
from raison.runs.export_run import run_to_parquet
from raison.runs.storage import Local, Place

if TYPE_CHECKING:
    import duckdb

__all__ = ["query_run"]

TABLE = "export/explanations.parquet"
MADE_OF = "export/made_of.json"


def query_run(place: Place, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names and rows of an answer from the table `explanations`, which is exported first where shards are newer."""
    if not isinstance(place, Local):
        raise InputError("A query reads a run on this machine: export it to Parquet, and ask that.")
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("duckdb", "runs", "Asking a run in SQL") from None
    table = place.root / TABLE
    if not table.is_file() or place.get(MADE_OF) != facts_of_queried_files(place):
        run_to_parquet(place, table)
        place.put(MADE_OF, facts_of_queried_files(place))
    from pyarrow import dataset, fs

    try:
        rows = dataset.dataset(str(table), format="parquet", filesystem=fs.LocalFileSystem())
    except UnicodeEncodeError:
        raise InputError(
            f"{str(place)!r} has a name that is no Unicode: give the run folder another."
        ) from None
    with duckdb.connect() as base:
        # it is given the rows, not the name of a file, which it would read as a pattern; so it need not open any
        base.register("explanations", rows)
        base.execute("set enable_external_access = false")
        base.execute("set python_enable_replacements = false")
        try:
            answer = base.execute(select_statement_of_query(base, sql))
            names = [column[0] for column in answer.description or []]
            return names, answer.fetchall()
        except duckdb.Error as error:
            raise InputError(
                f"The question can't be answered ({str(error).splitlines()[0]})."
            ) from None


def select_statement_of_query(base: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """The one select statement of a question; anything else is refused."""
    import duckdb

    statements = base.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InputError("A question is one select statement: select … from explanations …")
    return statements[0]


def facts_of_queried_files(place: Local) -> bytes:
    """The table and what it was made of: names, sizes and times of the files."""
    facts = []
    for path in (place.root / TABLE, *sorted((place.root / "shards").glob("*.jsonl"))):
        if path.is_file():
            stat = path.stat()
            facts.append([path.name, stat.st_size, stat.st_mtime_ns])
    return json.dumps(facts).encode()
