"""Treebanks in CoNLL-U: words with their places in the text, and files that are none."""

from __future__ import annotations

import gzip
from collections import Counter

import pytest

from raison.core.errors import InputError
from raison.datasets import conllu
from raison.studies.head_statistics import RELATIONS
from tests.helpers.treebanks import EWT, TREEBANK


def test_words_are_known_by_their_characters(sentences):
    first, second = sentences
    assert [first.text[w.start : w.end] for w in first.words] == (
        "The old film did n't surprise the town , and the town loved the film quickly .".split()
    )
    assert first.words[2].start == 8 and first.words[14].start == first.text.rindex(
        "film"
    )  # two films
    assert (
        first.words[7].relation == "obj" and first.words[7].head == 5 and first.words[5].head == -1
    )
    assert (first.id, second.id) == ("one", "two")
    assert second.text == "She left the small town."  # put together from its words


def test_compressed_and_limited(treebank, tmp_path):
    packed = tmp_path / "small.conllu.gz"
    packed.write_bytes(gzip.compress(treebank.read_bytes()))
    assert conllu.read_conllu(packed) == conllu.read_conllu(treebank)
    assert len(conllu.read_conllu(packed, 1)) == 1


def test_words_that_do_not_spell_their_token_share_it(tmp_path):
    path = tmp_path / "french.conllu"
    rows = [
        "1-2\tau\t_\t_\t_\t_\t_\t_\t_\t_",
        "1\tà\t_\t_\t_\t_\t3\tcase\t_\t_",
        "2\tle\t_\t_\t_\t_\t3\tdet\t_\t_",
    ]
    path.write_text("\n".join([*rows, "3\tparc\t_\t_\t_\t_\t0\troot\t_\t_"]), encoding="utf-8")
    (found,) = conllu.read_conllu(path)
    assert found.text == "au parc"
    assert [(w.start, w.end) for w in found.words] == [(0, 2), (0, 2), (3, 7)]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("2\told\told\tADJ", "2\told\tADJ", 4),
        ("3\tfilm\tfilm", "4\tfilm\tfilm", 5),
        ("NN\t_\t6\tnsubj\t", "NN\t_\t60\tnsubj\t", 5),
        ("NN\t_\t6\tnsubj\t", "NN\t_\tx\tnsubj\t", 5),
        ("4-5\tdidn't", "4-5\tdidnt", 6),
        ("4-5\tdidn't", "5-6\tdidn't", 6),
        ("4-5\tdidn't", "4-50\tdidn't", 6),
        ("didn't surprise", "didn't ever surprise", 9),
    ],
)
def test_a_broken_line_is_named(treebank, old, new, line):
    assert old in TREEBANK
    treebank.write_text(TREEBANK.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(
        InputError, match=f"^Line {line} of 'small.conllu' is not CoNLL-U .*--parse"
    ):
        conllu.read_conllu(treebank)


def test_files_that_are_no_treebank(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        conllu.read_conllu(tmp_path / "none.conllu")
    (tmp_path / "empty.conllu").write_text("# text = nothing\n\n")
    (tmp_path / "torn.gz").write_bytes(gzip.compress(TREEBANK.encode())[:-20])
    (tmp_path / "latin.conllu").write_bytes(b"1\t\xe9t\xe9\n")
    for name, why in (
        ("empty.conllu", "no sentence"),
        ("torn.gz", "cut or damaged"),
        ("latin.conllu", "UTF-8"),
    ):
        with pytest.raises(InputError, match=why):
            conllu.read_conllu(tmp_path / name)
    with pytest.raises(InputError, match="folder"):
        conllu.read_conllu(tmp_path)


def test_the_whole_dev_split_is_read(data_dir):
    found = conllu.read_conllu(data_dir / EWT)
    counts = Counter(word.relation for sentence in found for word in sentence.words)
    assert len(found) == 2001 and sum(counts.values()) == 25147
    assert [counts[k] for k in RELATIONS] == [1958, 1211, 1326, 1353]  # as its README says
    assert all(s.text[w.start : w.end].strip() for s in found for w in s.words)
