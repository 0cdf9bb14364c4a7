"""Human rationales in every notation, of one person or of several."""

from __future__ import annotations

import warnings

import pytest

from raison.core.errors import RaisonError
from raison.datasets import open_dataset
from raison.datasets.annotation_parser import parse_annotations
from raison.datasets.annotations import TokenizedText
from tests.helpers.user_data import TEXT, jsonl, marks

# -- rationales --------------------------------------------------------------------------------------------------


NOTATIONS = {  # what stands in the column -> the marked words
    "character spans": ([[2, 6], [18, 28]], ["dull", "well acted"]),
    "character spans with a name": ([[2, 6, "NEG"], [18, 28, "POS"]], ["dull", "well acted"]),
    "objects": ([{"start": 18, "end": 28, "label": "x"}], ["well acted"]),
    "one object": ({"start": 18, "end": 28}, ["well acted"]),
    "objects as columns": (
        {"start": [2, 18], "end": [6, 28], "text": ["dull", "well acted"]},
        ["dull", "well acted"],
    ),
    "objects of tokens": ([{"start_token": 5, "end_token": 7}], ["well acted"]),
    "objects of offsets": ([{"start_offset": 2, "end_offset": 6}], ["dull"]),
    "0 and 1": ([0, 1, 0, 0, 0, 1, 1, 0], ["dull", "well acted"]),
    "0.0 and 1.0": ([0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0], ["dull", "well acted"]),
    "0 and 1 as text": ("[0, 1, 0, 0, 0, 1, 1, 0]", ["dull", "well acted"]),
    "0 and 1 of NumPy": ("[0 1 0 0 0 1 1 0]", ["dull", "well acted"]),
    "0 and 1 without brackets": ("0 1 0 0 0 1 1 0", ["dull", "well acted"]),
    "0 and 1 as words": (["0", "1", "0", "0", "0", "1", "1", "0"], ["dull", "well acted"]),
    "words": (["dull", "well"], ["dull", "well"]),
    "words as text": ("['dull', 'well']", ["dull", "well"]),
    "words of NumPy": ("['dull' 'well']", ["dull", "well"]),
    "words in JSON": ('["dull", "well acted"]', ["dull", "well acted"]),
    "words between semicolons": ("dull; well acted", ["dull", "well acted"]),
    "words between commas": ("well, dull", ["dull", "well"]),
    "one word": ("well acted", ["well acted"]),
    "words in other letters": (["DULL"], ["dull"]),
    "spans as text": ("[(2, 6), (18, 28)]", ["dull", "well acted"]),
    "one span as text": ("(18, 28)", ["well acted"]),
    "spans with a hyphen": ("2-6, 18-28", ["dull", "well acted"]),
    "numbers of characters": ([2, 3, 4, 5, 18, 19, 20, 21], ["dull", "well"]),
    "nothing": ([], []),
    "nothing as text": ("[]", []),
    "null": (None, []),
    "not a number": (float("nan"), []),
    "nan as text": ("nan", []),
}


@pytest.mark.parametrize("name", NOTATIONS)
def test_every_notation_gives_the_marked_words(name, tmp_path):
    given, expected = NOTATIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none of these could be something else
        (example,) = open_dataset(
            f"{jsonl(tmp_path / 'a.jsonl', {'text': TEXT, 'why': given})}(gold=why)"
        )
    assert marks(example) == expected
    if isinstance(given, str) and given:
        (tmp_path / "a.csv").write_text(
            f'text,why\n"{TEXT}","{given.replace(chr(34), chr(34) * 2)}"\n'
        )
        (example,) = open_dataset(f"{tmp_path / 'a.csv'}(gold=why)")
        assert marks(example) == expected


VOTES = {
    "majority": ["dull", "acted"],
    "union": ["dull film", "well acted"],
    "any": ["dull film", "well acted"],
}
PEOPLE = {  # three people in every notation
    "lists of 0 and 1": [
        [0, 1, 1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 1, 1, 0],
        [0, 1, 0, 0, 0, 0, 1, 0],
    ],
    "names": {
        "ann": [0, 1, 1, 0, 0, 0, 0, 0],
        "bob": [0, 1, 0, 0, 0, 1, 1, 0],
        "cy": [0, 1, 0, 0, 0, 0, 1, 0],
    },
    "text": "[[0, 1, 1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 1, 1, 0], [0, 1, 0, 0, 0, 0, 1, 0]]",
    "texts": ["[0, 1, 1, 0, 0, 0, 0, 0]", "[0 1 0 0 0 1 1 0]", "[0, 1, 0, 0, 0, 0, 1, 0]"],
    "spans": [[[2, 11]], [[2, 6], [18, 28]], [[2, 6], [23, 28]]],
    "spans as text": "[[(2, 11)], [(2, 6), (18, 28)], [(2, 6), (23, 28)]]",
    "words": [["dull film"], ["dull", "well acted"], ["dull", "acted"]],
}


@pytest.mark.parametrize("name", PEOPLE)
@pytest.mark.parametrize("vote", [*VOTES, "all"])
def test_marks_of_several_annotators_are_put_to_the_vote(name, vote, tmp_path):
    path = jsonl(
        tmp_path / "a.jsonl",
        {"text": TEXT, "gold": PEOPLE[name]},
        {"text": TEXT, "gold": [[], [], []]},
    )
    found = open_dataset(path, annotators=vote)
    assert marks(found.examples[0]) == VOTES.get(vote, ["dull"])
    assert found.examples[1].gold == ()
    assert f"of 3 annotators ({vote} of them)" in found.understood


def test_annotators_may_have_a_column_each(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        f'text,ann,bob,cy\n"{TEXT}",0 1 1 0 0 0 0 0,0 1 0 0 0 1 1 0,0 1 0 0 0 0 1 0\n"{TEXT}",,,\n'
    )
    found = open_dataset(f"{path}(gold=(ann, bob, cy))")
    assert [marks(example) for example in found] == [VOTES["majority"], []]
    assert found.examples[0].meta == {} and "'ann' and 'bob' and 'cy'" in found.understood
    with pytest.raises(RaisonError, match="no column 'dan' for gold"):
        open_dataset(f"{path}(gold=(ann, dan))")


def test_two_words_by_two_annotators_are_no_spans():
    """[1, 0] can be no span, so the lists hold 0 and 1 for each of two tokens."""
    assert [one.numbers for one in parse_annotations([[0, 1], [1, 0]], TokenizedText("a b"))] == [
        (0, 1),
        (1, 0),
    ]
    assert len(parse_annotations([[0, 1], [1, 2]], TokenizedText("a b"))[0].spans) == 2


def test_gold_inside_objects_of_annotators(tmp_path):
    people = [
        {"name": "ann", "marks": [0, 1, 1]},
        {"name": "bob", "marks": [0, 1, 0]},
        {"name": "cy", "marks": [0, 1, 1]},
    ]
    path = jsonl(tmp_path / "a.jsonl", {"text": "a dull film", "people": people})
    (example,) = open_dataset(f"{path}(gold=people.marks)")
    assert marks(example) == ["dull film"]


def test_cose_by_a_mapping_has_the_marks_of_its_loader(data_dir):
    path = data_dir / "eraser_cose" / "test.csv.gz"
    mine = open_dataset(f"{path}(label=classification, gold=rationale)")
    theirs = open_dataset("eraser_cose", data=data_dir)
    assert len(mine) == 1079 and "0 or 1 for each token" in mine.understood and mine.doubts == ()
    for one, other in zip(mine, theirs, strict=True):
        assert [(span.start, span.end) for span in one.gold] == [
            (span.start, span.end) for span in other.gold
        ]
