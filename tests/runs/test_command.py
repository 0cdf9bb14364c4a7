"""The command line of runs."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from raison.cli.app import app


def test_the_command_line(folder, tmp_path):
    place = str(tmp_path / "r")
    args = [
        "run",
        "--out",
        place,
        "-m",
        str(folder / "model"),
        "-d",
        str(folder / "data.csv"),
        "-M",
        "leave_one_out",
    ]
    told = CliRunner().invoke(app, [*args, "--metric", "comprehensiveness", "--limit", "12"])
    assert told.exit_code == 0 and "12 of 12 texts are explained" in told.output
    assert "state: done" in CliRunner().invoke(app, ["status", place]).output
    assert (
        json.loads(CliRunner().invoke(app, ["status", place, "--json"]).output)["shards_done"] > 0
    )
    assert "12 records" in CliRunner().invoke(app, ["store", "verify", place]).output
    assert "Nothing is damaged" in CliRunner().invoke(app, ["store", "repair", place]).output
    shown = CliRunner().invoke(app, ["report", place, "--out", str(tmp_path / "page.html")])
    assert (
        shown.exit_code == 0
        and "comprehensiveness" in shown.output
        and (tmp_path / "page.html").is_file()
    )
    asked = CliRunner().invoke(
        app, ["store", "query", place, "select method, count(*) n from explanations group by 1"]
    )
    assert "leave_one_out" in asked.output and "12" in asked.output
    wrong = CliRunner().invoke(app, ["store", "query", place, "select nonsense from explanations"])
    assert wrong.exit_code == 2 and "can't be answered" in wrong.output
    assert (
        CliRunner().invoke(app, ["store", "export", place, str(tmp_path / "t.parquet")]).exit_code
        == 0
    )
    out = ["run", "--out", str(tmp_path / "new")]
    for words, missing in (
        (["-d", "reviews"], "add -m MODEL"), (["-m", "sentiment"], "add -d DATA"), ([], "add -m MODEL"),
        (["-M", "random", "--resume"], "add -m MODEL"),
    ):  # fmt: skip
        told = CliRunner().invoke(app, [*out, *words])
        assert told.exit_code == 2 and missing in told.output and 'model = "' not in told.output
        assert not (tmp_path / "new").exists()
    for bad in (
        ["run", "--out", place],
        ["run"],
        [*args, "--limit", "12"],
        ["status", str(tmp_path / "none")],
    ):
        result = CliRunner().invoke(app, bad)
        assert result.exit_code in (1, 2) and "Traceback" not in result.output
    shard = next((tmp_path / "r" / "shards").iterdir())
    shard.write_bytes(shard.read_bytes()[:-5])
    assert CliRunner().invoke(app, ["store", "verify", place]).exit_code == 1


def test_where_every_text_fails_the_command_does(folder, tmp_path):
    (tmp_path / "a.csv").write_text("text\none\ntwo\n")
    command = [
        "run",
        "--out",
        str(tmp_path / "r"),
        "-m",
        str(folder / "model"),
        "-d",
        f"{tmp_path / 'a.csv'}(text=text)",
    ]
    told = CliRunner().invoke(app, [*command, "-M", "gradient_norm", "--target", "gold"])
    assert told.exit_code != 0
