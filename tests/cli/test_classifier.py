"""`raison train classifier`: the command, and what is wrong with the folder that it wrote."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import raison
from raison.cli.app import app
from raison.core.errors import ModelError
from tests.helpers.small_classifiers import reviews


def test_the_command_and_a_damaged_folder(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("text,label\n" + "\n".join(f"{e.text},{e.label}" for e in reviews(120)))
    out = tmp_path / "model"
    args = [
        "train",
        "classifier",
        "--data",
        str(file),
        "--out",
        str(out),
        "--width",
        "8",
        "--epochs",
        "2",
        "--batch",
        "16",
    ]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0 and "accuracy" in result.stdout
    assert json.loads((out / "training.json").read_text())["command"] == (
        "raison train classifier --data data.csv --out FOLDER --width 8 --batch 16 --epochs 2"
    )
    again = CliRunner().invoke(app, args)
    assert again.exit_code == 2 and "has a finished model" in again.stderr
    (out / "training.json").rename(tmp_path / "report.json")
    before = (out / "model.safetensors").read_bytes()
    again = CliRunner().invoke(app, args)
    assert again.exit_code == 2 and "has somebody's model (model.safetensors)" in again.stderr
    assert (out / "model.safetensors").read_bytes() == before
    tuned = CliRunner().invoke(app, [*args[:5], str(tmp_path / "tuned"), *args[6:], "--tune"])
    assert tuned.exit_code == 0
    told = json.loads((tmp_path / "tuned" / "training.json").read_text())["command"]
    assert told.endswith("--tune --batch 16 --epochs 2") and "False" not in told
    wrong = CliRunner().invoke(app, [*args, "--seed", "99999999999999"])
    assert wrong.exit_code == 2 and "seed is a whole number from 0 to 2147483647" in wrong.stderr
    wrong = CliRunner().invoke(
        app, [*args[:5], str(tmp_path / "x"), *args[6:], "--normalizer", "foo"]
    )
    assert (
        wrong.exit_code == 2 and "There are entmax, softmax, sparsegen, sparsemax." in wrong.stderr
    )
    from safetensors.torch import load_file, save_file

    weights = load_file(out / "model.safetensors")
    save_file(
        {k: v for k, v in weights.items() if k != "scorer.query.weight"}, out / "model.safetensors"
    )
    with pytest.raises(ModelError, match=r"lack 1 of its weights \(scorer.query.weight\)"):
        raison.load(out)
    config = json.loads((out / "config.json").read_text())
    config["classifier"]["normalizer"] = "sparsegen(lam=2)"
    (out / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="can't be read"):
        raison.load(out)
