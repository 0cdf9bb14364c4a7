"""How training data are named."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError
from raison.training.data_names import named, several


def test_names_joined_by_plus(tmp_path):
    assert several("wikitext2+imdb(level=a+b) + x.txt") == ["wikitext2", "imdb(level=a+b)", "x.txt"]
    assert several(["a+b", "c"]) == [["a+b", "c"]] and several("imdb") == ["imdb"]
    (tmp_path / "a+b.txt").write_text("x")
    assert several(str(tmp_path / "a+b.txt")) == [str(tmp_path / "a+b.txt")]
    assert named(f"wikitext2+{tmp_path}/c.txt") == "wikitext2+c.txt"
    with pytest.raises(InputError, match=r"names nothing on one side of a \+"):
        several("imdb+")


def test_reports_name_no_folder(tmp_path):
    (tmp_path / "my (1).txt").write_text("x")
    assert named(tmp_path / "my (1).txt") == "my (1).txt"
    assert named(f"{tmp_path}/pairs.csv(text=de, label=en)") == "pairs.csv(text=de, label=en)"
    assert named(["a"]) == "texts in memory"
