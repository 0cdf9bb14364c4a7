"""The command that trains for partial contexts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from typer.testing import CliRunner

from raison.testing import tiny_hf


def test_the_command(prose, tmp_path):
    from raison.cli.app import app

    hf, tokenizer = tiny_hf("gpt2", "causal", double=False)
    hf.save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    words = [
        "train",
        "compatibility",
        "-m",
        str(tmp_path / "tiny"),
        "--data",
        str(prose),
        "--steps",
        "3",
    ]
    words += ["--length", "24", "--batch", "4", "--keep", "bernoulli(p=0.3)", "--lr", "1e-3"]
    runner = CliRunner()
    done = runner.invoke(app, [*words, "--out", str(tmp_path / "one")])
    assert done.exit_code == 0, done.output
    assert (
        "perplexity of 10 tokens: " in done.output
        and "3/3  loss " in done.output
        and " left" in done.output
    )
    report = json.loads((tmp_path / "one" / "training.json").read_text())
    assert report["command"] == (
        "raison train compatibility -m tiny --data text.txt --out FOLDER --keep 'bernoulli(p=0.3)' --lr 0.001 "
        "--steps 3 --length 24 --batch 4"
    )
    assert report["keep"] == "bernoulli(p=0.3)" and len(report["history"]) == 4
    for wrong, sentence in (
        (["--keep", "bernouli"], "There is no keep rule 'bernouli'. Did you mean 'bernoulli'?"),
        (
            ["--batch", "4000"],
            "less than a batch of 4000: give more text, a smaller batch or a smaller length.",
        ),
        (["--lora", "0"], "lora is a whole number from 1 up, not 0."),
        ([], "has a finished model: delete it, or choose another out (--out)."),
    ):
        out = ["--out", str(tmp_path / ("one" if not wrong else "two"))]
        told = runner.invoke(app, [*words, *out, *wrong])
        assert told.exit_code == 2 and sentence in told.output, told.output
        lines_told = [
            line
            for line in told.output.splitlines()
            if line.strip() and "Loading weights" not in line
        ]
        assert len(lines_told) == 1  # one sentence


@pytest.mark.full  # starts a process, which takes as long as all others together; the loop itself is tested above
def test_the_command_stopped_by_a_signal_goes_on(prose, tmp_path):
    """A real process, a real SIGINT, one sentence, exit code 130; then the same command finishes."""
    hf, tokenizer = tiny_hf("gpt2", "causal", double=False)
    hf.save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    steps = "4000"
    words = [
        "-m",
        str(tmp_path / "tiny"),
        "--data",
        str(prose),
        "--length",
        "24",
        "--batch",
        "4",
        "--steps",
        steps,
    ]
    words += ["--out", str(tmp_path / "out"), "--every", "0", "--lr", "1e-4"]
    run = [sys.executable, "-m", "raison", "train", "compatibility", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        run, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        line = process.stderr.readline()  # the first step is done
        assert f"/{steps}  " in line, line + process.stderr.read()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, told
    assert "the same command goes on from there." in told and "Traceback" not in told
    done = torch.load(tmp_path / "out" / "checkpoint.pt", weights_only=True)["done"]
    assert 0 < done["step"] < int(steps) and f"Stopped after step {done['step']} of {steps}" in told
