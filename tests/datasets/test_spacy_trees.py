"""Trees of plain text, by spaCy."""

from __future__ import annotations

import sys

import pytest

from raison.core.errors import InputError, MissingExtra
from raison.datasets import spacy_trees
from raison.datasets.conllu import Sentence


@pytest.fixture(scope="module")
def parser():
    pytest.importorskip("spacy")
    try:
        spacy_trees.load_spacy_model(None)
    except InputError as error:
        pytest.skip(str(error))


def arcs(sentence: Sentence, relation: str) -> set[tuple[str, str]]:
    name = lambda word: sentence.text[word.start : word.end]  # noqa: E731
    return {
        (name(w), name(sentence.words[w.head])) for w in sentence.words if w.relation == relation
    }


def test_parsed_trees_speak_universal_dependencies(parser, tmp_path):
    texts = [
        "The car is red.",
        "She quickly read the old book.",
        "The old book was not read.",
        "There is a dog in the garden.",
        "He is in the garden.",
    ]
    path = tmp_path / "plain.txt"
    path.write_text("\n".join([texts[0], "", *texts[1:]]), encoding="utf-8")
    car, book, passive, dog, garden = spacy_trees.parse_file_with_spacy(path)
    assert [s.text for s in (car, book, passive, dog, garden)] == texts
    assert arcs(car, "nsubj") == {("car", "red")}  # P4's own example
    assert arcs(book, "obj") == {("book", "read")} and arcs(book, "amod") == {("old", "book")}
    assert arcs(book, "advmod") == {("quickly", "read")}
    assert arcs(passive, "nsubj:pass") == {("book", "read")} and arcs(passive, "advmod") == {
        ("not", "read")
    }
    assert arcs(dog, "nsubj") == {("dog", "is")} and arcs(garden, "nsubj") == {("He", "garden")}
    assert len(spacy_trees.parse_file_with_spacy(path, 2)) == 2


def test_what_to_install_for_parsing(parser, monkeypatch, tmp_path):
    with pytest.raises(
        InputError, match="no_such_sm' is not installed: install it with  python -m spacy download"
    ):
        list(spacy_trees.parse_texts_with_spacy(["A text."], parser="no_such_sm"))
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtra, match=r"raison\[parse\]"):
        list(spacy_trees.parse_texts_with_spacy(["A text."]))
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(InputError, match="holds no text"):
        spacy_trees.parse_file_with_spacy(tmp_path / "empty.txt")
