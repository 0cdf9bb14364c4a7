"""Parallel text and its alignments."""

from __future__ import annotations

import json
import re

import pytest

from raison.core.errors import InputError
from raison.datasets import open_dataset

# -- parallel text -----------------------------------------------------------------------------------------------


GERMAN, ENGLISH, LINKS = (
    ["das haus", "ich komme nicht"],
    ["the house", "i do not come"],
    ["0-0 1-1", "0-0 1p1 1-3 2p2"],
)
EXPECTED = [([[0, 0], [1, 1]], []), ([[0, 0], [1, 3]], [[1, 1], [2, 2]])]


def write(path, lines) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))


def parallel_specs(place) -> dict[str, str]:
    write(place / "a.de", GERMAN)
    write(place / "a.en", ENGLISH)
    write(place / "a.align", LINKS)
    both = [f"{german} ||| {english}" for german, english in zip(GERMAN, ENGLISH, strict=True)]
    every = [f"{one} ||| {links}" for one, links in zip(both, LINKS, strict=True)]
    write(place / "two.txt", both)
    write(place / "one", every)
    rows = list(zip(GERMAN, ENGLISH, LINKS, strict=True))
    write(place / "a.tsv", ["\t".join(row) for row in rows])
    records = [{"de": de, "en": en, "links": links} for de, en, links in rows]
    (place / "a.json").write_text(json.dumps(records))
    one_based = [re.sub(r"\d+", lambda number: str(int(number[0]) + 1), line) for line in LINKS]
    write(place / "a.from1", one_based)
    return {
        "three files": f"{place / 'a.de'}(translation=a.en, alignment=a.align)",
        "three files by their paths": f"{place}/a.de(translation='{place}/a.en', alignment='{place}/a.align')",
        "one file": f"{place / 'one'}(format=parallel)",
        "two files": f"{place / 'two.txt'}(alignment=a.align)",
        "words from 1": f"{place / 'a.de'}(translation=a.en, alignment=a.from1, base=1)",
        "a table": f"{place / 'a.tsv'}(text=0, label=1, alignment=2)",
        "JSON": f"{place / 'a.json'}(text=de, label=en, alignment=links)",
    }


@pytest.mark.parametrize(
    "form",
    [
        "three files",
        "three files by their paths",
        "one file",
        "two files",
        "words from 1",
        "a table",
        "JSON",
    ],
)
def test_parallel_text_is_read_as_it_lies(form, tmp_path):
    found = open_dataset(parallel_specs(tmp_path)[form])
    assert found.task == "seq2seq"
    assert [(example.text, example.label) for example in found] == list(
        zip(GERMAN, ENGLISH, strict=True)
    )
    assert [(example.meta["sure"], example.meta["possible"]) for example in found] == EXPECTED
    assert found.examples[0].meta["target_words"] == [[0, 3], [4, 9]]


def test_translations_need_no_alignment(tmp_path):
    parallel_specs(tmp_path)
    for spec in ("a.de(translation=a.en)", "two.txt(format=parallel)"):
        found = open_dataset(f"{tmp_path}/{spec}")
        assert [(example.text, example.label) for example in found] == list(
            zip(GERMAN, ENGLISH, strict=True)
        )
        assert "sure" not in found.examples[0].meta


@pytest.mark.parametrize(
    ("spec", "content", "why"),
    [
        ("a.de(translation=a.fr)", None, "no file 'a.fr', also not beside"),
        ("two.txt(format=parallel)", "das haus the house\n", "Line 1 .*no [|]{3} stands between"),
        ("two.txt(format=parallel)", "a ||| b ||| 0-0 ||| c\n", "has 4 parts between"),
        (
            "two.txt(alignment=a.align)",
            "das haus ||| the house ||| 0-0\n",
            "the links are in a file of their own",
        ),
        (
            "two.txt(format=parallel)",
            "das haus ||| the house ||| 1-1 2-2\n",
            "2-2 .*goes beyond the 2 and 2 .*base=1",
        ),
        ("two.txt(format=parallel)", "das haus ||| the house ||| 0:0\n", "'0:0' is no link"),
        (
            "two.txt(format=parallel, base=1)",
            "das haus ||| the house ||| 0-0\n",
            "counts words from 0, not from 1",
        ),
        ("two.txt(format=parallel)", "das haus |||  \n", "has no translation"),
        ("a.de(translation=a.en, text=b)", None, "parallel has no columns to map"),
        ("a.tsv(text=0, alignment=2)", None, "an alignment needs a translation"),
        ("a.de(translation=two.txt)", "the house\n", "the other file ends before this line"),
        ("a.tsv(text=0, label=1, alignment=2, base=2)", None, "base is a whole number from 0 to 1"),
    ],
)
def test_parallel_text_that_is_wrong_is_one_sentence(spec, content, why, tmp_path):
    parallel_specs(tmp_path)
    if content is not None:
        (tmp_path / "two.txt").write_text(content)
    with pytest.raises(InputError, match=why) as told:
        open_dataset(f"{tmp_path}/{spec}")
    assert "\n" not in str(told.value)


def test_the_published_alignments_are_read_from_their_own_files(data_dir, tmp_path):
    """One file of sentences and one of links, packed, counted from 1; as the loader of the set reads them."""
    folder = data_dir / "align_zhen"
    found = open_dataset(
        f"{folder / 'zhen.src-tgt.gz'}(format=parallel, alignment=zhen.gold.gz, base=1)"
    )
    known = open_dataset("align_zhen", data=data_dir)
    assert len(found) == 450
    for mine, theirs in zip(found, known, strict=True):
        assert (mine.text, mine.label) == (theirs.text, theirs.label)
        assert [mine.meta[kind] for kind in ("sure", "possible")] == [
            theirs.meta[kind] for kind in ("sure", "possible")
        ]
