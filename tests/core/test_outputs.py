"""Files that may be written: never over what is read, over a run, or over a file nobody gave up."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from raison.core.errors import InputError
from raison.core.outputs import check_outputs, replacing_output
from raison.testing import tiny_hf


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """The folder of a tiny classifier."""
    place = tmp_path_factory.mktemp("models") / "tiny"
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.float().save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place


def test_a_file_that_is_there_is_replaced_only_when_asked(tmp_path):
    path = tmp_path / "why.json"
    check_outputs([path, None])
    path.write_text("mine")
    with pytest.raises(InputError, match="is there already: replace it with --force"):
        check_outputs([path])
    check_outputs([path], force=True)
    assert path.read_text() == "mine"


def test_devices_pipes_folders_and_loops_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path, sentence in (
        (Path("/dev/null"), "is a device or a pipe"), (tmp_path / "pipe", "is a device or a pipe"),
        (tmp_path, "is a folder"), (tmp_path / "none" / "x.json", "can't be written"),
        (tmp_path / "loop", "leads nowhere"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=sentence):
            check_outputs([path], force=True)
    check_outputs([tmp_path / "none" / "x.json"], folders=True)


def test_nothing_that_is_read_is_written_over_by_whatever_link(tmp_path):
    folder, elsewhere = tmp_path / "model", tmp_path / "blobs"
    folder.mkdir()
    elsewhere.mkdir()
    (elsewhere / "0af3").write_text("weights")
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").symlink_to(elsewhere / "0af3")  # as in the cache of the hub
    data = tmp_path / "data.csv"
    data.write_text("text\n")
    (tmp_path / "soft.json").symlink_to(folder / "config.json")
    (tmp_path / "hard.json").hardlink_to(folder / "config.json")
    (tmp_path / "data.json").hardlink_to(data)
    (tmp_path / "again").symlink_to(folder)
    for path in (
        data, tmp_path / "data.json", folder / "config.json", tmp_path / "soft.json", tmp_path / "hard.json",
        elsewhere / "0af3", tmp_path / "again" / "config.json", tmp_path / "model" / ".." / "model" / "config.json",
    ):  # fmt: skip
        with pytest.raises(InputError, match="is read by this command"):
            check_outputs([path], force=True, inputs=[folder, data, None])
    check_outputs(
        [folder / "why.html", tmp_path / "why.html"], inputs=[folder, data]
    )  # new names harm nobody


def test_two_results_need_two_files(tmp_path):
    (tmp_path / "link.html").symlink_to(tmp_path / "a.html")
    with pytest.raises(InputError, match="is named for two results"):
        check_outputs([tmp_path / "a.html", tmp_path / "link.html"])


def test_a_result_takes_its_place_whole_or_not_at_all(tmp_path):
    path = tmp_path / "why.json"
    path.write_text("old")
    path.chmod(0o600)
    (tmp_path / "other").hardlink_to(path)
    with pytest.raises(OSError) as told, replacing_output(path) as half:
        half.write_text("ne")
        raise OSError(28, "No space left on device")
    assert told.value.filename == str(path)
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 2
    (tmp_path / "link.html").symlink_to(path)
    with replacing_output(tmp_path / "link.html") as half:
        assert half.suffix == ".html"
        half.write_text("new")
    assert (
        path.read_text() == "new"
        and stat.S_IMODE(path.stat().st_mode) == 0o600
        and (tmp_path / "link.html").is_symlink()
    )
    assert (tmp_path / "other").read_text() == "old"  # another name of the old file still has it
