"""How training data are named."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError
from raison.training.data_names import name_of_data, split_joined_data


def test_names_joined_by_plus(tmp_path):
    assert split_joined_data("wikitext2+imdb(level=a+b) + x.txt") == [
        "wikitext2",
        "imdb(level=a+b)",
        "x.txt",
    ]
    assert split_joined_data(["a+b", "c"]) == [["a+b", "c"]] and split_joined_data("imdb") == [
        "imdb"
    ]
    (tmp_path / "a+b.txt").write_text("x")
    assert split_joined_data(str(tmp_path / "a+b.txt")) == [str(tmp_path / "a+b.txt")]
    assert name_of_data(f"wikitext2+{tmp_path}/c.txt") == "wikitext2+c.txt"
    with pytest.raises(InputError, match=r"names nothing on one side of a \+"):
        split_joined_data("imdb+")


def test_reports_name_no_folder(tmp_path):
    (tmp_path / "my (1).txt").write_text("x")
    assert name_of_data(tmp_path / "my (1).txt") == "my (1).txt"
    assert (
        name_of_data(f"{tmp_path}/pairs.csv(text=de, label=en)") == "pairs.csv(text=de, label=en)"
    )
    assert name_of_data(["a"]) == "texts in memory"
