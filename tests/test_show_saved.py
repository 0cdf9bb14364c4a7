"""Saved results: as figures, pages and LaTeX, and in a notebook."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

import raison
from raison.cli.app import app, assemble
from raison.core.errors import InputError
from raison.show.files import read_saved, write_saved
from raison.show.latex import escape, to_latex
from raison.show.notebook import show_in_notebooks
from raison.studies.evaluate import evaluate
from raison.testing import tiny_model

TEXT = "a lovely film & 100% of {it} is_dull"


@pytest.fixture(scope="module")
def found():
    model = tiny_model("bert", "classification")
    return [raison.explain(model, TEXT, method) for method in ("leave_one_out", "gradient_norm")]


@pytest.fixture(scope="module")
def evaluation():
    texts = ["a lovely film", "a dull story", "it is very warm"]
    return evaluate(tiny_model("bert", "classification"), texts, ["leave_one_out", "random"], ["aopc", "sufficiency"])


def test_every_form_of_every_result(tmp_path, found, evaluation):
    pytest.importorskip("matplotlib")
    assemble()
    (tmp_path / "lines.jsonl").write_text("".join(each.to_json() + "\n" for each in found))
    (tmp_path / "list.json").write_text(json.dumps([each.to_dict() for each in found]))
    (tmp_path / "one.json").write_text(found[0].to_json())
    (tmp_path / "evaluation.json").write_text(evaluation.to_json())
    starts = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF", "tex": b"% needs", "html": b"<!doctype html>"}
    for name in ("lines.jsonl", "list.json", "one.json", "evaluation.json"):
        wanted = [part for kind in starts for part in (f"--{kind}", str(tmp_path / f"{name}.{kind}"))]
        result = CliRunner().invoke(app, ["show", str(tmp_path / name), *wanted])
        assert result.exit_code == 0, result.output
        for kind, start in starts.items():
            assert (tmp_path / f"{name}.{kind}").read_bytes().startswith(start)
    assert CliRunner().invoke(app, ["show", str(tmp_path / "one.json")]).exit_code == 0
    assert read_saved(tmp_path / "lines.jsonl") == read_saved(tmp_path / "list.json") == found


def test_heads_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from importlib.resources import files

    saved = read_saved(files("raison.models.catalog") / "shipped" / "sentiment" / "heads.json")
    write_saved(saved, tmp_path / "heads.svg")
    assert (tmp_path / "heads.svg").read_text().startswith("<?xml")
    for ending in (".html", ".tex", ".gif"):
        with pytest.raises(InputError):
            write_saved(saved, tmp_path / f"heads{ending}")


def test_latex_prints_the_text_as_it_is(found, evaluation):
    assert escape(r"a\b_{c}^~ 5% &") == r"a\textbackslash{}b\_\{c\}\textasciicircum{}\textasciitilde{} 5\% \&"
    assert escape("$1 #2 <x|y>") == r"\$1 \#2 \textless{}x\textbar{}y\textgreater{}"
    text = to_latex(found)
    plain = re.sub(r"\\colorbox\[RGB\]\{[\d,]+\}\{\\strut ((?:[^{}]|\\\{|\\\})*)\}", r"\1", text)
    assert plain.count(escape(TEXT)) == 2 and text.count(r"\colorbox") > 6
    table = to_latex(evaluation)
    rows = [line for line in table.split("\n") if line.endswith(r"\\")]
    assert len(rows) == 5 and all(row.count("&") == len(evaluation.columns) for row in rows)
    assert table.count(r"\textbf") >= len(evaluation.columns) - 1
    value = evaluation.cell("leave_one_out", "aopc").value
    assert f"{value:.4f}".lstrip("-") in table


@pytest.mark.parametrize("content", ["", "x", "{}", "[]", "[1]", '{"kind": "heads"}', '{"cells": 1}', "[" * 9999])
def test_other_files_are_refused_with_a_sentence(tmp_path, content):
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(InputError) as refused:
        saved = read_saved(path)
        write_saved(saved, tmp_path / "x.svg")
    assert str(refused.value).endswith(".") and "\n" not in str(refused.value)
    with pytest.raises(InputError, match="no file"):
        read_saved(tmp_path / "none")


class Shell:
    """As much of IPython as a formatter meets."""

    class Formatter:
        def __init__(self):
            self.by_name, self.by_type = {}, {}

        def for_type_by_name(self, module, name, made):
            self.by_name[module, name] = made

        def for_type(self, kind, made):
            self.by_type[kind] = made

    def __init__(self):
        self.display_formatter = self
        self.formatters = {"text/html": Shell.Formatter()}


def test_a_notebook_shows_results(found, evaluation):
    shell = Shell()
    show_in_notebooks(shell)
    made = shell.formatters["text/html"]
    for shown in (
        made.by_name["raison.core.records", "Explanation"](found[0]),
        made.by_name["raison.core.evaluation", "Evaluation"](evaluation),
        made.by_type[list](found),
    ):
        assert shown.startswith('<iframe sandbox="allow-scripts allow-downloads"') and "allow-same-origin" not in shown
        assert ("<script" not in shown and "&lt;script" in shown) or "report" in shown or "&lt;main" in shown
    assert made.by_type[list]([1, 2]) is None and made.by_type[list]([]) is None


def test_ipython_shows_results(found):
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    try:
        show_in_notebooks(shell)
        data, _ = shell.display_formatter.format(found[0])
        assert data["text/html"].startswith("<iframe") and "text/plain" in data
        assert "text/html" not in shell.display_formatter.format([1, 2])[0]
    finally:
        InteractiveShell.clear_instance()


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
        read_saved(path)


def test_numbers_that_no_drawing_holds_are_told(tmp_path, evaluation):
    pytest.importorskip("matplotlib")
    told = json.loads(evaluation.to_json())
    name = next(iter(told["curves"]))
    method = next(iter(told["curves"][name]))
    told["curves"][name][method][0] = 10**400
    (tmp_path / "x.json").write_text(json.dumps(told))
    with pytest.raises(InputError, match="no result as raison writes it"):
        write_saved(read_saved(tmp_path / "x.json"), tmp_path / "x.svg")
