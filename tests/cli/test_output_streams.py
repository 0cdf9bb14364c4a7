"""Standard output that is full, and texts that look like markup."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from raison.testing import tiny_hf


def test_texts_with_brackets_are_printed_as_they_are(tmp_path):
    from typer.testing import CliRunner

    from raison.cli.app import app

    data = tmp_path / "c.jsonl"
    data.write_text('{"text": "a film [/b] see [red]this[/red]"}\n{"text": "plain"}\n')
    run = CliRunner()
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    made = run.invoke(
        app,
        [
            "run",
            "-m",
            str(tmp_path / "m"),
            "-d",
            str(data),
            "-M",
            "random",
            "--out",
            str(tmp_path / "r"),
        ],
    )
    assert made.exit_code == 0, made.output
    told = run.invoke(
        app, ["store", "query", str(tmp_path / "r"), "select text from explanations order by text"]
    )
    assert told.exit_code == 0 and "[/b] see [red]this[/red]" in told.output
    struct = run.invoke(
        app,
        [
            "store",
            "query",
            str(tmp_path / "r"),
            "select {'a': 'nan'::double} as s limit 1",
            "--json",
        ],
    )
    assert struct.exit_code == 0 and json.loads(struct.output) == [{"s": {"a": None}}]


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
def test_a_full_disk_behind_standard_output_is_told():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "raison", "ls", "methods"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "No space left" in done.stderr
