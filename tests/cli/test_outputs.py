"""Every command writes its results to files of their own."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from raison.cli.app import app
from raison.cli.inputs import input_files_of_data, input_files_of_methods
from raison.core.errors import InputError
from raison.core.outputs import check_folder, run_folder_around
from raison.core.records import Explanation
from raison.runs.driver import run
from raison.runs.export_run import check_dataset_to_export, export_run
from raison.runs.run_spec import RunSpec
from raison.runs.storage import place_of
from raison.studies.reproduce.part_store import PART
from raison.testing import tiny_hf
from raison.training.multi_seed import train_with_seeds
from raison.training.training_folder import BEST, CHECKPOINT, prepare_training_folder

TEXT = "a lovely film"


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """The folder of a tiny classifier."""
    place = tmp_path_factory.mktemp("models") / "tiny"
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.float().save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def finished(model, tmp_path_factory) -> Path:
    """The folder of a run."""
    place = tmp_path_factory.mktemp("runs") / "r"
    data = place.parent / "data.csv"
    data.write_text("text\n" + "\n".join(f"{TEXT} {k}" for k in range(4)))
    run(place, RunSpec(str(model), str(data), ("gradient_norm",)))
    return place


@pytest.fixture
def copied(finished, tmp_path) -> Path:
    return shutil.copytree(finished, tmp_path / "run")


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def raison(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(sentence: str, *words: object) -> None:
    """The command ends with a sentence, and at once: it has opened no model."""
    told = raison(*words)
    assert told.exit_code == 2, told.output
    assert sentence in told.output and "Traceback" not in told.output


# -- the check ----------------------------------------------------------------------------------------------------


def test_files_of_data_and_methods_are_found(tmp_path):
    (tmp_path / "a (1).csv").write_text("text\n")
    (tmp_path / "h.json").write_text("{}")
    table = str(tmp_path / "a (1).csv")
    assert input_files_of_data(f"{table}(text=text)") == [Path(table)]
    (tmp_path / "sst2").mkdir()
    assert input_files_of_data("sst2", tmp_path) == [tmp_path / "sst2"]
    assert input_files_of_data("hf:imdb") == [Path("hf:imdb")] and not input_files_of_data(None)
    heads = str(tmp_path / "h.json")
    named = [
        f"masked_lrp(heads={heads!r})",
        f"by_order(method=masked_lrp(heads={heads!r}))",
        "random",
        "(((",
    ]
    assert input_files_of_methods(named) == [Path(heads), Path(heads)]


# -- runs -----------------------------------------------------------------------------------------------------------


def test_no_result_is_written_into_a_run(copied, tmp_path):
    before = bytes_of(copied)
    (tmp_path / "soft").symlink_to(copied)
    (tmp_path / "hard.parquet").hardlink_to(copied / "shards" / "000000.jsonl")
    for out, sentence in (
        (copied / "shards" / "000000.jsonl", "is inside of the run"), (copied / "new.parquet", "is inside of the run"),
        (tmp_path / "soft" / "spec.json", "is inside of the run"), (Path("/dev/null"), "is a device or a pipe"),
        (tmp_path / "hard.parquet", "is read by this command"),
    ):  # fmt: skip
        for more in ([], ["--force"]):
            refused(sentence, "store", "export", copied, out, *more)
    refused("is inside of the run", "report", copied, "--out", copied / "status.json", "--force")
    refused(
        "is inside of the run", "explain", TEXT, "--out", copied / "plan" / "header.json", "--force"
    )
    refused(
        "something else than a folder of datasets",
        "store",
        "export",
        copied,
        copied,
        "--format",
        "datasets",
    )
    for out in (copied / "shards" / "000000.jsonl", Path("/dev/null")):
        with pytest.raises(InputError):
            export_run(place_of(copied), out)
    assert bytes_of(copied) == before
    assert not stat.S_ISREG(os.stat("/dev/null").st_mode)


def test_a_run_has_a_folder_for_exports(copied):
    out = copied / "export" / "mine.parquet"
    assert raison("store", "export", copied, out).exit_code == 0
    first = out.read_bytes()
    refused("is there already", "store", "export", copied, out)
    assert raison("store", "export", copied, out, "--force").exit_code == 0
    assert out.read_bytes() == first


def test_a_run_is_begun_only_where_nothing_foreign_is(model, finished, copied, tmp_path):
    data = finished.parent / "data.csv"
    words = ["run", "-m", model, "-d", data, "-M", "gradient_norm", "--out"]
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "lock").write_text("my key")
    (mine / "thesis.tex").write_text("all of it")
    for folder, sentence in (
        (mine, "something else than a run (thesis.tex)"),
        (model, "something else than a run"),
    ):
        before = bytes_of(folder)
        refused(sentence, *words, folder)
        assert bytes_of(folder) == before
    (mine / "spec.json").write_text('{"openapi": "3.0"}')  # a spec, but not ours
    before = bytes_of(mine)
    assert raison(*words, mine).exit_code == 2 and bytes_of(mine) == before
    refused("is inside of the run", *words, copied / "shards" / "inner")
    (tmp_path / "empty").mkdir()
    assert raison(*words, tmp_path / "empty").exit_code == 0
    assert run_folder_around(tmp_path / "empty" / "x") == tmp_path / "empty"


def test_a_folder_of_datasets_replaces_only_one_of_its_kind(tmp_path):
    out = tmp_path / "set"
    check_dataset_to_export(out)
    out.mkdir()
    check_dataset_to_export(out)
    for name in ("dataset_info.json", "state.json", "data-00000-of-00001.arrow"):
        (out / name).write_text("")
    with pytest.raises(InputError, match="is there already"):
        check_dataset_to_export(out)
    check_dataset_to_export(out, force=True)
    (out / "notes.txt").write_text("")
    with pytest.raises(InputError, match=r"something else than a folder of datasets \(notes.txt\)"):
        check_dataset_to_export(out, force=True)


TREES = "1\tgood\t_\tADJ\t_\t_\t2\tamod\t_\t_\n2\tfilm\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


COMMANDS: dict[str, list[str]] = {
    "explain out": ["explain", TEXT, "-m", "{model}", "--out", "{file}.jsonl"],
    "explain html": ["explain", TEXT, "-m", "{model}", "--html", "{file}.html"],
    "explain figure": ["explain", TEXT, "-m", "{model}", "--figure", "{file}.svg"],
    "rationalize out": ["rationalize", TEXT, "-m", "{model}", "--out", "{file}.jsonl"],
    "rationalize html": ["rationalize", TEXT, "-m", "{model}", "--html", "{file}.html"],
    "rationalize figure": ["rationalize", TEXT, "-m", "{model}", "--figure", "{file}.svg"],
    "evaluate out": [
        "evaluate",
        "-d",
        "{data}",
        "-m",
        "{model}",
        "-M",
        "random",
        "--out",
        "{file}.md",
    ],
    "evaluate export": [
        "evaluate",
        "-d",
        "{data}",
        "-m",
        "{model}",
        "-M",
        "random",
        "--export",
        "{file}.jsonl",
    ],
    "report": ["report", "{run}", "--out", "{file}.html"],
    "heads out": ["heads", "-m", "{model}", "--data", "{trees}", "--out", "{file}.json"],
    "heads figure": ["heads", "-m", "{model}", "--data", "{trees}", "--figure", "{file}.svg"],
    "heads positions": ["heads", "-m", "{model}", "--data", "{trees}", "--positions", "{file}.svg"],
    "audit": ["audit", "-m", "{model}", "-d", "{data}", "--html", "{file}.html"],
    "idf": ["idf", "--data", "{texts}", "--out", "{file}.json"],
    "compatibility": ["compatibility", "-m", "{model}", "-d", "{texts}", "--figure", "{file}.svg"],
    "show": ["show", "{saved}", "--html", "{file}.html"],
    "store export": ["store", "export", "{run}", "{file}.parquet"],
}


@pytest.fixture
def there(model, finished, tmp_path) -> dict[str, Path]:
    """Everything that the commands read."""
    places = {
        "model": model,
        "run": finished,
        "data": tmp_path / "data.csv",
        "texts": tmp_path / "texts.txt",
    }
    places |= {
        "trees": tmp_path / "t.conllu",
        "saved": tmp_path / "saved.html",
        "file": tmp_path / "result",
    }
    places["data"].write_text("text,label\na lovely film,positive\n")
    places["texts"].write_text("a lovely film\n")
    places["trees"].write_text(TREES)
    places["saved"].write_text("{}")
    return places


# -- every command ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_asks_before_it_replaces_a_file(name, there, monkeypatch):
    words = [word.format(**there) for word in COMMANDS[name]]
    out = Path(next(word for word in words if word.startswith(str(there["file"]))))
    out.write_text("mine")
    monkeypatch.setitem(
        sys.modules, "raison.models.load", None
    )  # before the work: no model may be opened
    refused("is there already: replace it with --force", *words)
    assert out.read_text() == "mine"


def test_every_option_that_names_a_file_is_among_these():
    import typer

    root = typer.main.get_command(app)
    # folders with rules of their own: a run, a training, what is kept of an audit or a reproduction
    folders = {"run": {"out"}, "audit": {"keep"}, "reproduce": {"keep", "page"}}
    known = {"out", "html", "figure", "positions", "export", "svg", "png", "pdf", "tex"}
    store = root.commands["store"]
    commands = {name: root.whole_command(name) for name in root.commands}
    commands |= {f"store {name}": store.whole_command(name) for name in store.commands}
    for name, command in commands.items():
        options = {parameter.name for parameter in command.params}
        wanted = (options & known) - folders.get(name, set())
        assert ("force" in options) == bool(wanted or name == "reproduce"), name
        assert not wanted or any(line.startswith(name) for line in COMMANDS), name


def test_what_a_command_reads_is_never_its_result(model, finished, there, tmp_path):
    again = tmp_path / "again.json"
    again.hardlink_to(model / "config.json")
    table = tmp_path / "table.json"
    table.write_text("{}")
    evaluated = ["evaluate", "-m", model, "-d", f"{there['data']}(text=text)"]
    for words in (
        ["explain", TEXT, "-m", model, "--out", model / "config.json"],
        ["explain", TEXT, "-m", model, "--out", again],
        ["explain", TEXT, "-m", model, "-M", f'idf(table="{table}")', "--out", table],
        ["explain", "--question", "What?", "--context", there["texts"], "--out", there["texts"]],
        [
            "rationalize",
            "--question",
            "What?",
            "--context",
            there["texts"],
            "--out",
            there["texts"],
        ],
        ["evaluate", "-d", f"{there['data']}(text=text)", "--out", there["data"]],
        ["evaluate", "--explanations", table, "--out", table],
        [
            *evaluated,
            "-M",
            "random",
            "--export",
            tmp_path / "x.jsonl",
            "--out",
            model / "config.json",
        ],
        ["idf", "--data", there["texts"], "--out", there["texts"]],
        ["heads", "-m", model, "--data", there["trees"], "--out", there["trees"]],
        ["heads", "-m", model, "--heads", table, "--out", table],
        ["show", there["saved"], "--html", there["saved"]],
    ):
        refused("is read by this command", *words, "--force")
    assert (model / "config.json").stat().st_size > 2 and there[
        "texts"
    ].read_text() == "a lovely film\n"


def test_statistics_beside_their_model_can_be_made_again(model, there, tmp_path):
    own = shutil.copytree(model, tmp_path / "own")
    words = ["heads", "-m", own, "--data", there["trees"], "--out", own / "heads.json"]
    assert (told := raison(*words)).exit_code == 0, told.output
    refused("is there already", *words)
    assert raison(*words, "--force").exit_code == 0


def test_force_replaces(model, tmp_path):
    out, page = tmp_path / "why.jsonl", tmp_path / "why.html"
    words = ["explain", TEXT, "-m", model, "-M", "gradient_norm", "--out", out, "--html", page]
    assert raison(*words).exit_code == 0
    first = Explanation.from_json(out.read_text())
    out.write_text("old")
    page.write_text("old")
    assert raison(*words, "--force").exit_code == 0
    assert Explanation.from_json(out.read_text()) == first  # but for what it cost
    assert page.read_text() != "old"


# -- folders ------------------------------------------------------------------------------------------------------


def test_a_model_is_trained_only_where_nothing_foreign_is(tmp_path):
    folder = tmp_path / "model"
    prepare_training_folder(folder, "training.json")
    (folder / BEST).write_text("")  # a run was killed before its first checkpoint
    prepare_training_folder(folder, "training.json")
    (folder / "photos").mkdir()
    with pytest.raises(InputError, match=r"something else than a training \(--out\) \(photos\)"):
        prepare_training_folder(folder, "training.json")
    (folder / CHECKPOINT).write_text("")
    prepare_training_folder(folder, "training.json")


def test_several_runs_are_trained_only_where_nothing_foreign_is(tmp_path):
    def trained(folder: Path, seed: int) -> dict:
        raise AssertionError("no run may begin")

    for name in ("notes.txt", "run-1/notes.txt"):  # the second is found before the first run begins
        path = tmp_path / name.replace("/", "-") / name
        path.parent.mkdir(parents=True)
        path.write_text("mine")
        with pytest.raises(InputError, match=r"something else than .* \(notes.txt\)"):
            train_with_seeds(trained, tmp_path / name.replace("/", "-"), 2, 0, lambda report: True)
        assert path.read_text() == "mine"


def test_parts_of_reproductions_are_kept_only_where_nothing_foreign_is(tmp_path):
    keep, page = tmp_path / "keep", tmp_path / "page.md"
    keep.mkdir()
    (keep / "P4-table1.SST-2.random-1.0123456789ab.json").write_text("{}")
    (keep / ".77-140.half.json").write_text("{}")
    check_folder(keep, lambda name: PART.fullmatch(name) is not None, "parts")
    (keep / "thesis.tex").write_text("")
    refused(
        "something else than parts of reproductions (thesis.tex)",
        "reproduce",
        "P0-figure3",
        "--keep",
        keep,
    )
    page.write_text("# My page\n\n## Zebras\n\n## Ants\n")
    refused("is there already", "reproduce", "P0-figure3", "--page", page)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "P0-figure3.mine.svg").write_text("")
    page.write_text("# Reproduction\n\n## P4-table1: Ten methods\n")
    refused("is there already", "reproduce", "P0-figure3", "--page", page)
    page.write_bytes(b"\xff\xfe\x00")
    refused("is no page of text", "reproduce", "P0-figure3", "--page", page)
