"""`raison train rationalizer`."""

from __future__ import annotations

import copy
import json

from typer.testing import CliRunner

from raison.cli.app import app
from raison.testing import tiny_hf
from tests.helpers.small_classifiers import reviews


def test_the_command_line(tmp_path):
    hf, tokenizer = tiny_hf("bert", "classification")
    copy.deepcopy(hf).float().save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    file = tmp_path / "data.csv"
    file.write_text("text,label\n" + "\n".join(f"{e.text},{e.label}" for e in reviews(80)))
    args = [
        "train",
        "rationalizer",
        "-m",
        str(tmp_path / "base"),
        "--data",
        str(file),
        "--out",
        str(tmp_path / "m"),
    ]
    more = [
        "--sparsity",
        "0.3",
        "--blocks",
        "1",
        "--pruning",
        "1",
        "--full-text",
        "none",
        "--epochs",
        "2",
    ]
    result = CliRunner().invoke(app, [*args, *more, "--batch", "16"])
    assert result.exit_code == 0, result.output
    assert "dev: accuracy" in result.output and "sparsity" in result.output
    report = json.loads((tmp_path / "m" / "training.json").read_text())
    assert report["command"].startswith(
        "raison train rationalizer -m base --data data.csv --sparsity 0.3 --out FOLDER"
    )
    shown = CliRunner().invoke(
        app, ["explain", "-m", str(tmp_path / "m"), "a lovely film and a story"]
    )
    assert shown.exit_code == 0 and "rationale" in shown.output
    bad = CliRunner().invoke(app, [*args[:-1], str(tmp_path / "x"), "--sparsity", "2"])
    assert bad.exit_code == 2 or bad.exit_code == 1
    assert "between 0 and 1" in bad.output and "Traceback" not in bad.output
