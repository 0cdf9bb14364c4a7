"""raison explain on a tiny model, from the command line."""

from __future__ import annotations

import json

import pytest

import raison as package
from raison.core import limits
from raison.core.errors import TooLong
from tests.helpers.command_line import one_sentence, raison


@pytest.mark.parametrize("fresh", [True, False])
def test_explain_prints_text_and_numbers(folder, fresh):
    methods = ("-M", "leave_one_out", "-M", "gradient_norm")
    result = raison("explain", "The film is lovely.", "-m", str(folder), *methods, fresh=fresh)
    assert result.returncode == 0, result.stderr
    assert (
        "lovely" in result.stdout
        and "leave_one_out" in result.stdout
        and "gradient_norm" in result.stdout
    )
    assert result.stderr == ""


def test_json_is_an_explanation(folder):
    from raison import Explanation

    result = raison("explain", "-", "-m", str(folder), "--json", stdin="The film\nis lovely.")
    assert result.returncode == 0, result.stderr
    found = Explanation.from_json(result.stdout)
    assert found.encoding.texts == ("The film\nis lovely.",)
    assert (
        found.model == "tiny-classifier"
        and found.method == "leave_one_out"
        and found.removal == "delete"
    )


def test_out_and_html_files(folder, tmp_path):
    out, page = tmp_path / "x.jsonl", tmp_path / "x.html"
    result = raison(
        "explain",
        "So </script> lovely",
        "-m",
        str(folder),
        "--target",
        "all",
        "--out",
        str(out),
        "--html",
        str(page),
    )
    assert result.returncode == 0, result.stderr
    assert [json.loads(line)["target"]["text"] for line in out.read_text().splitlines()] == [
        "dull",
        "neutral",
        "lovely",
    ]
    shown = page.read_text().replace("http-equiv", "").replace('"http://www.w3.org/2000/svg"', "")
    assert "http" not in shown  # no address but the name of SVG


def test_target_by_name_number_and_contrast(folder):
    for target in ("lovely", "LOVELY", "2"):
        result = raison(
            "explain",
            "Not bad.",
            "-m",
            str(folder),
            "--target",
            target,
            "--contrast",
            "dull",
            "--json",
        )
        found = json.loads(result.stdout)["target"]
        assert (found["ids"], found["contrast"]) == ([2], [0])


BAD = {
    "empty text": (["explain", ""], 2, "empty"),
    "only spaces": (["explain", " \n\t "], 2, "empty"),
    "no text": (["explain"], 2, "text"),
    "unknown method": (["explain", "x", "-M", "leave_one_ot"], 2, "Did you mean 'leave_one_out'"),
    "unknown parameter": (["explain", "x", "-M", "random(sed=1)"], 2, "no parameter"),
    "not a spec": (["explain", "x", "-M", "random(__import__('os'))"], 2, "name with parameters"),
    "unknown label": (["explain", "x y", "--target", "lovly"], 2, "Did you mean 'lovely'"),
    "label beyond the last": (["explain", "x y", "--target", "7"], 2, "classes 0 to 2"),
    "target is its contrast": (
        ["explain", "x y", "--target", "dull", "--contrast", "dull"],
        2,
        "two classes",
    ),
    "unknown units": (["explain", "x y", "--units", "words"], 2, "token, word"),
    "no slots": (["explain", "x y", "--units", "slot"], 2, "no slots"),
    "unknown removal": (["explain", "x y", "--removal", "delet"], 2, "Did you mean 'delete'"),
    "unknown output": (["explain", "x y", "--output", "odds"], 2, "log_prob"),
    "100,000 characters": (["explain", "word " * 20_000], 2, "at most 64"),
    "context without question": (["explain", "--context", "none.txt"], 2, "--question"),
    "missing context file": (
        ["explain", "--question", "Who?", "--context", "none.txt"],
        2,
        "no file",
    ),
    "html into a missing folder": (
        ["explain", "x y", "--html", "no/such/folder/x.html"],
        2,
        "can't be written",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(case, folder):
    args, code, words = BAD[case]
    assert words in one_sentence(raison(*args, "-m", str(folder)), code)


def test_missing_model_folder():
    assert "check the path" in one_sentence(raison("explain", "x", "-m", "./no/such/model"), 1)


def test_unknown_hub_name_offline():
    assert "hub can't be reached" in one_sentence(raison("explain", "x", "-m", "nobody/nothing"), 1)


def test_input_that_is_not_text(folder):
    result = raison("explain", "-", "-m", str(folder), stdin=b"\xff\xfe\x00bad")
    assert (
        result.returncode == 2 and b"UTF-8" in result.stderr and b"Traceback" not in result.stderr
    )


def test_texts_have_a_limit(folder, tmp_path):
    long = tmp_path / "long.txt"
    long.write_bytes(b"word " * (2**24 // 5 + 1))
    told = one_sentence(raison("explain", "-m", str(folder), "-", stdin=long.read_text()), 2)
    assert "Standard input is larger than 16 MB" in told
    told = one_sentence(
        raison("explain", "-m", str(folder), "--question", "Who?", "--context", str(long)), 2
    )
    assert "long.txt' is larger than 16 MB" in told


def test_truncation_is_recorded(folder):
    result = raison("explain", "word " * 200, "-m", str(folder), "--truncate", "--json")
    found = json.loads(result.stdout)
    assert len(found["encoding"]["ids"]) == 64
    assert found["encoding"]["truncated"] == found["diagnostics"]["truncated_tokens"] > 0


def test_a_text_that_would_fill_the_memory_as_tokens_is_refused(folder, tmp_path):
    long = "word " * (limits.CUT // 5 + 1)
    told = one_sentence(raison("explain", "-", "-m", str(folder), "--truncate", stdin=long), 2)
    assert "The text is larger than 4 MB" in told
    data = tmp_path / "data.jsonl"
    data.write_text(json.dumps({"text": long}) + "\n")
    asked = (
        "evaluate",
        "-m",
        str(folder),
        "-d",
        str(data),
        "-M",
        "random",
        "--metric",
        "sufficiency",
    )
    assert "larger than 4 MB" in one_sentence(raison(*asked), 2)
    function = package.load(lambda texts: [[0.0, 1.0]] * len(texts))
    with pytest.raises(TooLong, match="larger than 4 MB"):
        package.explain(function, long)
    with pytest.raises(TooLong, match="larger than 4 MB"):
        package.load(folder).codec(long[: limits.CUT // 2 + 1], long[: limits.CUT // 2])
