"""`raison idf`."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from raison.cli.app import app


@pytest.mark.parametrize(
    ("name", "why"), [("folder", "is a folder"), ("table.csv", "no list of texts")]
)
def test_document_frequencies_count_texts_only(name, why, tmp_path, capfd):
    (tmp_path / "folder").mkdir()
    (tmp_path / "table.csv").write_text("text,label\na film,good\n")
    found = CliRunner().invoke(
        app, ["idf", "--data", str(tmp_path / name), "--out", str(tmp_path / "idf.json")]
    )
    assert found.exit_code == 2
    assert why in capfd.readouterr().err + found.stderr
