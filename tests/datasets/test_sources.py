"""Formats of sets that are not at hand, on records of our own."""

from __future__ import annotations

import gzip
import json

import pytest

from raison.core.errors import InputError
from raison.datasets import open_dataset

# -- formats of sets that are not at hand, on records of our own ------------------------------------------------


def test_beer_reviews_in_their_published_format(tmp_path):

    folder = tmp_path / "beer"
    folder.mkdir()
    rows = [
        "0.20 0.90 0.50 0.60 0.60\ta murky brown , smells great",
        "0.80 0.10 0.50 0.60 0.60\tclear gold with a firm head",
        "0.50 0.10 0.50 0.60 0.60\tneither here nor there",
        "0.60 0.10 0.50 0.60 0.60\tpours well",
        "0.40 0.10 0.50 0.60 0.60\tflat and pale",
        "1.00 0.10 0.50 0.60 0.60\tone more that is good",
    ]
    with gzip.open(folder / "reviews.aspect0.train.txt.gz", "wt") as file:
        file.write("\n".join(rows))
    (folder / "reviews.aspect1.train.txt").write_text(
        "\n".join([*rows, "0.1 0.2\tlong enough", "x 7 0 0 0\tbad score"])
    )
    record = {"x": ["a", "murky", "brown", ",", "smells", "great"], "y": [0.2, 0.9, 0.5, 0.6, 0.6]}
    marked = {**record, "0": [[0, 3]], "1": [[4, 6]], "2": []}
    (folder / "annotations.json").write_text(
        "\n".join(json.dumps(r) for r in (marked, {**marked, "0": []}))
    )
    found = open_dataset("beer", "train", data=tmp_path).examples
    assert [e.label for e in found] == [
        "negative",
        "positive",
    ] * 2  # as many of both; the neutral one is left out
    assert found[1].text == "clear gold with a firm head"
    every = open_dataset("beer(balanced=False)", "train", data=tmp_path).examples
    assert [e.label for e in every] == ["negative", "positive", "positive", "negative", "positive"]
    (test,) = open_dataset("beer", "test", data=tmp_path).examples
    assert [test.text[s.start : s.end] for s in test.gold] == [
        "a murky brown"
    ] and test.label == "negative"
    aroma = open_dataset("beer(aspect=aroma)", "test", data=tmp_path).examples
    assert [[e.text[s.start : s.end] for s in e.gold] for e in aroma] == [["smells great"]] * 2
    assert aroma[0].label == "positive"
    with pytest.raises(InputError, match="Line 8 .*the score '7' is no number from 0 to 1"):
        open_dataset("beer(aspect=aroma, balanced=False)", "train", data=tmp_path)
    with pytest.raises(InputError, match="aspect is appearance"):
        open_dataset("beer(aspect=taste)", "train", data=tmp_path)
    (folder / "annotations.json").write_text(json.dumps({**marked, "0": [[2, 9]]}))
    with pytest.raises(InputError, match="ends behind the 6 words"):
        open_dataset("beer", "test", data=tmp_path)


def test_hotel_reviews_in_their_published_format(tmp_path):
    oracle, target = tmp_path / "hotel" / "oracle", tmp_path / "hotel" / "target"
    oracle.mkdir(parents=True)
    target.mkdir()
    head = "task\tlabel\ttext"
    rows = [
        "hotel_Location\t1\tnear the station",
        "hotel_Location\t0\tfar from all",
        "hotel_Location\t1.0\tcentral",
    ]
    (oracle / "hotel_Location.train").write_text("\n".join([head, *rows]))
    (oracle / "hotel_Location.dev").write_text("\n".join([head, *rows]))
    marks = [
        "hotel_Location\t1\tvery near the station\t0 1 1 1",
        "hotel_Location\t0\tfar from all\t0 0 0",
    ]
    (target / "hotel_Location.train").write_text("\n".join([f"{head}\trationale", *marks]))
    assert [e.label for e in open_dataset("hotel", "train", data=tmp_path).examples] == [
        "negative",
        "positive",
    ]
    assert len(open_dataset("hotel", "dev", data=tmp_path).examples) == 3
    (test,) = open_dataset(
        "hotel", "test", data=tmp_path
    ).examples  # one without a mark is left out
    assert [test.text[s.start : s.end] for s in test.gold] == ["near the station"]
    (target / "hotel_Location.train").write_text(
        f"{head}\trationale\nhotel_Location\t1\tvery near\t0 1 1"
    )
    with pytest.raises(InputError, match="3 marks do not fit 2 tokens"):
        open_dataset("hotel", "test", data=tmp_path)


def test_the_embedded_reviews_need_no_folder_and_have_marked_words(monkeypatch):
    monkeypatch.delenv("RAISON_DATA", raising=False)
    found = open_dataset("reviews").examples
    assert (
        [e.label for e in found].count("positive")
        == 30
        == [e.label for e in found].count("negative")
    )
    assert all(e.gold and "*" not in e.text for e in found)
    first = found[0]
    assert [first.text[span.start : span.end] for span in first.gold] == ["warm", "funny"]
