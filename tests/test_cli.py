"""The command line as a user meets it: a process of its own, stdout, stderr, exit code."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import raison as package
from raison.core import limits
from raison.core.errors import TooLong
from raison.testing import tiny_hf
from tests.helpers import cli_server


def raison(*args: str, stdin: str | bytes = "", fresh: bool = False) -> subprocess.CompletedProcess:
    """`fresh`: started by Python as a user's shell does it, which takes seconds to import what is needed."""
    given = stdin if isinstance(stdin, bytes) else stdin.encode()
    if fresh:
        command, env = [sys.executable, "-m", "raison", *args], {**os.environ, **cli_server.OFFLINE}
        found = subprocess.run(command, input=given, capture_output=True, env=env, timeout=120)
    else:
        found = cli_server.run(args, given, timeout=120)
    if isinstance(stdin, str):
        found.stdout, found.stderr = found.stdout.decode(), found.stderr.decode()
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A saved tiny classifier."""
    place = tmp_path_factory.mktemp("models") / "tiny-classifier"
    model, tokenizer = tiny_hf("bert", "classification", double=False)
    model.config.id2label = {0: "dull", 1: "neutral", 2: "lovely"}
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place


def one_sentence(result: subprocess.CompletedProcess, code: int) -> str:
    """A failure shows one line, no traceback, and nothing on stdout."""
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1 and lines[0].startswith("raison: ") and lines[0].endswith((".", "?")), result.stderr
    return lines[0]


def test_help_is_light():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = raison("--help", fresh=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert result.returncode == 0 and "explain" in result.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


def test_version():
    assert raison("--version").stdout.strip() == package.__version__


@pytest.mark.parametrize("fresh", [True, False])
def test_explain_prints_text_and_numbers(folder, fresh):
    methods = ("-M", "leave_one_out", "-M", "gradient_norm")
    result = raison("explain", "The film is lovely.", "-m", str(folder), *methods, fresh=fresh)
    assert result.returncode == 0, result.stderr
    assert "lovely" in result.stdout and "leave_one_out" in result.stdout and "gradient_norm" in result.stdout
    assert result.stderr == ""


def test_json_is_an_explanation(folder):
    from raison import Explanation

    result = raison("explain", "-", "-m", str(folder), "--json", stdin="The film\nis lovely.")
    assert result.returncode == 0, result.stderr
    found = Explanation.from_json(result.stdout)
    assert found.encoding.texts == ("The film\nis lovely.",)
    assert found.model == "tiny-classifier" and found.method == "leave_one_out" and found.removal == "delete"


def test_out_and_html_files(folder, tmp_path):
    out, page = tmp_path / "x.jsonl", tmp_path / "x.html"
    result = raison(
        "explain", "So </script> lovely", "-m", str(folder), "--target", "all", "--out", str(out), "--html", str(page)
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
        result = raison("explain", "Not bad.", "-m", str(folder), "--target", target, "--contrast", "dull", "--json")
        found = json.loads(result.stdout)["target"]
        assert (found["ids"], found["contrast"]) == ([2], [0])


@pytest.mark.parametrize("what", ["methods", "models", "metrics", "datasets"])
def test_ls(what):
    result = raison("ls", what)
    assert result.returncode == 0 and result.stdout.strip()
    assert json.loads(raison("ls", what, "--json").stdout) is not None


BAD = {
    "empty text": (["explain", ""], 2, "empty"),
    "only spaces": (["explain", " \n\t "], 2, "empty"),
    "no text": (["explain"], 2, "text"),
    "unknown method": (["explain", "x", "-M", "leave_one_ot"], 2, "Did you mean 'leave_one_out'"),
    "unknown parameter": (["explain", "x", "-M", "random(sed=1)"], 2, "no parameter"),
    "not a spec": (["explain", "x", "-M", "random(__import__('os'))"], 2, "name with parameters"),
    "unknown label": (["explain", "x y", "--target", "lovly"], 2, "Did you mean 'lovely'"),
    "label beyond the last": (["explain", "x y", "--target", "7"], 2, "classes 0 to 2"),
    "target is its contrast": (["explain", "x y", "--target", "dull", "--contrast", "dull"], 2, "two classes"),
    "unknown units": (["explain", "x y", "--units", "words"], 2, "token, word"),
    "no slots": (["explain", "x y", "--units", "slot"], 2, "no slots"),
    "unknown removal": (["explain", "x y", "--removal", "delet"], 2, "Did you mean 'delete'"),
    "unknown output": (["explain", "x y", "--output", "odds"], 2, "log_prob"),
    "100,000 characters": (["explain", "word " * 20_000], 2, "at most 64"),
    "context without question": (["explain", "--context", "none.txt"], 2, "--question"),
    "missing context file": (["explain", "--question", "Who?", "--context", "none.txt"], 2, "no file"),
    "html into a missing folder": (["explain", "x y", "--html", "no/such/folder/x.html"], 2, "can't be written"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(case, folder):
    args, code, words = BAD[case]
    assert words in one_sentence(raison(*args, "-m", str(folder)), code)


def test_list_of_something_unknown():
    assert "Did you mean 'methods'" in one_sentence(raison("ls", "method"), 2)


def test_missing_model_folder():
    assert "check the path" in one_sentence(raison("explain", "x", "-m", "./no/such/model"), 1)


def test_unknown_hub_name_offline():
    assert "hub can't be reached" in one_sentence(raison("explain", "x", "-m", "nobody/nothing"), 1)


def test_input_that_is_not_text(folder):
    result = raison("explain", "-", "-m", str(folder), stdin=b"\xff\xfe\x00bad")
    assert result.returncode == 2 and b"UTF-8" in result.stderr and b"Traceback" not in result.stderr


def test_texts_have_a_limit(folder, tmp_path):
    long = tmp_path / "long.txt"
    long.write_bytes(b"word " * (2**24 // 5 + 1))
    told = one_sentence(raison("explain", "-m", str(folder), "-", stdin=long.read_text()), 2)
    assert "Standard input is larger than 16 MB" in told
    told = one_sentence(raison("explain", "-m", str(folder), "--question", "Who?", "--context", str(long)), 2)
    assert "long.txt' is larger than 16 MB" in told


def test_truncation_is_recorded(folder):
    result = raison("explain", "word " * 200, "-m", str(folder), "--truncate", "--json")
    found = json.loads(result.stdout)
    assert len(found["encoding"]["ids"]) == 64
    assert found["encoding"]["truncated"] == found["diagnostics"]["truncated_tokens"] > 0


def test_a_reader_that_goes_away(folder):
    command = f'"{sys.executable}" -m raison ls methods | head -1'
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0 and "Traceback" not in result.stderr


def closing(streams: str, *args: str) -> subprocess.CompletedProcess:
    """The command in a shell that closes some of its streams."""
    words = " ".join(f'"{word}"' for word in (sys.executable, "-m", "raison", *args))
    env = {**os.environ, **cli_server.OFFLINE}
    return subprocess.run(["bash", "-c", f"{words} {streams}"], capture_output=True, text=True, timeout=120, env=env)


def test_closed_streams_lead_nowhere(folder, tmp_path):
    """What libraries print must not get into a file of results that has the number of a closed stream."""
    out = tmp_path / "x.jsonl"
    asked = ("explain", "The film is lovely.", "-m", str(folder), "--json", "--out", str(out))
    found = closing("0<&- 2>&-", *asked)
    assert found.returncode == 0 and found.stdout == out.read_text(encoding="utf-8")
    assert json.loads(found.stdout)["encoding"]["texts"] == ["The film is lovely."]
    found = closing("1>&-", "ls", "methods")
    assert (found.returncode, found.stderr) == (0, "")
    found = closing("2>&-", "show", str(tmp_path / "nothing.jsonl"))
    assert (found.returncode, found.stdout) == (2, "")  # and not on standard output, where results are
    assert "Standard input is closed" in one_sentence(closing("0<&-", "explain", "-", "-m", str(folder)), 2)


@pytest.mark.parametrize("columns", ["0", "7"])
def test_results_are_shown_however_narrow_the_terminal_says_it_is(columns, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    shown = raison("explain", "The film is lovely.", "-m", str(folder)).stdout
    assert "lovely" in shown and "+0." in shown


def test_a_text_that_would_fill_the_memory_as_tokens_is_refused(folder, tmp_path):
    long = "word " * (limits.CUT // 5 + 1)
    told = one_sentence(raison("explain", "-", "-m", str(folder), "--truncate", stdin=long), 2)
    assert "The text is larger than 4 MB" in told
    data = tmp_path / "data.jsonl"
    data.write_text(json.dumps({"text": long}) + "\n")
    asked = ("evaluate", "-m", str(folder), "-d", str(data), "-M", "random", "--metric", "sufficiency")
    assert "larger than 4 MB" in one_sentence(raison(*asked), 2)
    function = package.load(lambda texts: [[0.0, 1.0]] * len(texts))
    with pytest.raises(TooLong, match="larger than 4 MB"):
        package.explain(function, long)
    with pytest.raises(TooLong, match="larger than 4 MB"):
        package.load(folder).codec(long[: limits.CUT // 2 + 1], long[: limits.CUT // 2])


@pytest.mark.parametrize("command", ["explain", "evaluate", "compare"])
def test_commands_open_models_alike(command, tmp_path):
    """A model that needs --allow-pickle can be measured, not only explained; a wrong device is told."""
    import torch

    hf, tokenizer = tiny_hf("bert", "classification", double=False)
    hf.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    tokenizer.save_pretrained(tmp_path)
    torch.save(hf.state_dict(), tmp_path / "pytorch_model.bin")
    asked = {
        "explain": ("a good film", "-M", "random"),
        "evaluate": ("-M", "random", "--metric", "sufficiency", "--limit", "2"),
        "compare": ("random", "uniform", "--metric", "sufficiency", "--limit", "2"),
    }[command]
    args = (command, *asked, "-m", str(tmp_path))
    refused = raison(*args)
    assert refused.returncode in (1, 2) and "--allow-pickle" in refused.stderr
    assert raison(*args, "--allow-pickle", "--device", "cpu").returncode == 0
    wrong = raison(*args, "--allow-pickle", "--device", "moon")
    assert wrong.returncode in (1, 2) and "can't be put on 'moon'" in wrong.stderr and wrong.stderr.count("\n") == 1
