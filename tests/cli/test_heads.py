"""`raison heads`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from raison.core.artifact import Artifact
from raison.testing import tiny_hf


def command(*args: str, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "raison", "heads", *args],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", **env},
        timeout=120,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("models") / "tiny-writer"
    model, tokenizer = tiny_hf("gpt2", "causal", double=False)
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place


def test_the_command_writes_and_shows(folder, treebank, tmp_path):
    out, picture, positions = (
        tmp_path / "heads.json",
        tmp_path / "heads.png",
        tmp_path / "positions.svg",
    )
    files = ["--out", str(out), "--figure", str(picture), "--positions", str(positions)]
    result = command(
        "-m", str(folder), "--data", str(treebank), "--top", "1", *files, PYTHONIOENCODING="ascii"
    )
    assert result.returncode == 0, result.stderr
    assert "tiny-writer | small, 2 sentences" in result.stdout and "max lambda" in result.stdout
    assert result.stderr.splitlines() == [f"wrote {path}" for path in (out, picture, positions)]
    found = Artifact.open(out, "heads")
    assert found.model == "tiny-writer" and found.data["shape"] == {"self": [2, 2]}
    assert picture.stat().st_size > 5000 and positions.stat().st_size > 5000
    shown = command("--heads", str(out), "--json")
    assert shown.returncode == 0 and json.loads(shown.stdout) == json.loads(
        out.read_text(encoding="utf-8")
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "Name a treebank"),
        (["--data", "none.conllu"], "There is no file"),
        (["--data", "plain.txt"], "Line 1 of 'plain.txt' is not CoNLL-U"),
        (["--data", "small.conllu", "--parser", "de_core_news_sm"], "--parser is for plain text"),
        (["--data", "small.conllu", "--top", "-1"], "whole number"),
        (["--data", "small.conllu", "--figure", "heads.gif"], ".png, .svg or .pdf"),
        (["--data", "small.conllu", "--out", "nowhere/heads.json"], "can't be written"),
        (["--heads", "small.conllu"], "not JSON"),
    ],
)
def test_the_command_fails_in_one_sentence(treebank, args, said):
    (treebank.parent / "plain.txt").write_text("Just a text.\n")
    result = subprocess.run(
        [sys.executable, "-m", "raison", "heads", *args],
        capture_output=True,
        text=True,
        cwd=treebank.parent,
    )
    lines = result.stderr.strip().splitlines()
    assert result.returncode == 2 and result.stdout == "" and len(lines) == 1, result.stderr
    assert lines[0].startswith("raison: ") and said in lines[0] and lines[0].endswith((".", "?"))


def test_a_model_without_attention_is_refused(treebank, tmp_path):
    import transformers as t
    from typer.testing import CliRunner

    from raison.cli.app import app

    torch.manual_seed(0)
    place = tmp_path / "mamba"
    config = t.MambaConfig(vocab_size=400, hidden_size=16, num_hidden_layers=2, pad_token_id=0)
    t.MambaForCausalLM(config).save_pretrained(place)
    tiny_hf("gpt2", "causal")[1].save_pretrained(place)
    result = CliRunner().invoke(app, ["heads", "-m", str(place), "--data", str(treebank)])
    assert result.exit_code == 1 and "shows no attention" in result.stderr and result.stdout == ""
