"""`raison evaluate`."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from raison.cli.app import app
from raison.core.evaluation import Evaluation
from tests.helpers.evaluated import made_file


def run(*words):
    return CliRunner().invoke(app, ["evaluate", *map(str, words)])


def test_the_command_line(sentiment, tmp_path):
    data = tmp_path / "texts.csv"
    data.write_text(
        "text,label\na lovely film,positive\na dull film,negative\nnot a good film,negative\n"
    )
    files = [tmp_path / f"out{ending}" for ending in (".md", ".csv", ".json", ".html")]
    outs = [word for file in files for word in ("--out", file)]
    found = run("-d", data, "-M", "leave_one_out", "-M", "random", "--metric", "aopc", *outs)
    assert found.exit_code == 0, found.output
    assert "aopc ↑" in found.output
    assert "cost per text" in found.output
    assert all(file.is_file() for file in files)
    assert Evaluation.from_json(files[2].read_text()).data


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-d", "sst3"], "no data set called 'sst3'"),
        (["-M", "leave_one_in"], "no method called 'leave_one_in'"),
        (["--metric", "aopcc"], "no metric called 'aopcc'"),
        (["-M", "random", "-M", "random"], "named twice"),
        (["--limit", "0"], "--limit"),
        (["--out", "x.pdf"], ".md"),
        (["-d", "nowhere.csv"], "no file"),
    ],
)
def test_bad_input_gets_one_sentence(words, why, capfd):
    found = run(*words)
    said = capfd.readouterr().err + (found.stderr if found.stderr_bytes is not None else "")
    assert found.exit_code in (1, 2)
    assert why in said
    assert "Traceback" not in said


def test_explanations_need_no_data_and_no_methods(sentiment, tmp_path, monkeypatch):
    monkeypatch.delenv("RAISON_DATA", raising=False)
    path = made_file(
        tmp_path / "made.jsonl",
        {"text": "a dull film", "tokens": ["a", "dull", "film"], "scores": [0, 2, 1]},
    )
    found = run("--explanations", path, "--metric", "aopc")
    assert found.exit_code == 0, found.output
    assert "on made.jsonl: 1 text" in found.output
    assert run("--explanations", path, "-M", "random").exit_code == 2
