"""`raison compatibility`."""

from __future__ import annotations

from typer.testing import CliRunner


def test_the_command(tmp_path):
    from raison.cli.app import app

    file = tmp_path / "prose.txt"
    file.write_text(
        "Once upon a time there was a little girl named Lily. She loved to play outside. " * 40
    )
    out = CliRunner().invoke(
        app,
        [
            "compatibility",
            "-m",
            "stories15m",
            "-d",
            str(file),
            "--limit",
            "2",
            "--length",
            "16",
            "--truths",
            "1",
        ],
    )
    assert out.exit_code == 0, out.output
    assert "face value" in out.output
    assert "frequencies alone" in out.output
    bad = CliRunner().invoke(
        app, ["compatibility", "-m", "stories15m", "-d", str(file), "--length", "2"]
    )
    assert bad.exit_code == 2
