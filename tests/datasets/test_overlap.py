"""Texts that two data sets share are known."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets import open_dataset, overlap


def test_overlaps_that_are_known(data_dir):
    sst, mr = (
        open_dataset("sentconv_cls", "test", data=data_dir),
        open_dataset("sentconv_cls(corpus=mr)", data=data_dir),
    )
    assert len(overlap(sst, mr)) == 1431
    assert len(overlap(sst, open_dataset("nltk_reviews(corpus=sentences)", data=data_dir))) == 1431
    assert (
        len(
            overlap(*(open_dataset("ag_news", split, data=data_dir) for split in ("train", "test")))
        )
        == 1
    )
    edited = open_dataset("imdb_counterfactual", "test", data=data_dir)
    train = open_dataset("imdb", "train", data=data_dir)
    found = overlap(edited, train)
    assert len(found) == 82 and all(edited.examples[i].meta["role"] == "original" for i in found)
    assert len(overlap(edited, train, letters=150)) == 97


@pytest.mark.full
def test_movies_that_are_in_both(data_dir):
    movies = [
        e
        for split in ("train", "val", "test")
        for e in open_dataset("eraser_movies", split, data=data_dir)
    ]
    assert len(overlap(movies, open_dataset("nltk_reviews", data=data_dir), letters=150)) == 1997


def test_overlap():
    train = [
        "Good, good film!",
        "bad",
        "...",
        Example("a", "b"),
        "goodgoodfilm",
        "good good film, says he",
    ]
    test = ["good good FILM", "!!!", Example("A", "c"), Example("A.", "B")]
    assert overlap(train, test) == [0, 3, 4]
    assert overlap(train, test, letters=12) == [0, 3, 4, 5]
    assert overlap([], test) == overlap(train, []) == []
    with pytest.raises(InputError, match="letters"):
        overlap(train, test, letters=0)
