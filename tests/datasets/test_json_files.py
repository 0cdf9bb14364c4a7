"""Records in JSON, inside of others, in Parquet and on the hub."""

from __future__ import annotations

import gzip
import json
import sys
from types import SimpleNamespace

import pytest

from raison.core.errors import InputError
from raison.core.spec import Spec
from raison.datasets import open_dataset
from tests.helpers.user_data import TEXT, jsonl, marks

# -- JSON --------------------------------------------------------------------------------------------------------


QUESTION = {
    "question": {"stem": "who sat ?", "choices": [{"text": "cats"}, {"text": "dogs"}]},
    "key.a": "A",
}


@pytest.mark.parametrize("ending", ["json", "jsonl", "json.gz"])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_objects_is_read_like_lines(ending, indent, tmp_path):
    path = tmp_path / f"a.{ending}"
    text = json.dumps(
        [{"text": "fine", "label": 1, "note": "a\nb"}, {"text": "dull", "label": 0}], indent=indent
    )
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    found = open_dataset(path)
    assert [(example.text, example.label) for example in found] == [("fine", 1), ("dull", 0)]
    assert [example.id for example in found] == ["1", "2"]
    path.write_bytes(gzip.compress(b" [ ] ") if ending.endswith("gz") else b" [ ] ")
    assert len(open_dataset(path)) == 0


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("text=question.stem", "who sat ?"),
        ("text='question.choices.1.text'", "dogs"),
        ("text='question.choices.text'", "cats dogs"),
        ("text=key.a", "A"),
    ],
)
def test_dots_name_columns_inside_others(spec, expected, tmp_path):
    path = jsonl(tmp_path / "a.jsonl", QUESTION)
    (example,) = open_dataset(f"{path}({spec})")
    assert example.text == expected
    (again,) = open_dataset(
        open_dataset(f"{path}({spec})").name
    )  # the name of what was read reads the same
    assert again == example
    (tmp_path / "a.csv").write_text(
        'question,key.a\n"{}",A\n'.format(json.dumps(QUESTION["question"]).replace('"', '""'))
    )
    (example,) = open_dataset(f"{tmp_path / 'a.csv'}({spec})")
    assert example.text == expected


def test_a_column_inside_others_that_is_not_there_is_one_sentence(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", QUESTION)
    for column in ("question.steam", "question.choices.7.text", "question.stem.text"):
        with pytest.raises(
            InputError,
            match=f"no column '{column}' for text; the columns are question.stem, question.c",
        ):
            open_dataset(path, text=column)
    with pytest.raises(InputError, match="is not a name with parameters"):
        Spec.parse("gradient(steps=a.b)")  # dots are for data


def test_parquet_reads_the_same_notations(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"q": {"stem": TEXT}, "why": [[0, 1, 0, 0, 0, 1, 1, 0], [0, 1, 0, 0, 0, 0, 0, 0]]}]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    (example,) = open_dataset(f"{tmp_path / 'a.parquet'}(text=q.stem, gold=why, annotators=union)")
    assert marks(example) == ["dull", "well acted"]


class Hub(list):
    """A set as the package `datasets` gives it."""

    def __init__(self, rows):
        super().__init__(rows)
        self.features, self.split = {}, "test"


def test_the_hub_is_read_by_the_same_mapping(monkeypatch):
    rows = Hub(
        [{"q": {"stem": TEXT}, "y": 1, "why": [[0, 1, 0, 0, 0, 1, 1, 0], [0, 1, 0, 0, 0, 0, 0, 0]]}]
    )
    monkeypatch.setitem(
        sys.modules, "datasets", SimpleNamespace(load_dataset=lambda name, config: rows)
    )
    found = open_dataset(
        "hf:some/set(text=q.stem, label=y, gold=why, annotators=all, labels=(no, yes))"
    )
    assert marks(found.examples[0]) == ["dull"] and found.examples[0].label == "yes"
    assert (
        found.understood.startswith("set: text is 'q.stem'")
        and "2 annotators (all of them)" in found.understood
    )
    assert found.labels == ("no", "yes") and found.task == "classification"
