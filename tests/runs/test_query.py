"""Questions in SQL."""

from __future__ import annotations

import json
import shutil

import pytest
from typer.testing import CliRunner

from raison.cli.app import app
from raison.core.errors import InputError
from raison.runs.export_run import export_run
from raison.runs.query import query_run
from raison.runs.storage import place_of
from tests.helpers.runs import shards_of


def test_a_question_reads_the_table_and_nothing_else(copied, tmp_path):
    place = place_of(copied)
    assert query_run(place, "select count(*) from explanations")[1] == [(120,)]
    (tmp_path / "secret.csv").write_text("a\n1\n")
    other = tmp_path / "secret.csv"
    for sql in (
        f"copy (select 1) to '{tmp_path / 'x.csv'}'", f"attach '{tmp_path / 'x.db'}' as x", "", "select 1; select 2",
        f"select * from read_csv('{other}')", f"select * from '{other}'", "install httpfs", "selec 1",
    ):  # fmt: skip
        with pytest.raises(InputError):
            query_run(place, sql)
    assert not (tmp_path / "x.csv").exists() and not (tmp_path / "x.db").exists()
    shards_of(copied)[0].unlink()
    assert query_run(place, "select count(*) from explanations")[1][0][0] < 120
    with pytest.raises(InputError, match="is a folder"):
        export_run(place, tmp_path)


runner = CliRunner()


def test_a_damaged_or_foreign_table_is_made_again(copied, other):
    ask = lambda: query_run(place_of(copied), "select count(*) from explanations")[1][0][0]  # noqa: E731
    count = ask()
    table = copied / "export" / "explanations.parquet"
    table.write_bytes(table.read_bytes()[:1000])
    assert ask() == count
    query_run(place_of(other), "select 1")
    shutil.copy(other / "export" / "explanations.parquet", table)
    assert ask() == count


def test_a_name_is_no_pattern(copied, other):
    odd = copied.parent / "run?"
    shutil.copytree(copied, odd)
    shutil.copytree(other, copied.parent / "runX")
    query_run(place_of(copied.parent / "runX"), "select 1")
    wanted = query_run(place_of(copied), "select count(*) from explanations")
    assert query_run(place_of(odd), "select count(*) from explanations") == wanted


def test_answers_are_json(copied):
    sql = "select 1 as a, 2 as a, 'nan'::double as b, ['nan'::double] as c"
    found = runner.invoke(app, ["store", "query", str(copied), sql, "--json"])
    assert json.loads(found.stdout) == [{"a": 1, "a_2": 2, "b": None, "c": [None]}]
