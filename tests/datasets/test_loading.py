"""Where data is, which splits there are, and broken records in every format."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pytest

from raison.core.errors import InputError, UnknownName
from raison.core.records import Example, Span
from raison.core.registry import datasets
from raison.core.spec import Spec
from raison.datasets import Broken, Dataset, open_dataset
from raison.datasets.base import dataset
from raison.datasets.character_spans import find_tokens, runs_of_true_marks, spans_of_marks
from raison.datasets.dataset_rows import Row, interleave_rows, rows_with_labels_in_turn
from raison.datasets.open import parse_data_spec
from raison.datasets.text_files import read_lines
from tests.helpers.published_data import CONLLU, damaged, squad


# where files are, and what users type
def test_where_data_is(tmp_path, monkeypatch):
    monkeypatch.delenv("RAISON_DATA", raising=False)
    with pytest.raises(InputError, match="set the variable RAISON_DATA.*'sst2'.*https://"):
        open_dataset("sst2")
    with pytest.raises(InputError, match="no folder 'sst2'.*RAISON_DATA.*https://"):
        open_dataset("sst2", data=tmp_path)
    (tmp_path / "sst2").mkdir()
    with pytest.raises(InputError, match="no file 'test.tsv'"):
        open_dataset("sst2", data=tmp_path)
    (tmp_path / "sst2" / "test.tsv").write_text(
        "fine film\t1\nbad film\t0\n"
    )  # plain, as the publisher has it
    monkeypatch.setenv("RAISON_DATA", str(tmp_path))
    found = open_dataset("sst2")
    assert [(e.id, e.text, e.label) for e in found] == [
        ("1", "fine film", "positive"),
        ("2", "bad film", "negative"),
    ]
    assert (found.name, found.split, found.task, found.labels) == (
        "sst2", "test", "classification", ("negative", "positive"),
    )  # fmt: skip
    assert list(found) == found.examples and len(found) == 2
    assert (
        open_dataset(datasets.build("sst2")).examples
        == open_dataset(Spec("sst2")).examples
        == found.examples
    )


def test_names_and_splits(tmp_path):
    with pytest.raises(UnknownName, match="Did you mean 'sst2'"):
        open_dataset("sst22")
    with pytest.raises(InputError, match="no parameter 'levl'. Did you mean 'level'"):
        open_dataset("eraser_movies(levl=span)")
    with pytest.raises(InputError, match="level is span or sentence"):
        open_dataset("eraser_movies(level=words)")
    with pytest.raises(InputError, match="no split 'tset'. Did you mean 'test'"):
        open_dataset("sst2", "tset", data=tmp_path)
    with pytest.raises(InputError, match="limit is a whole number"):
        (tmp_path / "sst2").mkdir()
        (tmp_path / "sst2" / "test.tsv").write_text("fine film\t1\n")
        open_dataset("sst2", limit=0, data=tmp_path)
    with pytest.raises(InputError, match="There is no file 'none.csv'"):
        open_dataset("none.csv(text=a)")
    with pytest.raises(InputError, match="not a data set"):
        open_dataset("sst2(__import__('os'))")
    for bad in (
        "sst_trees(distance=3)",
        "sst_trees(classes=3)",
        "xquad(language=fr)",
        "ag_news(topics=(World, Cats))",
    ):
        with pytest.raises(InputError):
            open_dataset(bad, data=tmp_path)
    made = datasets.build("eraser_movies")
    assert [made.split(name) for name in ("dev", "validation", "val", None)] == [
        "val",
        "val",
        "val",
        "test",
    ]
    assert (
        datasets.build("wikitext2").split("dev") == "valid"
        and datasets.build("imdb").split(None) == "test"
    )
    settings = {"text": Spec("x"), "labels": (Spec("b"), Spec("c"))}
    assert parse_data_spec("a.csv(text=x, labels=(b, c))") == ("a.csv", settings)
    odd = tmp_path / "data (1).csv"
    odd.write_text("text\nfine\n")
    assert parse_data_spec(str(odd)) == (str(odd), {})
    assert parse_data_spec(f"{odd}(text=x)") == (str(odd), {"text": Spec("x")})


def test_a_data_set_in_one_file(tmp_path):
    @dataset("colours")
    @dataclass(frozen=True)
    class Colours(Dataset):
        """Names of colours."""

        task = "classification"
        splits = ("all",)
        folder = "colours"
        source = "https://example.org"
        labels = ("warm", "cold")

        size: int = 1

        def rows(self, place, split):
            for row in read_lines(place / "colours.txt"):
                yield (
                    row
                    if isinstance(row, Broken)
                    else Row(row.file, row.line, self.example(row), row.mended)
                )

        def example(self, row):
            word, _, label = row.value.partition(" ")
            return Example(word * self.size, id=word, label=label or None)

    try:
        folder = tmp_path / "colours"
        folder.mkdir()
        (folder / "colours.txt").write_text("red warm\nblue cold\ngrey\npink rosy\nred warm\n")
        assert "colours" in datasets
        assert [e.text for e in open_dataset("colours(size=2)", limit=2, data=tmp_path)] == [
            "redred",
            "blueblue",
        ]
        found = open_dataset("colours", data=tmp_path, skip_broken=True)
        assert [(b.line, b.reason) for b in found.broken] == [
            (3, "it has no label"),
            (4, "the label 'rosy' is none of warm, cold"),
            (5, "the id 'red' stands in line 1 already"),
        ]
    finally:
        del datasets._entries["colours"]


# small parts
def test_runs_and_marks():
    assert runs_of_true_marks([]) == [] and runs_of_true_marks([0, 1, 1, 0, 1]) == [(1, 3), (4, 5)]
    assert find_tokens(" a  bc\td ") == [(1, 2), (4, 6), (7, 8)]
    assert spans_of_marks(find_tokens("a bc d"), [0, 1, 1], "text") == (Span(2, 6, "text"),)
    with pytest.raises(InputError, match="2 marks do not fit 3 tokens"):
        spans_of_marks(find_tokens("a b c"), [0, 1], "text")


def test_turns():
    def row(label):
        return Row("f", 1, Example("x", label=label))

    rows = [
        row("a"),
        row("a"),
        row("a"),
        Broken("f", 9, "why"),
        row("b"),
        row("c"),
        row("a"),
        row("b"),
    ]
    found = list(rows_with_labels_in_turn(iter(rows), ("a", "b", "c")))
    assert [r.value.label for r in found if isinstance(r, Row)] == [
        "a",
        "b",
        "c",
        "a",
        "b",
        "a",
        "a",
    ]
    assert sum(isinstance(r, Broken) for r in found) == 1
    assert list(interleave_rows(iter("abc"), iter("1"), iter(""), iter("xy"))) == list("a1xbyc")


Q1 = squad(4, "cat").decode().split('"q1"')[0].count("\n") + 1
CASES = {  # spec, file, content, line, reason, examples that are left
    "bad UTF-8": ("sst2", "test.tsv", b"fine\t1\nbad\xe9\t0\ndull\t0\n", 2, r"byte 4 \(0xe9\) is not UTF-8", 2),
    "missing label": ("sst2", "test.tsv.gz", b"fine\t1\ndull\t\nbad\t0\n", 2, "1 of 2 columns", 2),
    "one column": ("sst2", "test.tsv", b"fine\t1\ndull\nbad\t0\n", 2, "1 of 2 columns", 2),
    "wrong label": ("sst2", "test.tsv", b"fine\t1\ndull\t7\n", 2, "'7' is neither 0 nor 1", 1),
    "only white space": ("sst2", "test.tsv", b"fine\t1\n   \t0\n", 2, "empty", 1),
    "text missing": ("sentconv_cls", "stsa.binary.test", b"1 fine\n0 \n", 2, "1 of 2 columns", 1),
    "class beyond": ("sentconv_cls(corpus=trec)", "TREC.test.all", b"5 how far ?\n6 how ?\n", 2, "'6'", 1),
    "same id": ("qqp", "test.tsv", b"1\ta?\tb?\t7\n0\tc?\td?\t7\n", 2, "'7' stands in line 1 already", 1),
    "tree": ("sst_trees", "test.txt", b"(3 (2 It) (4 works))\n(3 (2 It) (4 works)\n", 2, "not closed", 1),
    "label of a tree": ("sst_trees", "test.txt", b"(7 (2 It) (4 works))\n", 1, "'7' is no number from 0 to 4", 0),
    "CSV quotes": ("ag_news", "test.csv", b'"3","a","b"\n"3","a"x,"b"\n"1","c","d"\n', 2, "quotes are wrong", 2),
    "CSV quote never closed": ("ag_news", "test.csv", b'"3","a","b"\n"3","a,"b\n', 2, "quotes are wrong", 1),
    "CSV columns": ("ag_news", "test.csv", b'"3","a","b"\n"3","a"\n', 2, "2 columns, not 3", 1),
    "CSV class": ("ag_news", "test.csv", b'"3","a","b"\n"5","a","b"\n', 2, "'5' is no number from 1 to 4", 1),
    "CSV bad UTF-8": ("ag_news", "test.csv", b'"3","a","b"\n"3","a\n\xff","b"\n"1","c","d"\n', 3, "character 1 is", 2),
    "marks": (
        "eraser_cose", "test.csv",
        b'id,text,classification,rationale,query\n0,a b,A,"[0, 1, 1]",a [SEP] b [SEP] c [SEP] d [SEP] e\n',
        2, "3 marks do not fit 2 tokens", 0,
    ),
    "column missing": ("eraser_cose", "test.csv", b"id,text,label,rationale,query\n0,a,A,[0],a\n", 2, "no column", 0),
    "not JSON": ("lambada_test", "lambada_test.jsonl", b'{"text": "a b"}\n{"text": "a b\n', 2, "not JSON", 1),
    "no object": ("lambada_test", "lambada_test.jsonl", b'["a b"]\n{"text": "a b"}\n', 1, "not an object", 1),
    "field missing": ("lambada_test", "lambada_test.jsonl", b'{"txt": "a b"}\n', 1, "no field 'text'; it has txt", 0),
    "one word": ("lambada_test", "lambada_test.jsonl", b'{"text": "word"}\n', 1, "single word", 0),
    "span outside": (
        "lambada_rationales", "annotated_lambada.json",
        b'{"lambadaIndex": 1, "text": "the cat sat", "rationale": [[4, 7]]}\n'
        b'{"lambadaIndex": 2, "text": "the cat sat", "rationale": [[4, 9]]}\n', 2, "4..9 is not in the text", 1,
    ),
    "empty span": (
        "lambada_rationales", "annotated_lambada.json",
        b'{"lambadaIndex": 2, "text": "the cat sat", "rationale": [[4, 4]]}\n', 1, "4..4 is not in the text", 0,
    ),
    "span of a space": (
        "lambada_rationales", "annotated_lambada.json",
        b'{"lambadaIndex": 2, "text": "the cat sat", "rationale": [[3, 4]]}\n', 1, "nothing but white space", 0,
    ),
    "wrong answer": ("xquad", "xquad.en.json", squad(5, "cat"), Q1, "holds 'at ', not 'cat' as stated", 1),
    "answer outside": ("xquad", "xquad.en.json", squad(40, "cat"), Q1, "40..43 is not in the text", 1),
    "SQuAD is no JSON": ("xquad", "xquad.en.json", b'{"data":\n [1,\n', 2, "not JSON", 0),
    "no SQuAD": ("xquad", "xquad.en.json", b'{"data": [{"paragraphs": [{"context": "c", "qas": [1]}]}]}', 1, "SQ", 0),
    "CoNLL-U": ("ud_english_ewt", "en_ewt-ud-test.conllu", (CONLLU + "1\tIt\n\n").encode(), 5, "2 columns", 1),
    "CoNLL-U bad UTF-8": (
        "ud_english_ewt", "en_ewt-ud-test.conllu",
        CONLLU.encode() + CONLLU.encode().replace(b"2\tworks", b"2\tw\xf6rks") + CONLLU.encode(), 7, "0xf6", 2,
    ),
    "link": ("align_zhen", "zhen.gold", b"1-1 2-2\n1-1 2x2\n", 2, "'2x2' is no link", 1),
    "link beyond": ("align_zhen", "zhen.gold", b"1-1\n3-1\n", 2, "link 2-0 .* goes beyond the 2 and 2 words", 1),
    "links from 0": ("align_zhen", "zhen.gold", b"1-1\n0-1\n", 2, "counts words from 0, not from 1", 1),
    "a line short": ("align_zhen", "zhen.gold", b"1-1\n", 2, "the other file ends before", 1),
    "no majority": ("majority_class_toy", "test.tok", b"1 " * 17 + b"= 0\n", 1, "most are 1", 0),
    "no relation": ("analogies", "questions-words.txt", b"a b c d\n: x\na b c d\na b c\n", 1, "no relation", 1),
    "pair without partner": (
        "imdb_counterfactual", "test_paired.tsv",
        b"Sentiment\tText\tbatch_id\nNegative\tbad\t1\nPositive\tgood\t2\nNegative\tbad\t2\n", 2, "does not follow", 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_broken_records(case, tmp_path):
    spec, name, content, line, reason, left = CASES[case]
    folder = datasets[spec.partition("(")[0]].folder
    path = damaged(tmp_path, folder, name, content)
    if folder == "align_zhen":
        damaged(tmp_path, folder, "zhen.src-tgt", "我 来 ||| i come\n他 来 ||| he comes\n".encode())
        path = path.with_name("zhen.src-tgt")  # the sentences are what is broken
    with pytest.raises(
        InputError,
        match=rf"^Line {line} of '{re.escape(str(path))}' is broken: .*{reason}.*skip_broken",
    ):
        open_dataset(spec, data=tmp_path)
    found = open_dataset(spec, data=tmp_path, skip_broken=True)
    assert (found.broken[0].file, found.broken[0].line) == (str(path), line) and re.search(
        reason, found.broken[0].reason
    )
    assert len(found) == left


def test_conllu_ids_may_repeat_only_once(tmp_path):
    text = "# sent_id = a\n" + CONLLU
    damaged(tmp_path, "ud_english_ewt", "en_ewt-ud-test.conllu", (text * 2).encode())
    found = open_dataset("ud_english_ewt", data=tmp_path, skip_broken=True)
    assert len(found) == 1 and found.broken[0].reason == "the id 'a' stands in line 3 already"


def test_limit_is_lazy(tmp_path):
    """Nothing behind the limit is looked at: these files are broken right after it."""
    good = b"".join(json.dumps({"text": f"text {n}"}).encode() + b"\n" for n in range(10))
    (tmp_path / "mine.jsonl").write_bytes(good + b"\xff\xfe{{{\n")
    assert len(open_dataset(tmp_path / "mine.jsonl", limit=10)) == 10
    with pytest.raises(InputError, match="Line 11"):
        open_dataset(tmp_path / "mine.jsonl", limit=11)
    asked = []

    def counted():
        for number, row in enumerate(read_lines(tmp_path / "mine.jsonl")):
            asked.append(number)
            yield row

    from raison.datasets.dataset_rows import map_rows
    from raison.datasets.loading import ExampleSource, LoadedData

    rows = map_rows(counted(), lambda row: Example(row.value, id=str(row.line)))
    found = ExampleSource(rows, lambda example: "", LoadedData("x", "all", "text", (), [])).read(3)
    assert len(found) == 3 and asked == [0, 1, 2]
