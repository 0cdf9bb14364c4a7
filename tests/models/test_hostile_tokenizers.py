"""Tokenizers that break a library: one sentence, never a traceback, never a hang."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import raison
from raison.cli.app import app
from raison.cli.guard import guarded
from raison.core.errors import InputError, ModelError, RaisonError
from raison.models import hub, panics
from raison.testing import tiny_hf
from tests.helpers import cli_server

# catastrophic backtracking: every way to part the a's is tried before the pattern is given up
HUNGRY = {
    "type": "Split",
    "pattern": {"Regex": "(a+)+(?=b)$"},
    "behavior": "Isolated",
    "invert": False,
}


VICTIM = "a film " + "a" * 40


NO_PIECES = {"type": "FixedLength", "length": 0}  # a panic with every text


BROKEN_MAP = {
    "type": "Precompiled",
    "precompiled_charsmap": "AAAA",
}  # a panic when the file is read


BROKEN_STRIP = {
    "type": "Strip",
    "content": "a",
    "start": 5,
    "stop": 5,
}  # a panic when tokens become text


@pytest.fixture
def folder(tmp_path) -> Path:
    hf, tokenizer = tiny_hf("bert", "classification", double=False)
    hf.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def edit_tokenizer(folder: Path, **changes) -> None:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_pattern_that_backtracks_for_ever_is_told(folder):
    edit_tokenizer(folder, pre_tokenizer=HUNGRY)
    model = raison.load(folder)
    with pytest.raises(InputError, match="tokenizer fails on the text 'a film a.*retry-limit"):
        raison.explain(model, VICTIM)
    assert len(raison.explain(model, "a film").scores)  # others are answered as before


def test_a_tokenizer_that_panics_when_it_is_read_is_told(folder):
    edit_tokenizer(folder, normalizer=BROKEN_MAP)
    with pytest.raises(
        ModelError, match="The tokenizer of .* can't be read .*precompiled_charsmap"
    ):
        raison.load(folder)


def test_a_tokenizer_that_panics_with_every_text_is_told(folder):
    edit_tokenizer(folder, pre_tokenizer=NO_PIECES)
    with pytest.raises(RaisonError, match="chunk size must be non-zero"):
        raison.load(folder)


def test_tokens_that_can_not_become_text_are_told(folder):
    edit_tokenizer(folder, decoder=BROKEN_STRIP)
    model = raison.load(folder)
    with pytest.raises(ModelError, match="can't turn tokens into text"):
        model.codec.text(model.codec("a").ids)


def test_a_vocabulary_without_its_unknown_token_is_told(folder):
    kept = json.loads((folder / "tokenizer.json").read_text())
    del kept["model"]["vocab"]["[UNK]"]
    edit_tokenizer(folder, **kept)
    model = raison.load(folder)
    with pytest.raises(InputError, match=r"tokenizer fails on the text '漢字' .*Missing \[UNK\]"):
        raison.explain(model, "漢字")


def test_a_chat_template_that_fails_is_told():
    hf, tokenizer = tiny_hf("llama", "causal")
    tokenizer.chat_template = "{{ 1 / 0 }}"
    with pytest.raises(ModelError, match="chat template can't be applied"):
        raison.ground(raison.load(hf, tokenizer), "who?", ["a film"])


@pytest.mark.parametrize("ends", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_and_exits_are_no_failures_of_a_library(ends):
    def stop():
        raise ends

    with pytest.raises(ends), panics.failing_as(ModelError):
        stop()
    with pytest.raises(ends):
        hub.run_loading_step(stop, "name", "tokenizer")


def test_the_command_shows_a_panic_as_one_line(folder):
    """Rust writes to the standard error of the process by itself, behind Python's back."""
    edit_tokenizer(folder, pre_tokenizer=HUNGRY)
    result = cli_server.run(("explain", VICTIM, "-m", str(folder)), b"", timeout=60)
    assert result.returncode == 2 and result.stdout == b""
    assert result.stderr.count(b"\n") == 1 and b"retry-limit" in result.stderr


def test_a_panic_that_nobody_expects_is_one_line_as_well(capsys):
    class PanicException(BaseException):
        pass

    def command():
        raise PanicException("of a library")

    with pytest.raises(SystemExit) as ended:
        guarded(command)()
    said = capsys.readouterr().err
    assert ended.value.code == 1 and said.count("\n") == 1 and "of a library" in said


def test_a_run_goes_on_behind_a_text_that_its_tokenizer_can_not_cut(folder, tmp_path):
    edit_tokenizer(folder, pre_tokenizer=HUNGRY)
    (tmp_path / "data.jsonl").write_text(
        "".join(json.dumps({"text": t}) + "\n" for t in ("a film", VICTIM, "plain"))
    )
    asked = [
        "run",
        "-m",
        str(folder),
        "-d",
        str(tmp_path / "data.jsonl"),
        "-M",
        "random",
        "--out",
        str(tmp_path / "r"),
    ]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0 and "3 of 3 texts are explained, 1 failed" in result.stderr, (
        result.output
    )
