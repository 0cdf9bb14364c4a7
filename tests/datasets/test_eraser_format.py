"""Data sets in the format of ERASER, published and a user's own."""

from __future__ import annotations

import csv
import io
import json
import re
import tarfile

import pytest

from raison.core.errors import InputError
from raison.datasets import open_dataset
from raison.datasets.eraser_format import read_eraser
from tests.helpers.published_data import packed, pieces


def test_eraser_evidence_is_the_stated_text(data_dir):
    raw = [
        json.loads(line) for line in packed(data_dir / "eraser_movies/val.jsonl.gz").splitlines()
    ]
    found = {example.id: example for example in open_dataset("eraser_movies", "val", data=data_dir)}
    with tarfile.open(data_dir / "eraser_movies/docs.tar.gz") as archive:
        for record in raw[:20] + raw[-20:]:
            example = found[record["annotation_id"]]
            text = archive.extractfile(f"docs/{example.id}").read().decode()
            said = sorted(
                (e["start_token"], e["text"]) for group in record["evidences"] for e in group
            )
            assert example.text == text
            assert [" ".join(piece.split()) for piece in pieces(example)] == [
                words for _, words in said
            ]
            assert example.label == {"NEG": "negative", "POS": "positive"}[record["classification"]]


@pytest.mark.parametrize(("split", "spans"), [("train", 13878), ("val", 1517), ("test", 2067 - 20)])
def test_eraser_evidence_is_complete(split, spans, data_dir):
    found = open_dataset("eraser_movies", split, data=data_dir)
    assert sum(len(example.gold) for example in found) == spans  # 20 in test have no token
    assert sum(not example.gold for example in found) == (1 if split == "train" else 0)


def test_eraser_sentences(data_dir):
    spans = open_dataset("eraser_movies", "val", data=data_dir, limit=8)
    whole = open_dataset("eraser_movies(level=sentence)", "val", data=data_dir, limit=8)
    for one, other in zip(spans, whole, strict=True):
        lines_of = {line.strip() for line in one.text.split("\n")}
        assert other.gold and all(
            {p.strip() for p in piece.split("\n")} <= lines_of for piece in pieces(other)
        )
        for span in one.gold:
            assert any(span.start >= w.start and span.end <= w.end for w in other.gold)


def test_cose_marks_words(data_dir):
    rows = list(
        csv.DictReader(io.StringIO(packed(data_dir / "eraser_cose/test.csv.gz"), newline=""))
    )
    for row, example in zip(rows, open_dataset("eraser_cose", data=data_dir), strict=True):
        words = [
            w
            for w, mark in zip(row["text"].split(), json.loads(row["rationale"]), strict=True)
            if mark
        ]
        assert " ".join(pieces(example)).split() == words
        assert example.meta["choices"] == row["query"].split(" [SEP] ")
        assert f"{example.label}) " in example.pair and all(
            span.segment == "first" for span in example.gold
        )


def eraser_folder(place, **changes):
    place.mkdir(exist_ok=True)
    (place / "docs").mkdir(exist_ok=True)
    (place / "docs" / "d1").write_text("a good film .\nthe plot is thin .\n")
    (place / "docs" / "d2").write_text("i  slept .")
    piece = {"docid": "d1", "start_token": 1, "end_token": 3, "text": "good film", **changes}
    other = {"docid": "d2", "start_token": 1, "end_token": 2, "text": "slept"}
    first = {
        "annotation_id": "r1",
        "classification": "POS",
        "evidences": [[piece]],
        "query": "Good ?",
    }
    second = {
        "annotation_id": "r2",
        "classification": "NEG",
        "evidences": [[other]],
        "docids": ["d1", "d2"],
        "query": "?",
    }
    (place / "val.jsonl").write_text("".join(json.dumps(x) + "\n" for x in (second, first)))
    return place


def test_eraser_folder_of_a_user(tmp_path):
    found = open_dataset(eraser_folder(tmp_path / "mine"))
    assert (found.split, found.task, [e.id for e in found]) == (
        "val",
        "classification",
        ["r2", "r1"],
    )
    assert [(pieces(e), e.label) for e in found] == [(["slept"], "NEG"), (["good film"], "POS")]
    assert found.examples[0].text == "a good film .\nthe plot is thin .\n\n\ni  slept ."
    asked = open_dataset(f"{tmp_path / 'mine'}(query=True, level=sentence)", "val")
    assert asked.task == "pair" and [(e.text, pieces(e)) for e in asked] == [
        ("?", ["i  slept ."]), ("Good ?", ["a good film ."]),
    ]  # fmt: skip
    assert len(open_dataset(tmp_path / "mine", limit=1)) == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"end_token": 4}, "1..4 of 'd1' holds 'good film .', not 'good film' as stated"),
        ({"end_token": 99}, "1..99 is not in 'd1', which has 9 tokens"),
        ({"end_token": 1, "text": ""}, "1..1 is not in 'd1'"),
        ({"docid": "d9"}, "the document 'd9' is not in"),
        ({"start_token": "1"}, "'start_token' is str"),
    ],
)
def test_evidence_that_is_wrong(changes, reason, tmp_path):
    folder = eraser_folder(tmp_path / "mine", **changes)
    with pytest.raises(
        InputError, match=rf"^Line 2 of '.*val.jsonl' is broken: .*{re.escape(reason)}"
    ):
        open_dataset(folder)
    found = open_dataset(folder, skip_broken=True)
    assert [e.id for e in found] == ["r2"] and len(found.broken) == 1


def test_empty_evidence_may_be_left_out(tmp_path):
    folder = eraser_folder(tmp_path / "mine", end_token=1, text="")
    rows = list(read_eraser(folder, "val", drop_empty=True))
    assert [(row.value.id, len(row.value.gold), row.mended) for row in rows] == [
        ("r2", 1, ()), ("r1", 0, ("empty evidence left out",)),
    ]  # fmt: skip
