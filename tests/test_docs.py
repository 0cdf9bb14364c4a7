"""What the documents say is what the code does."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from tests.helpers.paths import ROOT, SOURCE

PAGES = sorted(
    str(page.relative_to(ROOT)) for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
)


@pytest.mark.parametrize("script", ["docs/generate.py", "docs/file_index.py"])
def test_what_is_generated_is_up_to_date(script):
    result = subprocess.run(
        [sys.executable, script, "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (ROOT / page).parent.joinpath(link).exists(), f"{page} links to {link}"


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_are_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    places = (ROOT, ROOT / "src", SOURCE, ROOT / "docs", ROOT / page)
    for name in re.findall(r"`([a-z_]+/(?:[a-z_0-9]+/)*[a-z_0-9]+(?:/|\.(?:py|js|toml)))`", text):
        assert any((place / name).exists() for place in places), f"{page} names {name}"


def code_blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)


@pytest.mark.registry
def test_readme_python_runs(sentiment, capsys):
    (block,) = code_blocks("README.md")
    exec(compile(block, "README.md", "exec"), {})
    assert "wonderful" in capsys.readouterr().out


def test_contributing_method_works_as_written(tmp_path, monkeypatch):
    """The one-file method of CONTRIBUTING.md passes the public contract."""
    import importlib

    from raison.core.registry import methods
    from raison.testing import check_method, tiny_model

    (block,) = code_blocks("CONTRIBUTING.md")
    (tmp_path / "length_plugin.py").write_text(block, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    list(methods)
    importlib.import_module("length_plugin")
    try:
        check_method("length(power=2.0)", tiny_model("bert", "classification"))
        assert "length" in list(methods)
    finally:
        del methods._entries["length"]


def test_commands_in_the_readme_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make (\w[\w-]*)", text):
        assert re.search(rf"^{target}:", makefile, re.M), f"make {target}"


def test_the_how_to_of_attention_runs(tmp_path, monkeypatch, capsys):
    (block,) = code_blocks("docs/how-to/attention.md")
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "attention.md", "exec"), {})
    assert "explanation" in capsys.readouterr().out


def test_the_how_to_of_rationalizers_runs(tmp_path, monkeypatch, capsys):
    (block,) = code_blocks("docs/how-to/rationalizer.md")
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "rationalizer.md", "exec"), {})
    assert "True" in capsys.readouterr().out


LESSONS = [
    "docs/index.md",
    *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/tutorials/*.md")),
]


@pytest.mark.registry
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.full if "passages" in page else ()) for page in LESSONS],
)
def test_every_block_of_a_tutorial_runs(page, sentiment, request, tmp_path, monkeypatch):
    from raison.core.registry import methods

    blocks = code_blocks(page)
    if any("smollm2" in block for block in blocks):
        request.getfixturevalue("smollm2")
    monkeypatch.chdir(tmp_path)
    scope: dict = {"__name__": "lesson"}
    try:
        for block in blocks:
            exec(compile(block, page, "exec"), scope)
    finally:
        methods._entries.pop("pairs", None)  # of the lesson on methods
    commands = re.findall(r"^    raison (\w+)", (ROOT / page).read_text(encoding="utf-8"), re.M)
    assert blocks or commands


def commands(page: str) -> list[list[str]]:
    """The words of every `raison …` line of a page, without what a shell or a reader makes of it."""
    lines = re.findall(
        r"^    (?:\S+ -- )?raison (.+)$", (ROOT / page).read_text(encoding="utf-8"), re.M
    )
    parts = [part for line in lines for part in re.split(r"; raison ", line)]
    return [shlex.split(part, comments=True) for part in parts]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_is_one(page):
    """Each is read as the command line reads it, options and all, and not run."""
    import typer

    from raison.cli.app import app

    root = typer.main.get_command(app)
    for words in commands(page):
        command, path, rest = root, "raison", words
        while hasattr(command, "commands"):
            path, command, rest = f"{path} {rest[0]}", command.commands[rest[0]], rest[1:]
        command.make_context(path, list(rest)).close()
