"""Where `raison reproduce` keeps parts."""

from __future__ import annotations


def test_a_folder_for_parts_is_a_folder(tmp_path, capfd):
    from typer.testing import CliRunner

    from raison.cli.app import app

    (tmp_path / "file").write_text("")
    found = CliRunner().invoke(app, ["reproduce", "P4-table3", "--keep", str(tmp_path / "file")])
    assert found.exit_code == 2
    assert "is a file: name a folder" in capfd.readouterr().err + found.stderr
