"""What is read from compacted, torn and swapped files."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError
from raison.runs.driver import run
from raison.runs.maintenance import compact_shards, repair_run
from raison.runs.storage import place_of
from raison.runs.store import records_of_run
from raison.runs.verify import verify_run
from raison.testing import tiny_hf
from tests.helpers.runs import parquet_of, shards_of


def test_bytes_do_not_depend_on_what_was_compacted(copied, done):
    path = shards_of(copied)[1]
    data = path.read_bytes()
    path.unlink()
    compact_shards(place_of(copied))
    path.write_bytes(data)
    assert verify_run(place_of(copied)).whole and parquet_of(copied) == parquet_of(done)


def test_a_torn_compacted_file_is_no_empty_run(copied, done):
    compact_shards(place_of(copied))
    (path,) = shards_of(copied)
    path.write_bytes(path.read_bytes()[:-40])
    assert not verify_run(place_of(copied)).whole
    with pytest.raises(InputError, match="torn"):
        list(records_of_run(place_of(copied)))
    compact_shards(place_of(copied))
    assert path.exists()
    (said,) = repair_run(place_of(copied))
    assert "cut off" in said
    run(copied, resume=True)
    assert parquet_of(copied) == parquet_of(done)


def test_swapped_shards_are_never_exported(copied):
    one, two = shards_of(copied)[:2]
    data = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(data)
    with pytest.raises(InputError, match="says that it holds the shards"):
        parquet_of(copied)


def test_a_file_of_something_else_among_the_results_is_damage(tmp_path):
    from typer.testing import CliRunner

    from raison.cli.app import app

    hf, tokenizer = tiny_hf("bert", "classification")
    hf.save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    (tmp_path / "c.jsonl").write_text('{"text": "a film"}\n{"text": "plain"}\n')
    run, out = CliRunner(), tmp_path / "r"
    made = run.invoke(
        app,
        [
            "run",
            "-m",
            str(tmp_path / "m"),
            "-d",
            str(tmp_path / "c.jsonl"),
            "-M",
            "random",
            "--out",
            str(out),
        ],
    )
    assert made.exit_code == 0
    (shard,) = (out / "shards").iterdir()
    (cost,) = (out / "costs").iterdir()
    shard.write_bytes(cost.read_bytes())
    told = run.invoke(app, ["store", "verify", str(out)])
    assert (
        told.exit_code == 1
        and "unexpected" not in told.output
        and "is no record of a result" in told.output
    )
    for words in (
        ["store", "repair", str(out)],
        ["report", str(out), "--out", str(tmp_path / "x.html")],
    ):
        told = run.invoke(app, words)
        assert "unexpected" not in told.output, (words, told.output)
    again = run.invoke(app, ["run", "--resume", "--out", str(out)])
    assert again.exit_code == 0, again.output
    assert run.invoke(app, ["store", "verify", str(out)]).exit_code == 0
