"""A user's files: tables, JSON lines, folders, Parquet, the hub."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from raison.core.errors import InputError, MissingExtra, RaisonError
from raison.core.records import Example, Span
from raison.core.registry import datasets
from raison.datasets import open_dataset
from tests.helpers.paths import ROOT
from tests.helpers.published_data import CONLLU, pieces, squad


# a user's own files
def test_json_lines(tmp_path):
    records = [
        {"text": "a good film", "label": "pos", "gold": [[2, 6]], "id": "x"},
        {"text": "a bad film", "gold": [0, 1, 1], "stars": 2, "meta": {"by": "me"}},
        {
            "text": "a film",
            "pair": "seen",
            "gold": [{"start": 0, "end": 4, "segment": "second", "text": "seen"}],
        },
        Example("filled in", id="y", gold=(Span(0, 6, "text"),), target="pos").to_dict(),
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    found = open_dataset(path)
    assert [(e.id, e.label, pieces(e)) for e in found] == [
        ("x", "pos", ["good"]), ("2", None, ["bad film"]), ("3", None, ["seen"]), ("y", None, ["filled"]),
    ]  # fmt: skip
    assert found.examples[1].meta == {"stars": 2, "by": "me"}
    assert found.examples[3] == Example(
        "filled in", id="y", gold=(Span(0, 6, "text"),), target="pos"
    )
    assert (found.task, found.split, found.labels) == ("pair", "all", ())
    mapped = tmp_path / "other.json"
    mapped.write_text('{"q": "Who sat?", "doc": "The cat sat.", "spans": [[4, 7]]}\n')
    (example,) = open_dataset(f"{mapped}(text=q, pair=doc, gold=spans, task=qa)")
    assert (example.text, example.gold) == ("Who sat?", (Span(4, 7, "context"),))
    (example,) = open_dataset(mapped, text="q", pair="doc", gold="spans", segment="second")
    assert example.gold == (Span(4, 7, "second"),)


def test_tables(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_bytes(
        b'\xef\xbb\xbfnr,review,stars,marks\r\n1,"a ""good"",\nfilm",1,"[0, 1, 1]"\r\n2,a bad film,0,\r\n'
    )
    found = open_dataset(
        f"{path}(text=review, label=stars, id=nr, gold=marks, labels=(negative, positive))"
    )
    assert [(e.id, e.text, e.label, pieces(e)) for e in found] == [
        ("1", 'a "good",\nfilm', "positive", ['"good",\nfilm']), ("2", "a bad film", "negative", []),
    ]  # fmt: skip
    assert (found.task, found.labels) == ("classification", ("negative", "positive"))
    assert found.name.startswith(f"{path}(gold=")
    assert open_dataset(path, text="review").examples[0].meta == {
        "nr": "1",
        "stars": "1",
        "marks": "[0, 1, 1]",
    }
    plain = tmp_path / "plain.tsv.gz"
    plain.write_bytes(gzip.compress(b"fine\t1\nbad\xe9\t0\n"))
    found = open_dataset(f"{plain}(text=0, label=1, encoding='latin-1')")
    assert [(e.text, e.label) for e in found] == [
        ("fine", "1"),
        ("badé", "0"),
    ] and found.mended == {"read as latin-1": 1}
    named = tmp_path / "named.data"
    named.write_text("text,label\nfine,1\n")
    assert len(open_dataset(f"{named}(format=csv)")) == 1
    (tmp_path / "two.txt").write_text("one\n\ntwo\nthree\n")
    assert [e.text for e in open_dataset(tmp_path / "two.txt")] == ["one", "two", "three"]
    assert [e.text for e in open_dataset(f"{tmp_path / 'two.txt'}(level=passage)")] == [
        "one",
        "two\nthree",
    ]
    (tmp_path / "few.conllu").write_text(CONLLU)
    assert open_dataset(tmp_path / "few.conllu").examples[0].label == ("PRON", "VERB")
    (tmp_path / "few.json").write_bytes(squad(4, "cat"))
    assert open_dataset(tmp_path / "few.json").task == "qa"


OWN = {  # file, spec, content, line, reason
    "label": ("a.csv", "", b"text,label\nfine,1\nbad,\n", 3, "no label"),
    "mapped label": ("a.jsonl", "(label=y)", b'{"text": "x", "y": 1}\n{"text": "z", "y": null}\n', 2, "no label"),
    "a list of labels": ("a.jsonl", "", b'{"text": "x", "label": [0.5, NaN]}\n', 1, "is no number"),
    "no text": ("a.csv", "", b"text,label\nfine,1\n,1\n", 3, "no text"),
    "names": ("a.csv", "", b"text,text\nfine,1\n", 1, "stand twice: text, text"),
    "label name": ("a.csv", "(labels=(a, b))", b"text,label\nx,a\ny,1\nz,2\n", 4, "'2' is none of a, b"),
    "span": ("a.jsonl", "", b'{"text": "fine", "gold": [[0, 5]]}\n', 1, "0..5 is not in the text, which has 4"),
    "negative span": ("a.jsonl", "", b'{"text": "fine", "gold": [[-2, 2]]}\n', 1, "-2..2 is not in the text"),
    "stated": (
        "a.jsonl", "", b'{"text": "fine", "gold": [{"start": 0, "end": 2, "text": "ne"}]}\n', 1, "holds 'fi', not 'ne'",
    ),
    "fractions": ("a.jsonl", "", b'{"text": "fine", "gold": [[0, 1.5]]}\n', 1, "two whole numbers"),
    "segment": (
        "a.jsonl", "", b'{"text": "a", "gold": [{"start": 0, "end": 1, "segment": "second"}]}\n', 1, "about 'second'",
    ),
    "no spans": ("a.jsonl", "", b'{"text": "fine", "gold": [["a"]]}\n', 1, "is no span"),
    "gold in a cell": ("a.csv", "", b'text,gold\nfine,"[0, 1"\n', 2, "no list of spans"),
    "number": ("a.jsonl", "", b'{"text": 3}\n', 1, "must be a string, not int"),
    "same id": ("a.jsonl", "", b'{"text": "a", "id": 1}\n{"text": "b", "id": "1"}\n', 2, "stands in line 1 already"),
    "UTF-8": ("a.jsonl", "", b'{"text": "a"}\n{"text": "\xe9"}\n', 2, "0xe9"),
    "JSON list": ("a.json", "", b'[{"text": "a"},\n3, {"text": "b"}]', 2, "not an object with fields but int"),
    "JSON list that is cut": ("a.json", "", b'[{"text": "a"},\n{"text": "b"', 2, "it is not JSON"),
    "JSON list without its end": ("a.json", "", b'[{"text": "a"}\n', 1, "the list of objects is cut"),
    "JSON list that goes on": ("a.jsonl", "", b'[{"text": "a"}]\n[]', 1, "goes on in a wrong way"),
    "JSON list with a comma at its end": ("a.json", "", b'[{"text": "a"},]', 2, "it is not JSON"),
    "neither encoding": ("a.csv", "(encoding=ascii)", b"text\n\xe9\n", 2, "neither UTF-8 nor ascii"),
}  # fmt: skip


@pytest.mark.parametrize("case", OWN)
def test_broken_records_of_a_user(case, tmp_path):
    name, spec, content, line, reason = OWN[case]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(
        InputError,
        match=rf"(?s)^Line {line} of '{re.escape(str(path))}' is broken: .*{reason}.*skip_",
    ):
        open_dataset(f"{path}{spec}")
    found = open_dataset(f"{path}{spec}", skip_broken=True)
    assert len(found.broken) == 1 and found.broken[0].line == line


@pytest.mark.parametrize(
    ("name", "spec", "column"),
    [("a.csv", "", "text"), ("a.csv", "(text=review)", "review"), ("b.tsv", "", "text")],
)
@pytest.mark.parametrize("skip", [False, True])
def test_a_table_without_the_column_is_told_how_to_name_it(name, spec, column, skip, tmp_path):
    path = tmp_path / name
    path.write_text(
        "words,stars\nfine,1\nbad,0\n".replace(",", "\t" if name.endswith("tsv") else ",")
    )
    with pytest.raises(
        RaisonError, match=f"no column '{column}' for text; its columns are words, stars. Say"
    ) as told:
        open_dataset(f"{path}{spec}", skip_broken=skip)
    assert str(told.value).endswith(f"{name}(text=words).")
    assert len(open_dataset(f"{path}(text=words, label=stars)").examples) == 2


@pytest.mark.parametrize(
    ("name", "spec", "split", "why"),
    [
        ("a.csv", "(txt=b)", None, "can't be read with 'txt'. Did you mean 'text'"),
        ("a.csv", "(task=poetry)", None, "task is classification"),
        ("a.csv", "(level=span)", None, "level means nothing for csv"),
        ("a.csv", "(encoding=klingon)", None, "no encoding 'klingon'"),
        ("a.csv", "(format=xml)", None, "format is jsonl"),
        ("a.csv", "", "test", "has no splits"),
        ("a.xyz", "", None, "does not tell its format"),
        ("a.txt", "(text=b)", None, "has no columns to map"),
    ],
)
def test_specs_that_mean_nothing(name, spec, split, why, tmp_path):
    (tmp_path / name).write_text("text\nx\n")
    with pytest.raises(InputError, match=why):
        open_dataset(f"{tmp_path / name}{spec}", split)


def test_folders_that_are_none(tmp_path):
    with pytest.raises(InputError, match="not ERASER's"):
        open_dataset(f"{tmp_path}/")
    (tmp_path / "docs").mkdir()
    with pytest.raises(InputError, match=r"no file 'test.jsonl'"):
        open_dataset(f"{tmp_path}/")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(InputError, match="is empty: it needs a first line"):
        open_dataset(tmp_path / "empty.csv")


def test_extras_are_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingExtra, match=r"raison\[data\]"):
        open_dataset(tmp_path / "a.parquet")
    with pytest.raises(MissingExtra, match=r"raison\[data\]"):
        open_dataset("hf:imdb")


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "reviews.parquet"
    columns = {
        "review": ["fine film", "bad", "dull"],
        "y": [1, 0, None],
        "gold": [[[0, 4]], [], None],
    }
    parquet.write_table(pyarrow.table(columns), path)
    found = open_dataset(
        f"{path}(text=review, label=y, labels=(negative, positive))", skip_broken=True
    )
    assert [(e.text, e.label, pieces(e)) for e in found] == [
        ("fine film", "positive", ["fine"]),
        ("bad", "negative", []),
    ]
    assert [(b.line, b.reason) for b in found.broken] == [(3, "it has no label")]
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="Line 1 of .*not Parquet"):
        open_dataset(f"{path}(text=review)")


def test_hugging_face(tmp_path):
    hub = pytest.importorskip("datasets")
    features = hub.Features(
        {"review": hub.Value("string"), "y": hub.ClassLabel(names=["negative", "positive"])}
    )
    made = hub.Dataset.from_dict(
        {"review": ["fine", "bad", "odd"], "y": [1, 0, -1]}, features=features
    )
    made.save_to_disk(str(tmp_path / "one"))
    found = open_dataset(f"hf:{tmp_path / 'one'}(text=review, label=y)", skip_broken=True)
    assert [(e.id, e.text, e.label) for e in found] == [
        ("1", "fine", "positive"),
        ("2", "bad", "negative"),
    ]
    assert found.labels == ("negative", "positive") and [
        (b.line, b.reason) for b in found.broken
    ] == [(3, "it has no label")]
    both = hub.DatasetDict({"train": made.select([0]), "test": made.select([1])})
    both.save_to_disk(str(tmp_path / "both"))
    spec = f"hf:{tmp_path / 'both'}(split=train, text=review, label=y)"
    assert [e.text for e in open_dataset(spec)] == ["fine"]
    assert [e.text for e in open_dataset(spec.replace("split=train, ", ""))] == ["bad"]
    with pytest.raises(InputError, match="no split 'tset': it has train, test"):
        open_dataset(spec, "tset")
    with pytest.raises(InputError, match="no column 'text' for text; the columns are review, y"):
        open_dataset(f"hf:{tmp_path / 'one'}")
    tags = hub.Features(
        {
            "tokens": hub.Sequence(hub.Value("string")),
            "tags": hub.Sequence(hub.ClassLabel(names=["O", "B"])),
        }
    )
    hub.Dataset.from_dict(
        {"tokens": [["Ann", "sat"]], "tags": [[1, 0]]}, features=tags
    ).save_to_disk(str(tmp_path / "ner"))
    found = open_dataset(f"hf:{tmp_path / 'ner'}(text=tokens, label=tags)")
    assert (found.task, found.examples[0].text, found.examples[0].label) == (
        "tagging",
        "Ann sat",
        ("B", "O"),
    )


def test_the_how_to_works_as_written(tmp_path, monkeypatch, capsys):
    page = ROOT / "docs" / "how-to" / "datasets.md"
    written = page.read_text(encoding="utf-8")
    first, *others, second = re.findall(r"```python\n(.*?)```", written, re.S)
    printed = re.findall(r"```text\n(.*?)```", written, re.S)
    monkeypatch.chdir(tmp_path)
    assert len(others) == len(printed) == 3
    for code, told in zip(others, printed, strict=True):
        exec(compile(code, "example", "exec"), {})
        assert capsys.readouterr().out == told
    Path("mine.csv").write_text("review,stars\na fine film,1\n")
    exec(compile(first, "first", "exec"), {})
    assert capsys.readouterr().out == "classification ('negative', 'positive') 1 a fine film\n"
    Path("moods").mkdir()
    Path("moods/test.tsv").write_text("glad\tsun\nsad\train\nbad\tfog\n")
    list(datasets)
    exec(compile(second, "second", "exec"), {"__name__": "moods_plugin"})
    try:
        found = open_dataset("moods", data=tmp_path, skip_broken=True)
        assert [(e.text, e.label) for e in found] == [("sun", "glad"), ("rain", "sad")]
        assert [(b.line, b.reason) for b in found.broken] == [
            (3, "the label 'bad' is none of sad, glad")
        ]
    finally:
        del datasets._entries["moods"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "name of the data is empty"),
        ("list.json", r"it is neither SQuAD, nor a list of objects, nor an object in each line"),
        ("list.json(encoding=latin-1)", r'in quotes, such as \(encoding="latin-1"\)'),
    ],
)
def test_what_is_no_data_is_told_how_to_write_it(name, why, tmp_path):
    (tmp_path / "list.json").write_text('{\n "text": "a film"\n}')
    with pytest.raises(InputError, match=why):
        open_dataset(str(tmp_path / name) if name else name)
