"""Words that are marked in the text itself."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError
from raison.datasets import open_dataset
from raison.datasets.inline_marks import strip_marks
from tests.helpers.user_data import TEXT, jsonl, marks


@pytest.mark.parametrize(
    ("sign", "text", "plain", "expected"),
    [
        ("*", "a *dull* film , but *well acted* .", TEXT, ["dull", "well acted"]),
        ("**", "a **dull** film , but well acted .", TEXT, ["dull"]),
        (
            "<b>",
            "a <b>dull</b> film , but <B class='x'> well acted</B> .",
            None,
            ["dull", "well acted"],
        ),
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
    assert (example.text, example.pair, marks(example)) == (
        "a man sleeps",
        "nobody is here",
        ["man", "nobody"],
    )


@pytest.mark.parametrize(
    ("record", "params", "why"),
    [
        (
            {"text": "a *dull film"},
            {"marked": "*"},
            "the marks '\\*' do not come in pairs in 'a \\*dull film'",
        ),
        ({"text": "a </b>dull<b> film"}, {"marked": "<b>"}, "do not come in pairs"),
        ({"text": "a <b>dull <b>film</b></b>"}, {"marked": "<b>"}, "do not come in pairs"),
        ({"text": "a ** film"}, {"marked": "*"}, "there is nothing between two marks"),
        (
            {"text": "a film", "gold": "a *dull* film"},
            {"marked": "*"},
            "another text than the one that it marks",
        ),
        ({"text": TEXT, "gold": ["bright"]}, {}, "the marked word 'bright' is no span of the text"),
        (
            {"text": TEXT, "gold": ["dull", "dull"]},
            {},
            "the marked word 'dull' is no span of the text",
        ),
        ({"text": TEXT, "gold": [0, 1, 1]}, {}, "3 marks do not fit 8 tokens"),
        ({"text": TEXT, "gold": [0, 1, 2]}, {"numbers": "flags"}, "3 marks do not fit 8 tokens"),
        (
            {"text": TEXT, "gold": [9]},
            {"numbers": "tokens"},
            "no token 9 in a text of 8, counted from 0",
        ),
        ({"text": TEXT, "gold": [-1, 3]}, {"numbers": "tokens"}, "no token -1 in a text of 8"),
        (
            {"text": TEXT, "gold": [99]},
            {"numbers": "characters"},
            "no character 99 in a text of 30",
        ),
        (
            {"text": TEXT, "gold": [1, 1]},
            {"numbers": "tokens"},
            "the numbers of tokens name one twice",
        ),
        (
            {"text": TEXT, "gold": [[5, 9]]},
            {"numbers": "tokens"},
            "the tokens 5..9 are not in the text, which has 8",
        ),
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


def test_marks_are_taken_out_of_a_text():
    assert strip_marks("a *b* c", "*") == ("a b c", [(2, 3)])
    assert strip_marks("a *b * c", "*") == ("a b  c", [(2, 3)])
