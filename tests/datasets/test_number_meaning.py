"""What numbers in an annotation count: characters, tokens or words."""

from __future__ import annotations

import json
import warnings

import pytest

from raison.core.errors import DataWarning
from raison.datasets import open_dataset
from raison.datasets.number_meaning import decide_meaning_of_numbers
from tests.helpers.user_data import TEXT, jsonl, marks


@pytest.mark.parametrize(
    ("given", "numbers", "expected"),
    [
        ("1,5,6", "tokens", ["dull", "well acted"]),
        ([1], "tokens", ["dull"]),
        ([[1, 2], [5, 7]], "tokens", ["dull", "well acted"]),
        ("[(5, 7)]", "tokens", ["well acted"]),
        ([[2, 6]], "characters", ["dull"]),
        ([2, 3, 4, 5], "characters", ["dull"]),
        ([0, 1, 0, 0, 0, 0, 0, 0], "flags", ["dull"]),
        ([{"start": 5, "end": 7, "text": "well acted"}], "tokens", ["well acted"]),
    ],
)
def test_what_numbers_count_can_be_said(given, numbers, expected, tmp_path):
    path = jsonl(tmp_path / "a.jsonl", {"text": TEXT, "gold": given})
    found = open_dataset(f"{path}(numbers={numbers})")
    assert marks(found.examples[0]) == expected and found.doubts == ()


@pytest.mark.parametrize(
    ("given", "taken", "expected"),
    [
        ([[2, 6]], "characters", ["dull"]),  # as tokens: film , but well
        ([[5, 7]], "tokens", ["well acted"]),  # as characters it would cut words
        ("1,5,6", "tokens", ["dull", "well acted"]),
        ([[[5, 7]], [[5, 6]]], "tokens", []),  # no word has more than one vote, but `well`
    ],
)
def test_numbers_that_could_be_characters_or_tokens_are_warned_about(
    given, taken, expected, tmp_path
):
    path = jsonl(tmp_path / "a.jsonl", {"text": TEXT, "gold": given})
    with pytest.warns(
        DataWarning, match="could be characters or tokens: as characters they mark .*, as tokens "
    ) as told:
        found = open_dataset(path)
    assert len(told) == 1
    if expected:
        assert marks(found.examples[0]) == expected
    assert (
        len(found.doubts) == 1
        and f"They are read as {taken}: say which with numbers=" in found.doubts[0]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_dataset(path, numbers="tokens")
        # one record further on shows what they are
        jsonl(
            tmp_path / "b.jsonl",
            {"text": TEXT, "gold": [[2, 6]]},
            {"text": TEXT, "gold": [[18, 28]]},
        )
        assert open_dataset(tmp_path / "b.jsonl").doubts == ()


def test_characters_that_cut_words_are_warned_about(tmp_path):
    """Tokens that are counted from 1 go beyond the last one, and would be taken for characters."""
    path = jsonl(tmp_path / "a.jsonl", {"text": TEXT, "gold": [4, 8]})
    with pytest.warns(
        DataWarning, match="read as characters, which cut words in two: say what they count"
    ):
        open_dataset(path)


def test_a_list_of_words_is_counted_by_its_own_words(tmp_path):
    """0 and 1 for each word of the list, also where a word has a space in it (HateXplain has such lists)."""
    path = jsonl(
        tmp_path / "a.jsonl",
        {"words": ["New York", "is", "dull"], "why": [[1, 0, 1], [0, 0, 1], [0, 0, 1]]},
    )
    (example,) = open_dataset(f"{path}(text=words, gold=why)")
    assert (example.text, marks(example)) == ("New York is dull", ["dull"])


def test_a_record_that_is_wrong_does_not_change_what_numbers_count(tmp_path):
    """A span beyond the text speaks neither for characters nor for tokens."""
    records = [{"text": TEXT, "gold": [[5, 7]]}, {"text": TEXT, "gold": [[5, 99]]}]
    with pytest.warns(DataWarning):
        found = open_dataset(jsonl(tmp_path / "a.jsonl", *records), skip_broken=True)
    assert marks(found.examples[0]) == ["well acted"] and len(found.broken) == 1
    assert decide_meaning_of_numbers([]).numbers == "flags"


def test_decisions_look_no_further_than_they_must(tmp_path):
    """A file is not read to its end for the first records."""
    path = tmp_path / "a.jsonl"
    with path.open("w") as file:
        for number in range(1000):
            file.write(json.dumps({"text": f"text {number}"}) + "\n")
        file.write("{{{\n")
    assert len(open_dataset(path, limit=10)) == 10
