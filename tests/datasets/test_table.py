"""Tables as pandas writes them."""

from __future__ import annotations

import gzip

import pytest

from raison.core.errors import RaisonError
from raison.datasets import open_dataset

# -- tables of pandas --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "spec", "expected"),
    [
        ("an index", ",text,label\n0,fine,1\n1,dull,0\n", "", [("fine", "1"), ("dull", "0")]),
        (
            "an index of two levels",
            ",,text,label\na,0,fine,1\na,1,dull,0\n",
            "",
            [("fine", "1"), ("dull", "0")],
        ),
        (
            "an index and other names",
            ",review,y\n0,fine,1\n",
            "(text=review, label=y)",
            [("fine", "1")],
        ),
        (
            "an index and numbers",
            ",0,1\n0,fine,1\n1,dull,0\n",
            "(text=0, label=1)",
            [("fine", "1"), ("dull", "0")],
        ),
        ("numbers", "0,1\nfine,1\ndull,0\n", "(text=0, label=1)", [("fine", "1"), ("dull", "0")]),
        ("some of the numbers", "3,1\nfine,1\n", "(text=3, label=1)", [("fine", "1")]),
        ("numbers as names", ",0,1\n0,fine,1\n", "(text='0', label='1')", [("fine", "1")]),
        ("no header", "fine,1\ndull,0\n", "(text=0, label=1)", [("fine", "1"), ("dull", "0")]),
        ("a record of a number", "fine,1\n7,0\n", "(text=0, label=1)", [("fine", "1"), ("7", "0")]),
        (
            "a year in the first record",
            "1999 was fine,1999\n",
            "(text=0, label=1)",
            [("1999 was fine", "1999")],
        ),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz"])
def test_what_pandas_writes_is_read_without_its_index_and_header(
    name, content, spec, expected, ending, tmp_path
):
    path = tmp_path / f"a.{ending}"
    if ending == "tsv":
        content = content.replace(",", "\t")
    data = content.encode()
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    found = open_dataset(f"{path}{spec}")
    assert [(example.text, example.label) for example in found] == expected
    assert all(not example.meta for example in found)


def test_columns_by_number_of_json_from_pandas_are_its_names(tmp_path):
    (tmp_path / "a.json").write_text('[{"0":"fine","1":1},{"0":"dull","1":0}]')
    found = open_dataset(f"{tmp_path / 'a.json'}(text=0, label=1)")
    assert [(example.text, example.label, example.meta) for example in found] == [
        ("fine", 1, {}),
        ("dull", 0, {}),
    ]


@pytest.mark.parametrize(
    ("content", "spec", "why"),
    [
        (",label\nfine,1\n", "", "no column 'text' for text; its columns are label"),
        ("text,,label\nfine,x,1\n", "", "names of the columns are empty or stand twice"),
        (",0,1\n0,fine,1\n", "(text=2)", "no column 2 for text; its columns are 0, 1"),
    ],
)
def test_other_columns_without_a_name_are_one_sentence(content, spec, why, tmp_path):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(RaisonError, match=why) as told:
        open_dataset(f"{tmp_path / 'a.csv'}{spec}")
    assert "\n" not in str(told.value)
