"""Data that people have: tables of pandas, marks in any notation, nested JSON, parallel text."""

from __future__ import annotations

import gzip
import json
import re
import sys
import warnings
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from raison.cli.app import app, assemble
from raison.core import progress
from raison.core.errors import DataWarning, InputError, RaisonError
from raison.core.spec import Spec
from raison.datasets import open_dataset
from raison.datasets.annotation_parser import parse_annotations
from raison.datasets.annotations import TokenizedText
from raison.datasets.inline_marks import strip_marks
from raison.datasets.number_meaning import decide_meaning
from raison.studies.evaluate import evaluate

TEXT = "a dull film , but well acted ."  # tokens: a 0 dull 1 film 2 , 3 but 4 well 5 acted 6 . 7


def marks(example) -> list[str]:
    """The marked words, in the order of the spans."""
    second = {"second", "context"}
    return [(example.pair if span.segment in second else example.text)[span.start : span.end] for span in example.gold]


def jsonl(path, *records) -> str:
    path.write_text("\n".join(json.dumps(record) for record in records))
    return str(path)


# -- tables of pandas --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "spec", "expected"),
    [
        ("an index", ",text,label\n0,fine,1\n1,dull,0\n", "", [("fine", "1"), ("dull", "0")]),
        ("an index of two levels", ",,text,label\na,0,fine,1\na,1,dull,0\n", "", [("fine", "1"), ("dull", "0")]),
        ("an index and other names", ",review,y\n0,fine,1\n", "(text=review, label=y)", [("fine", "1")]),
        ("an index and numbers", ",0,1\n0,fine,1\n1,dull,0\n", "(text=0, label=1)", [("fine", "1"), ("dull", "0")]),
        ("numbers", "0,1\nfine,1\ndull,0\n", "(text=0, label=1)", [("fine", "1"), ("dull", "0")]),
        ("some of the numbers", "3,1\nfine,1\n", "(text=3, label=1)", [("fine", "1")]),
        ("numbers as names", ",0,1\n0,fine,1\n", "(text='0', label='1')", [("fine", "1")]),
        ("no header", "fine,1\ndull,0\n", "(text=0, label=1)", [("fine", "1"), ("dull", "0")]),
        ("a record of a number", "fine,1\n7,0\n", "(text=0, label=1)", [("fine", "1"), ("7", "0")]),
        ("a year in the first record", "1999 was fine,1999\n", "(text=0, label=1)", [("1999 was fine", "1999")]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz"])
def test_what_pandas_writes_is_read_without_its_index_and_header(name, content, spec, expected, ending, tmp_path):
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
    assert [(example.text, example.label, example.meta) for example in found] == [("fine", 1, {}), ("dull", 0, {})]


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


# -- rationales --------------------------------------------------------------------------------------------------

NOTATIONS = {  # what stands in the column -> the marked words
    "character spans": ([[2, 6], [18, 28]], ["dull", "well acted"]),
    "character spans with a name": ([[2, 6, "NEG"], [18, 28, "POS"]], ["dull", "well acted"]),
    "objects": ([{"start": 18, "end": 28, "label": "x"}], ["well acted"]),
    "one object": ({"start": 18, "end": 28}, ["well acted"]),
    "objects as columns": ({"start": [2, 18], "end": [6, 28], "text": ["dull", "well acted"]}, ["dull", "well acted"]),
    "objects of tokens": ([{"start_token": 5, "end_token": 7}], ["well acted"]),
    "objects of offsets": ([{"start_offset": 2, "end_offset": 6}], ["dull"]),
    "0 and 1": ([0, 1, 0, 0, 0, 1, 1, 0], ["dull", "well acted"]),
    "0.0 and 1.0": ([0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0], ["dull", "well acted"]),
    "0 and 1 as text": ("[0, 1, 0, 0, 0, 1, 1, 0]", ["dull", "well acted"]),
    "0 and 1 of NumPy": ("[0 1 0 0 0 1 1 0]", ["dull", "well acted"]),
    "0 and 1 without brackets": ("0 1 0 0 0 1 1 0", ["dull", "well acted"]),
    "0 and 1 as words": (["0", "1", "0", "0", "0", "1", "1", "0"], ["dull", "well acted"]),
    "words": (["dull", "well"], ["dull", "well"]),
    "words as text": ("['dull', 'well']", ["dull", "well"]),
    "words of NumPy": ("['dull' 'well']", ["dull", "well"]),
    "words in JSON": ('["dull", "well acted"]', ["dull", "well acted"]),
    "words between semicolons": ("dull; well acted", ["dull", "well acted"]),
    "words between commas": ("well, dull", ["dull", "well"]),
    "one word": ("well acted", ["well acted"]),
    "words in other letters": (["DULL"], ["dull"]),
    "spans as text": ("[(2, 6), (18, 28)]", ["dull", "well acted"]),
    "one span as text": ("(18, 28)", ["well acted"]),
    "spans with a hyphen": ("2-6, 18-28", ["dull", "well acted"]),
    "numbers of characters": ([2, 3, 4, 5, 18, 19, 20, 21], ["dull", "well"]),
    "nothing": ([], []),
    "nothing as text": ("[]", []),
    "null": (None, []),
    "not a number": (float("nan"), []),
    "nan as text": ("nan", []),
}


@pytest.mark.parametrize("name", NOTATIONS)
def test_every_notation_gives_the_marked_words(name, tmp_path):
    given, expected = NOTATIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none of these could be something else
        (example,) = open_dataset(f"{jsonl(tmp_path / 'a.jsonl', {'text': TEXT, 'why': given})}(gold=why)")
    assert marks(example) == expected
    if isinstance(given, str) and given:
        (tmp_path / "a.csv").write_text(f'text,why\n"{TEXT}","{given.replace(chr(34), chr(34) * 2)}"\n')
        (example,) = open_dataset(f"{tmp_path / 'a.csv'}(gold=why)")
        assert marks(example) == expected


@pytest.mark.parametrize(
    ("given", "numbers", "expected"),
    [
        ("1,5,6", "tokens", ["dull", "well acted"]),
        ([1], "tokens", ["dull"]),
        ([[1, 2], [5, 7]], "tokens", ["dull", "well acted"]),
        ("[(5, 7)]", "tokens", ["well acted"]),
        ([[2, 6]], "characters", ["dull"]),
        ([2, 3, 4, 5], "characters", ["dull"]),
        ([0, 1, 0, 0, 0, 0, 0, 0], "flags", ["dull"]),
        ([{"start": 5, "end": 7, "text": "well acted"}], "tokens", ["well acted"]),
    ],
)
def test_what_numbers_count_can_be_said(given, numbers, expected, tmp_path):
    path = jsonl(tmp_path / "a.jsonl", {"text": TEXT, "gold": given})
    found = open_dataset(f"{path}(numbers={numbers})")
    assert marks(found.examples[0]) == expected and found.doubts == ()


@pytest.mark.parametrize(
    ("given", "taken", "expected"),
    [
        ([[2, 6]], "characters", ["dull"]),  # as tokens: film , but well
        ([[5, 7]], "tokens", ["well acted"]),  # as characters it would cut words
        ("1,5,6", "tokens", ["dull", "well acted"]),
        ([[[5, 7]], [[5, 6]]], "tokens", []),  # no word has more than one vote, but `well`
    ],
)
def test_numbers_that_could_be_characters_or_tokens_are_warned_about(given, taken, expected, tmp_path):
    path = jsonl(tmp_path / "a.jsonl", {"text": TEXT, "gold": given})
    with pytest.warns(
        DataWarning, match="could be characters or tokens: as characters they mark .*, as tokens "
    ) as told:
        found = open_dataset(path)
    assert len(told) == 1
    if expected:
        assert marks(found.examples[0]) == expected
    assert len(found.doubts) == 1 and f"They are read as {taken}: say which with numbers=" in found.doubts[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_dataset(path, numbers="tokens")
        # one record further on shows what they are
        jsonl(tmp_path / "b.jsonl", {"text": TEXT, "gold": [[2, 6]]}, {"text": TEXT, "gold": [[18, 28]]})
        assert open_dataset(tmp_path / "b.jsonl").doubts == ()


def test_characters_that_cut_words_are_warned_about(tmp_path):
    """Tokens that are counted from 1 go beyond the last one, and would be taken for characters."""
    path = jsonl(tmp_path / "a.jsonl", {"text": TEXT, "gold": [4, 8]})
    with pytest.warns(DataWarning, match="read as characters, which cut words in two: say what they count"):
        open_dataset(path)


VOTES = {"majority": ["dull", "acted"], "union": ["dull film", "well acted"], "any": ["dull film", "well acted"]}
PEOPLE = {  # three people in every notation
    "lists of 0 and 1": [[0, 1, 1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 1, 1, 0], [0, 1, 0, 0, 0, 0, 1, 0]],
    "names": {"ann": [0, 1, 1, 0, 0, 0, 0, 0], "bob": [0, 1, 0, 0, 0, 1, 1, 0], "cy": [0, 1, 0, 0, 0, 0, 1, 0]},
    "text": "[[0, 1, 1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 1, 1, 0], [0, 1, 0, 0, 0, 0, 1, 0]]",
    "texts": ["[0, 1, 1, 0, 0, 0, 0, 0]", "[0 1 0 0 0 1 1 0]", "[0, 1, 0, 0, 0, 0, 1, 0]"],
    "spans": [[[2, 11]], [[2, 6], [18, 28]], [[2, 6], [23, 28]]],
    "spans as text": "[[(2, 11)], [(2, 6), (18, 28)], [(2, 6), (23, 28)]]",
    "words": [["dull film"], ["dull", "well acted"], ["dull", "acted"]],
}


@pytest.mark.parametrize("name", PEOPLE)
@pytest.mark.parametrize("vote", [*VOTES, "all"])
def test_marks_of_several_annotators_are_put_to_the_vote(name, vote, tmp_path):
    path = jsonl(tmp_path / "a.jsonl", {"text": TEXT, "gold": PEOPLE[name]}, {"text": TEXT, "gold": [[], [], []]})
    found = open_dataset(path, annotators=vote)
    assert marks(found.examples[0]) == VOTES.get(vote, ["dull"])
    assert found.examples[1].gold == ()
    assert f"of 3 annotators ({vote} of them)" in found.understood


def test_annotators_may_have_a_column_each(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f'text,ann,bob,cy\n"{TEXT}",0 1 1 0 0 0 0 0,0 1 0 0 0 1 1 0,0 1 0 0 0 0 1 0\n"{TEXT}",,,\n')
    found = open_dataset(f"{path}(gold=(ann, bob, cy))")
    assert [marks(example) for example in found] == [VOTES["majority"], []]
    assert found.examples[0].meta == {} and "'ann' and 'bob' and 'cy'" in found.understood
    with pytest.raises(RaisonError, match="no column 'dan' for gold"):
        open_dataset(f"{path}(gold=(ann, dan))")


def test_two_words_by_two_annotators_are_no_spans():
    """[1, 0] can be no span, so the lists hold 0 and 1 for each of two tokens."""
    assert [one.numbers for one in parse_annotations([[0, 1], [1, 0]], TokenizedText("a b"))] == [(0, 1), (1, 0)]
    assert len(parse_annotations([[0, 1], [1, 2]], TokenizedText("a b"))[0].spans) == 2


@pytest.mark.parametrize(
    ("sign", "text", "plain", "expected"),
    [
        ("*", "a *dull* film , but *well acted* .", TEXT, ["dull", "well acted"]),
        ("**", "a **dull** film , but well acted .", TEXT, ["dull"]),
        ("<b>", "a <b>dull</b> film , but <B class='x'> well acted</B> .", None, ["dull", "well acted"]),
        ("<mark>", "a <mark>dull</mark> film<br>", "a dull film<br>", ["dull"]),
        ("[[ ]]", "a [[dull]] film", "a dull film", ["dull"]),
        ("*", "a dull film", "a dull film", []),
    ],
)
def test_marked_words_in_the_text(sign, text, plain, expected, tmp_path):
    path = jsonl(tmp_path / "a.jsonl", {"text": text})
    found = open_dataset(path, marked=sign)
    (example,) = found
    assert marks(example) == expected and example.text == (plain or example.text)
    assert sign[0] not in example.text or plain == "a dull film<br>"
    assert f"stand between {sign!r}" in found.understood
    if expected:  # a marked copy in a column of its own; the text itself has no marks
        path = jsonl(tmp_path / "b.jsonl", {"text": example.text, "copy": text})
        if "<b" not in example.text:
            (again,) = open_dataset(path, gold="copy", marked=sign)
            assert (again.text, again.gold) == (example.text, example.gold)


def test_marked_words_of_a_pair(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("premise,hypothesis,y\na *man* sleeps,*nobody* is here,no\n")
    (example,) = open_dataset(f'{path}(text=premise, pair=hypothesis, label=y, marked="*")')
    assert (example.text, example.pair, marks(example)) == ("a man sleeps", "nobody is here", ["man", "nobody"])


@pytest.mark.parametrize(
    ("record", "params", "why"),
    [
        ({"text": "a *dull film"}, {"marked": "*"}, "the marks '\\*' do not come in pairs in 'a \\*dull film'"),
        ({"text": "a </b>dull<b> film"}, {"marked": "<b>"}, "do not come in pairs"),
        ({"text": "a <b>dull <b>film</b></b>"}, {"marked": "<b>"}, "do not come in pairs"),
        ({"text": "a ** film"}, {"marked": "*"}, "there is nothing between two marks"),
        ({"text": "a film", "gold": "a *dull* film"}, {"marked": "*"}, "another text than the one that it marks"),
        ({"text": TEXT, "gold": ["bright"]}, {}, "the marked word 'bright' is no span of the text"),
        ({"text": TEXT, "gold": ["dull", "dull"]}, {}, "the marked word 'dull' is no span of the text"),
        ({"text": TEXT, "gold": [0, 1, 1]}, {}, "3 marks do not fit 8 tokens"),
        ({"text": TEXT, "gold": [0, 1, 2]}, {"numbers": "flags"}, "3 marks do not fit 8 tokens"),
        ({"text": TEXT, "gold": [9]}, {"numbers": "tokens"}, "no token 9 in a text of 8, counted from 0"),
        ({"text": TEXT, "gold": [-1, 3]}, {"numbers": "tokens"}, "no token -1 in a text of 8"),
        ({"text": TEXT, "gold": [99]}, {"numbers": "characters"}, "no character 99 in a text of 30"),
        ({"text": TEXT, "gold": [1, 1]}, {"numbers": "tokens"}, "the numbers of tokens name one twice"),
        ({"text": TEXT, "gold": [[5, 9]]}, {"numbers": "tokens"}, "the tokens 5..9 are not in the text, which has 8"),
        ({"text": TEXT, "gold": [[99, 120]]}, {}, "the span 99..120 is not in the text"),
        ({"text": TEXT, "gold": {"by": 3}}, {}, "3' is no span: write"),
        ({"text": TEXT, "gold": 3}, {}, "no list of spans or of 0 and 1 but int"),
        ({"text": TEXT, "gold": "[(1, 2"}, {}, "no list of spans or of 0 and 1"),
        ({"text": TEXT, "gold": [[1, None]]}, {}, "is no span: write"),
        ({"text": TEXT}, {"marked": "a b c"}, "a sign such as"),
        ({"text": TEXT}, {"marked": 3}, "a sign such as"),
        ({"text": TEXT}, {"annotators": "most"}, "annotators is majority, union, any or all"),
        ({"text": TEXT}, {"numbers": "letters"}, "numbers is characters, tokens or flags"),
    ],
)
def test_marks_that_mean_nothing_are_one_sentence(record, params, why, tmp_path):
    with pytest.raises(InputError, match=why) as told:
        open_dataset(jsonl(tmp_path / "a.jsonl", record), **params)
    assert "\n" not in str(told.value)


def test_a_list_of_words_is_counted_by_its_own_words(tmp_path):
    """0 and 1 for each word of the list, also where a word has a space in it (HateXplain has such lists)."""
    path = jsonl(tmp_path / "a.jsonl", {"words": ["New York", "is", "dull"], "why": [[1, 0, 1], [0, 0, 1], [0, 0, 1]]})
    (example,) = open_dataset(f"{path}(text=words, gold=why)")
    assert (example.text, marks(example)) == ("New York is dull", ["dull"])


def test_a_record_that_is_wrong_does_not_change_what_numbers_count(tmp_path):
    """A span beyond the text speaks neither for characters nor for tokens."""
    records = [{"text": TEXT, "gold": [[5, 7]]}, {"text": TEXT, "gold": [[5, 99]]}]
    with pytest.warns(DataWarning):
        found = open_dataset(jsonl(tmp_path / "a.jsonl", *records), skip_broken=True)
    assert marks(found.examples[0]) == ["well acted"] and len(found.broken) == 1
    assert decide_meaning([]).numbers == "flags"


def test_what_was_understood_is_said_with_an_example(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f'review,stars,why\nfine,1,\n"{TEXT}",0,"[(2, 6), (18, 28)]"\n')
    heard = []
    with progress.hear(heard.append):
        found = open_dataset(f"{path}(text=review, label=stars, gold=why)")
    assert found.understood == (
        "a.csv: text is 'review'; label is 'stars'; gold is 'why', read as spans of characters; for example "
        f"'{TEXT}' has the label '0' and the marks 'dull', 'well acted'."
    )
    assert heard == [found.understood]
    assert open_dataset("reviews").understood == ""
    result = evaluate(lambda texts: [len(text) for text in texts], str(path) + "(text=review)", ["random"], ["aopc"])
    assert any(note.startswith("a.csv: text is 'review'") for note in result.notes)


def test_the_command_line_warns_in_one_line(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", {"id": "x", "text": TEXT, "gold": [[2, 6]]})
    made = jsonl(tmp_path / "made.jsonl", {"id": "x", "tokens": TEXT.split(), "scores": [0, 1, 0, 0, 0, 0, 0, 0]})
    assemble()
    found = CliRunner().invoke(app, ["evaluate", "-d", path, "--explanations", made, "--metric", "auprc"])
    assert found.exit_code == 0, found.output
    (line,) = [line for line in found.stderr.splitlines() if line.startswith("note: ")]
    assert line.startswith("note: The numbers of 'gold' in a.jsonl could be characters or tokens")
    assert ".py" not in found.stderr


def test_decisions_look_no_further_than_they_must(tmp_path):
    """A file is not read to its end for the first records."""
    path = tmp_path / "a.jsonl"
    with path.open("w") as file:
        for number in range(1000):
            file.write(json.dumps({"text": f"text {number}"}) + "\n")
        file.write("{{{\n")
    assert len(open_dataset(path, limit=10)) == 10


# -- JSON --------------------------------------------------------------------------------------------------------

QUESTION = {"question": {"stem": "who sat ?", "choices": [{"text": "cats"}, {"text": "dogs"}]}, "key.a": "A"}


@pytest.mark.parametrize("ending", ["json", "jsonl", "json.gz"])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_objects_is_read_like_lines(ending, indent, tmp_path):
    path = tmp_path / f"a.{ending}"
    text = json.dumps([{"text": "fine", "label": 1, "note": "a\nb"}, {"text": "dull", "label": 0}], indent=indent)
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
    (again,) = open_dataset(open_dataset(f"{path}({spec})").name)  # the name of what was read reads the same
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
            InputError, match=f"no column '{column}' for text; the columns are question.stem, question.c"
        ):
            open_dataset(path, text=column)
    with pytest.raises(InputError, match="is not a name with parameters"):
        Spec.parse("gradient(steps=a.b)")  # dots are for data


def test_gold_inside_objects_of_annotators(tmp_path):
    people = [
        {"name": "ann", "marks": [0, 1, 1]},
        {"name": "bob", "marks": [0, 1, 0]},
        {"name": "cy", "marks": [0, 1, 1]},
    ]
    path = jsonl(tmp_path / "a.jsonl", {"text": "a dull film", "people": people})
    (example,) = open_dataset(f"{path}(gold=people.marks)")
    assert marks(example) == ["dull film"]


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
    rows = Hub([{"q": {"stem": TEXT}, "y": 1, "why": [[0, 1, 0, 0, 0, 1, 1, 0], [0, 1, 0, 0, 0, 0, 0, 0]]}])
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=lambda name, config: rows))
    found = open_dataset("hf:some/set(text=q.stem, label=y, gold=why, annotators=all, labels=(no, yes))")
    assert marks(found.examples[0]) == ["dull"] and found.examples[0].label == "yes"
    assert found.understood.startswith("set: text is 'q.stem'") and "2 annotators (all of them)" in found.understood
    assert found.labels == ("no", "yes") and found.task == "classification"


# -- parallel text -----------------------------------------------------------------------------------------------

GERMAN, ENGLISH, LINKS = ["das haus", "ich komme nicht"], ["the house", "i do not come"], ["0-0 1-1", "0-0 1p1 1-3 2p2"]
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
    "form", ["three files", "three files by their paths", "one file", "two files", "words from 1", "a table", "JSON"]
)
def test_parallel_text_is_read_as_it_lies(form, tmp_path):
    found = open_dataset(parallel_specs(tmp_path)[form])
    assert found.task == "seq2seq"
    assert [(example.text, example.label) for example in found] == list(zip(GERMAN, ENGLISH, strict=True))
    assert [(example.meta["sure"], example.meta["possible"]) for example in found] == EXPECTED
    assert found.examples[0].meta["target_words"] == [[0, 3], [4, 9]]


def test_translations_need_no_alignment(tmp_path):
    parallel_specs(tmp_path)
    for spec in ("a.de(translation=a.en)", "two.txt(format=parallel)"):
        found = open_dataset(f"{tmp_path}/{spec}")
        assert [(example.text, example.label) for example in found] == list(zip(GERMAN, ENGLISH, strict=True))
        assert "sure" not in found.examples[0].meta


@pytest.mark.parametrize(
    ("spec", "content", "why"),
    [
        ("a.de(translation=a.fr)", None, "no file 'a.fr', also not beside"),
        ("two.txt(format=parallel)", "das haus the house\n", "Line 1 .*no [|]{3} stands between"),
        ("two.txt(format=parallel)", "a ||| b ||| 0-0 ||| c\n", "has 4 parts between"),
        ("two.txt(alignment=a.align)", "das haus ||| the house ||| 0-0\n", "the links are in a file of their own"),
        (
            "two.txt(format=parallel)",
            "das haus ||| the house ||| 1-1 2-2\n",
            "2-2 .*goes beyond the 2 and 2 .*base=1",
        ),
        ("two.txt(format=parallel)", "das haus ||| the house ||| 0:0\n", "'0:0' is no link"),
        ("two.txt(format=parallel, base=1)", "das haus ||| the house ||| 0-0\n", "counts words from 0, not from 1"),
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
    found = open_dataset(f"{folder / 'zhen.src-tgt.gz'}(format=parallel, alignment=zhen.gold.gz, base=1)")
    known = open_dataset("align_zhen", data=data_dir)
    assert len(found) == 450
    for mine, theirs in zip(found, known, strict=True):
        assert (mine.text, mine.label) == (theirs.text, theirs.label)
        assert [mine.meta[kind] for kind in ("sure", "possible")] == [
            theirs.meta[kind] for kind in ("sure", "possible")
        ]


def test_cose_by_a_mapping_has_the_marks_of_its_loader(data_dir):
    path = data_dir / "eraser_cose" / "test.csv.gz"
    mine = open_dataset(f"{path}(label=classification, gold=rationale)")
    theirs = open_dataset("eraser_cose", data=data_dir)
    assert len(mine) == 1079 and "0 or 1 for each token" in mine.understood and mine.doubts == ()
    for one, other in zip(mine, theirs, strict=True):
        assert [(span.start, span.end) for span in one.gold] == [(span.start, span.end) for span in other.gold]


def test_marks_are_taken_out_of_a_text():
    assert strip_marks("a *b* c", "*") == ("a b c", [(2, 3)])
    assert strip_marks("a *b * c", "*") == ("a b  c", [(2, 3)])
