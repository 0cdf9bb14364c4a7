"""Odd records of a file."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError
from raison.datasets.open import open_dataset

GOOD = '{"text": "a fine film", "label": "good"}'


@pytest.mark.parametrize(
    "bad",
    [
        '{"text": "x", "label": ' + "9" * 5000 + "}",
        '{"text": "x", "slots": 5}',
        '{"text": "x", "gold": [{"start": 0, "end": 1, "segment": [1]}]}',
        '{"text": "x", "gold": "' + "[" * 100_000 + '"}',
    ],
    ids=["long number", "slots", "segment", "deep gold"],
)
def test_one_odd_record_is_one_broken_record(bad, tmp_path):
    file = tmp_path / "data.jsonl"
    file.write_text(f"{GOOD}\n{bad}\n{GOOD}\n")
    read = open_dataset(str(file), skip_broken=True)
    assert len(read.examples) == 2 and len(read.broken) == 1
    with pytest.raises(InputError, match="Line 2 of"):
        open_dataset(str(file))


def test_encodings_and_levels_that_do_not_exist(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"text\nna\xefve\n")
    with pytest.raises(InputError, match="is no encoding of texts"):
        open_dataset(f"{tmp_path / 'a.csv'}(encoding=rot13)")
    (tmp_path / "a.txt").write_text("one line\n")
    with pytest.raises(InputError, match="level"):
        open_dataset(f"{tmp_path / 'a.txt'}(level=sentence)")
