"""Saved results: what a file holds, and how it becomes a figure, a page or LaTeX."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from raison.cli.app import app
from raison.core.errors import InputError
from raison.show.saved_results import read_saved_result, write_saved_result


def test_every_form_of_every_result(tmp_path, explanations, evaluation):
    pytest.importorskip("matplotlib")
    (tmp_path / "lines.jsonl").write_text("".join(each.to_json() + "\n" for each in explanations))
    (tmp_path / "list.json").write_text(json.dumps([each.to_dict() for each in explanations]))
    (tmp_path / "one.json").write_text(explanations[0].to_json())
    (tmp_path / "evaluation.json").write_text(evaluation.to_json())
    starts = {
        "svg": b"<?xml",
        "png": b"\x89PNG",
        "pdf": b"%PDF",
        "tex": b"% needs",
        "html": b"<!doctype html>",
    }
    for name in ("lines.jsonl", "list.json", "one.json", "evaluation.json"):
        wanted = [
            part for kind in starts for part in (f"--{kind}", str(tmp_path / f"{name}.{kind}"))
        ]
        result = CliRunner().invoke(app, ["show", str(tmp_path / name), *wanted])
        assert result.exit_code == 0, result.output
        for kind, start in starts.items():
            assert (tmp_path / f"{name}.{kind}").read_bytes().startswith(start)
    assert CliRunner().invoke(app, ["show", str(tmp_path / "one.json")]).exit_code == 0
    assert (
        read_saved_result(tmp_path / "lines.jsonl")
        == read_saved_result(tmp_path / "list.json")
        == explanations
    )


def test_heads_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from importlib.resources import files

    saved = read_saved_result(
        files("raison.models.catalog") / "shipped" / "sentiment" / "heads.json"
    )
    write_saved_result(saved, tmp_path / "heads.svg")
    assert (tmp_path / "heads.svg").read_text().startswith("<?xml")
    for ending in (".html", ".tex", ".gif"):
        with pytest.raises(InputError):
            write_saved_result(saved, tmp_path / f"heads{ending}")


@pytest.mark.parametrize(
    "content", ["", "x", "{}", "[]", "[1]", '{"kind": "heads"}', '{"cells": 1}', "[" * 9999]
)
def test_other_files_are_refused_with_a_sentence(tmp_path, content):
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(InputError) as refused:
        saved = read_saved_result(path)
        write_saved_result(saved, tmp_path / "x.svg")
    assert str(refused.value).endswith(".") and "\n" not in str(refused.value)
    with pytest.raises(InputError, match="no file"):
        read_saved_result(tmp_path / "none")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"a": 1}', r"no result of raison \(This is no Explanation record: it has a\)"),
        (b"print('hello')", r"no result of raison \(it holds no JSON\)"),
        (bytes([0x89, 0x50, 0x4E, 0x47, 0x0D]), "holds no text"),
    ],
)
def test_files_of_others_are_told_from_those_of_a_newer_raison(tmp_path, content, why):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match=why):
        read_saved_result(path)


def test_numbers_that_no_drawing_holds_are_told(tmp_path, evaluation):
    pytest.importorskip("matplotlib")
    told = json.loads(evaluation.to_json())
    name = next(iter(told["curves"]))
    method = next(iter(told["curves"][name]))
    told["curves"][name][method][0] = 10**400
    (tmp_path / "x.json").write_text(json.dumps(told))
    with pytest.raises(InputError, match="no result as raison writes it"):
        write_saved_result(read_saved_result(tmp_path / "x.json"), tmp_path / "x.svg")
