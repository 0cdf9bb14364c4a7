"""What all commands share: light help, streams that are closed, terminals, models."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import pytest

import raison as package
from raison.testing import tiny_hf
from tests.helpers import cli_server
from tests.helpers.command_line import one_sentence, raison


def test_help_is_light():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = raison("--help", fresh=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert result.returncode == 0 and "explain" in result.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


def test_version():
    assert raison("--version").stdout.strip() == package.__version__


def test_a_reader_that_goes_away(folder):
    command = f'"{sys.executable}" -m raison ls methods | head -1'
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0 and "Traceback" not in result.stderr


def closing(streams: str, *args: str) -> subprocess.CompletedProcess:
    """The command in a shell that closes some of its streams."""
    words = " ".join(f'"{word}"' for word in (sys.executable, "-m", "raison", *args))
    env = {**os.environ, **cli_server.OFFLINE}
    return subprocess.run(
        ["bash", "-c", f"{words} {streams}"], capture_output=True, text=True, timeout=120, env=env
    )


def test_closed_streams_lead_nowhere(folder, tmp_path):
    """What libraries print must not get into a file of results that has the number of a closed stream."""
    out = tmp_path / "x.jsonl"
    asked = ("explain", "The film is lovely.", "-m", str(folder), "--json", "--out", str(out))
    found = closing("0<&- 2>&-", *asked)
    assert found.returncode == 0 and found.stdout == out.read_text(encoding="utf-8")
    assert json.loads(found.stdout)["encoding"]["texts"] == ["The film is lovely."]
    found = closing("1>&-", "ls", "methods")
    assert (found.returncode, found.stderr) == (0, "")
    found = closing("2>&-", "show", str(tmp_path / "nothing.jsonl"))
    assert (found.returncode, found.stdout) == (
        2,
        "",
    )  # and not on standard output, where results are
    assert "Standard input is closed" in one_sentence(
        closing("0<&-", "explain", "-", "-m", str(folder)), 2
    )


@pytest.mark.parametrize("columns", ["0", "7"])
def test_results_are_shown_however_narrow_the_terminal_says_it_is(columns, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    shown = raison("explain", "The film is lovely.", "-m", str(folder)).stdout
    assert "lovely" in shown and "+0." in shown


@pytest.mark.parametrize("command", ["explain", "evaluate", "compare"])
def test_commands_open_models_alike(command, tmp_path):
    """A model that needs --allow-pickle can be measured, not only explained; a wrong device is told."""
    import torch

    hf, tokenizer = tiny_hf("bert", "classification", double=False)
    hf.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    tokenizer.save_pretrained(tmp_path)
    torch.save(hf.state_dict(), tmp_path / "pytorch_model.bin")
    asked = {
        "explain": ("a good film", "-M", "random"),
        "evaluate": ("-M", "random", "--metric", "sufficiency", "--limit", "2"),
        "compare": ("random", "uniform", "--metric", "sufficiency", "--limit", "2"),
    }[command]
    args = (command, *asked, "-m", str(tmp_path))
    refused = raison(*args)
    assert refused.returncode in (1, 2) and "--allow-pickle" in refused.stderr
    assert raison(*args, "--allow-pickle", "--device", "cpu").returncode == 0
    wrong = raison(*args, "--allow-pickle", "--device", "moon")
    assert (
        wrong.returncode in (1, 2)
        and "can't be put on 'moon'" in wrong.stderr
        and wrong.stderr.count("\n") == 1
    )
