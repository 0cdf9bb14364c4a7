"""A file is written whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

from raison.core.files import is_half_written, remove_half_written, write_whole
from raison.core.fingerprint import sha256_of_file


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_takes_the_place_of_the_earlier_one_when_it_is_complete(tmp_path, durable):
    path = tmp_path / "table.json"
    path.write_text("old")
    path.chmod(0o640)
    with write_whole(path, durable=durable) as half:
        half.write_text("new")
        assert path.read_text() == "old" and half.suffix == ".json"
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["table.json"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_after_an_error_the_earlier_file_is_there_and_nothing_else(tmp_path):
    path = tmp_path / "table.json"
    path.write_text("old")
    with pytest.raises(OSError, match="No space left"), write_whole(path) as half:
        half.write_text("ne")
        raise OSError(28, "No space left on device")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["table.json"]


KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from raison.core.files import write_whole
with write_whole(Path(sys.argv[1])) as half:
    half.write_text("ne")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_leaves_is_known_by_its_name(tmp_path):
    path = tmp_path / "deep" / "table.json"
    path.parent.mkdir()
    path.write_text("old")
    (tmp_path / ".my.half.notes").write_text("mine")
    subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(path)], check=False)
    left = [name for name in os.listdir(path.parent) if name != "table.json"]
    assert path.read_text() == "old" and len(left) == 1 and is_half_written(left[0])
    assert not is_half_written("table.json") and not is_half_written("model.half")
    remove_half_written(tmp_path)
    assert os.listdir(path.parent) == ["table.json"] and (tmp_path / ".my.half.notes").exists()


def test_the_sha256_of_a_file_is_that_of_its_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert (
        sha256_of_file(tmp_path / "a")
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
