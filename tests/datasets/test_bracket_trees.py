"""Trees in brackets and their phrases."""

from __future__ import annotations

import re

import pytest

from raison.core.errors import InputError
from raison.datasets import open_dataset
from raison.datasets.bracket_trees import parse_tree
from tests.helpers.published_data import packed, pieces


def test_trees_agree_with_their_brackets(data_dir):
    raw = packed(data_dir / "sst_trees/dev.txt.gz").splitlines()
    found = open_dataset("sst_trees(classes=5)", "dev", data=data_dir)
    names = ("very negative", "negative", "neutral", "positive", "very positive")
    marks = 0
    for line, example in zip(raw, found, strict=True):
        leaves = re.findall(r"\((\d) ([^()]+)\)", line)
        assert example.label == names[int(line[1])] and example.meta["score"] == int(line[1])
        far = [word for label, word in leaves if label in "04"]
        assert [p.replace("/", "\\/") for p in pieces(example)] == [
            word.replace("\\*", "*") for word in far
        ]
        assert len(example.text.split(" ")) == len(leaves)
        marks += len(far)
    assert marks == 540
    near = open_dataset("sst_trees", "dev", data=data_dir, distance=1)
    assert sum(len(e.gold) for e in near) == sum(
        len(re.findall(r"\([0134] [^()]+\)", line)) for line in raw if line[1] != "2"
    )


def test_phrases_of_a_tree(tmp_path):
    folder = tmp_path / "sst_trees"
    folder.mkdir()
    (folder / "dev.txt").write_text("(3 (2 It) (4 (2 's) (4 (0 bad) (3 -LRB-))))\n")
    found = open_dataset("sst_trees(classes=5, phrases=True)", "dev", data=tmp_path)
    assert [(e.id, e.text, e.label, pieces(e)) for e in found] == [
        ("1/0", "It 's bad (", "positive", ["bad"]),
        ("1/1", "It", "neutral", []),
        ("1/2", "'s bad (", "very positive", ["bad"]),
        ("1/3", "'s", "neutral", []),
        ("1/4", "bad (", "very positive", ["bad"]),
        ("1/5", "bad", "very negative", ["bad"]),
        ("1/6", "(", "positive", []),
    ]
    two = open_dataset("sst_trees(phrases=True)", "dev", data=tmp_path)
    assert [e.label for e in two] == ["positive", "positive", "positive", "negative", "positive"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("(3 (2 It) (4 works)", "not closed"),
        ("(3 (2 It) (4 works)))", "follows the end"),
        ("It works", "begins with"),
        ("(3 It works)", "bracket of its own"),
        ("(3 (2 It) ())", "no label"),
        ("(3 (2 It) (4))", "no word"),
        ("", "no tree"),
    ],
)
def test_trees_that_are_none(line, why):
    with pytest.raises(InputError, match=why):
        parse_tree(line)
