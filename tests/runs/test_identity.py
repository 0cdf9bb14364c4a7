"""What makes a model or a method another one."""

from __future__ import annotations

import json
import shutil

import pytest
from typer.testing import CliRunner

from raison.cli.app import app
from raison.core.errors import InputError, RaisonError
from raison.runs.driver import run
from raison.runs.identity import method_identity
from raison.runs.maintenance import repair_run
from raison.runs.run_spec import Means
from raison.runs.storage import place_of
from raison.runs.verify import verify_run
from raison.studies.method_lists import method_list
from tests.helpers.runs import shards_of, spec_of

runner = CliRunner()


def changed_normalizer(rules: dict, settings: dict) -> None:
    rules["normalizer"] = {"type": "Replace", "pattern": {"String": "e"}, "content": "a"}


def added_word(rules: dict, settings: dict) -> None:
    plain = {
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": True,
        "special": False,
    }
    rules["added_tokens"].append(
        {"id": max(rules["model"]["vocab"].values()), "content": "lovely film", **plain}
    )


def shorter_texts(rules: dict, settings: dict) -> None:
    settings["model_max_length"] = 8


def another_unknown(rules: dict, settings: dict) -> None:
    settings["unk_token"] = "[PAD]"


def cut_on_the_left(rules: dict, settings: dict) -> None:
    settings["truncation_side"] = "left"


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "change", [changed_normalizer, added_word, shorter_texts, another_unknown, cut_on_the_left]
)
def test_another_tokenizer_or_setting_of_it_is_another_model(folder, tmp_path, change, workers):
    shutil.copytree(folder / "model", tmp_path / "model")
    spec = spec_of(
        folder, model=str(tmp_path / "model"), limit=10, methods=("gradient_norm",), metrics=()
    )
    run(tmp_path / "r", spec)
    files = [tmp_path / "model" / name for name in ("tokenizer.json", "tokenizer_config.json")]
    rules, settings = (json.loads(file.read_text()) for file in files)
    change(rules, settings)
    for file, content in zip(files, (rules, settings), strict=True):
        file.write_text(json.dumps(content))
    shards_of(tmp_path / "r")[0].unlink()
    with pytest.raises(RaisonError, match="begun with"):
        run(tmp_path / "r", resume=True, means=Means(workers=workers))


@pytest.fixture
def tabled(folder, tmp_path, monkeypatch):
    """A run by a method that names a file, from the folder in which the file is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus.txt").write_text("a lovely film\nthe story is dull\n" * 20)
    assert runner.invoke(app, ["idf", "--data", "corpus.txt", "--out", "tab.json"]).exit_code == 0
    run("run", spec_of(folder, methods=("idf(table='tab.json')",), metrics=()))
    return tmp_path


def test_another_table_is_refused(tabled, folder):
    path = tabled / "run" / "shards" / "000000.jsonl"
    path.unlink()
    old = (tabled / "tab.json").read_bytes()
    (tabled / "corpus.txt").write_text("a\nlovely story\n" * 9)
    (tabled / "tab.json").unlink()
    assert runner.invoke(app, ["idf", "--data", "corpus.txt", "--out", "tab.json"]).exit_code == 0
    for workers in (1, 2):
        with pytest.raises(InputError, match="A file that a method .* names is another one now"):
            run("run", means=Means(workers=workers), resume=True)
    (tabled / "tab.json").unlink()
    with pytest.raises(InputError, match=r"'tab.json', which idf names, can't be read"):
        run("run", resume=True)
    with pytest.raises(InputError, match="can't be read"):
        run("new", spec_of(folder, methods=("idf(table='tab.json')",)))
    assert not (tabled / "new" / "spec.json").exists()
    (tabled / "tab.json").write_bytes(old)
    assert run("run", resume=True).state == "done"


def test_verifying_does_not_depend_on_where_one_stands(tabled, folder, monkeypatch):
    away = tabled / "away"
    away.mkdir()
    (away / "start").write_text("a file that is called like a setting")
    run("second", spec_of(folder, methods=("position(favours='start')",), metrics=()))
    monkeypatch.chdir(away)
    for name in ("run", "second"):
        assert verify_run(place_of(tabled / name)).whole and not repair_run(place_of(tabled / name))


def test_a_file_behind_another_method_counts(tabled):
    one = method_identity(method_list(["by_order(method=idf(table='tab.json'))"])[0])
    (tabled / "tab.json").write_text((tabled / "tab.json").read_text() + " ")
    assert method_identity(method_list(["by_order(method=idf(table='tab.json'))"])[0]) != one
