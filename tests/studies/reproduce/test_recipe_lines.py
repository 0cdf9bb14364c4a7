"""Lines of numbers that are damaged, cut off, or do not fit on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from raison.core.errors import InputError
from raison.studies.reproduce.recipe_lines import LINES, add_recipe_line, read_recipe_lines
from raison.studies.reproduce.run_suite import reproduce


def test_a_damaged_file_of_lines_is_told(tmp_path):
    (tmp_path / "lines.jsonl.xz").write_bytes(b"no such thing")
    with pytest.raises(InputError, match="is damaged: it can't be read as lines of numbers"):
        reproduce("P1-variants", models={"rationalizers": str(tmp_path / "lines.jsonl.xz")})


def test_lines_that_were_cut_off_and_lines_of_others(tmp_path):
    line = {"data": "sst", "name": "plmr", "seed": 0}
    (tmp_path / LINES).write_text('{"data": "sst", "na')  # somebody pulled the plug
    add_recipe_line(tmp_path, line)
    with (tmp_path / LINES).open("a") as file:
        file.write('{"data": "sst"')
    add_recipe_line(tmp_path, {**line, "seed": 1})
    assert read_recipe_lines(tmp_path) == {("sst", "plmr"): {0: line, 1: {**line, "seed": 1}}}
    with pytest.raises(InputError, match="are not what recipes/rationalizers.py writes"):
        reproduce("P1-variants", models={"rationalizers": str(tmp_path)})
    with pytest.raises(InputError, match="is no folder, and states are read from models"):
        reproduce("P1-homogeneity", models={"rationalizers": str(tmp_path / LINES)})


def test_a_full_disk_is_told_and_costs_one_line(tmp_path, monkeypatch):
    line = {"data": "sst", "name": "plmr", "seed": 0}
    add_recipe_line(tmp_path, line)
    real = Path.open

    class Full:
        def __init__(self, file):
            self.file, self.name = file, "numbers.jsonl"

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self

        def __exit__(self, *given):
            self.file.close()

        def write(self, made):
            return self.file.write(made[:9])  # what still had room

    monkeypatch.setattr(Path, "open", lambda self, *given, **more: Full(real(self, *given, **more)))
    with pytest.raises(InputError, match="can't be written to 'numbers.jsonl': make room"):
        add_recipe_line(tmp_path, {**line, "seed": 1})
    monkeypatch.undo()
    add_recipe_line(tmp_path, {**line, "seed": 2})
    assert sorted(read_recipe_lines(tmp_path)["sst", "plmr"]) == [0, 2]
