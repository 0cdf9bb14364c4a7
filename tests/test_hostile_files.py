"""Files that somebody brought and that break a parser or a library: one sentence, never a traceback, never a hang."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import raison
from raison.cli.app import app, assemble, guarded
from raison.core import limits
from raison.core.artifact import Artifact
from raison.core.errors import InputError, ModelError, RaisonError
from raison.models import hub, lora, panics
from raison.runs.spec import read_spec
from raison.studies.exchange.read import read_explanations
from raison.testing import tiny_hf
from tests.helpers import cli_server
from tests.helpers.paths import SOURCE

DEEP = "[" * 200_000 + "]" * 200_000
# catastrophic backtracking: every way to part the a's is tried before the pattern is given up
HUNGRY = {"type": "Split", "pattern": {"Regex": "(a+)+(?=b)$"}, "behavior": "Isolated", "invert": False}
VICTIM = "a film " + "a" * 40
NO_PIECES = {"type": "FixedLength", "length": 0}  # a panic with every text
BROKEN_MAP = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}  # a panic when the file is read
BROKEN_STRIP = {"type": "Strip", "content": "a", "start": 5, "stop": 5}  # a panic when tokens become text


@pytest.fixture
def folder(tmp_path) -> Path:
    hf, tokenizer = tiny_hf("bert", "classification", double=False)
    hf.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def edit_tokenizer(folder: Path, **changes) -> None:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


# -- tokenizers ----------------------------------------------------------------------------------------------------


def test_a_pattern_that_backtracks_for_ever_is_told(folder):
    edit_tokenizer(folder, pre_tokenizer=HUNGRY)
    model = raison.load(folder)
    with pytest.raises(InputError, match="tokenizer fails on the text 'a film a.*retry-limit"):
        raison.explain(model, VICTIM)
    assert len(raison.explain(model, "a film").scores)  # others are answered as before


def test_a_tokenizer_that_panics_when_it_is_read_is_told(folder):
    edit_tokenizer(folder, normalizer=BROKEN_MAP)
    with pytest.raises(ModelError, match="The tokenizer of .* can't be read .*precompiled_charsmap"):
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

    with pytest.raises(ends):
        panics.checked(stop, ModelError)
    with pytest.raises(ends):
        hub.sentence(stop, "name", "tokenizer")


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
    (tmp_path / "data.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in ("a film", VICTIM, "plain")))
    assemble()
    asked = ["run", "-m", str(folder), "-d", str(tmp_path / "data.jsonl"), "-M", "random", "--out", str(tmp_path / "r")]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0 and "3 of 3 texts are explained, 1 failed" in result.stderr, result.output


# -- adapters ------------------------------------------------------------------------------------------------------


@pytest.fixture
def adapter(tmp_path):
    peft = pytest.importorskip("peft")
    hf, _ = tiny_hf("gpt2", "causal", double=False)
    wrapped = peft.get_peft_model(hf, peft.LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True))
    wrapped.save_pretrained(tmp_path / "adapter")
    return tmp_path / "adapter"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"alpha_pattern": {"(?:.|..|...)+(?<!n)": 3}}, "takes too long to fit"),
        ({"alpha_pattern": {"(": 3}}, "which is no pattern"),
        ({"alpha_pattern": {"(" * 900 + ")" * 900: 3, "x" * 2000: 3}}, "more than 1000"),
        ({"alpha_pattern": {f"x{number}": 3 for number in range(5000)}}, "more than the model has modules"),
        ({"lora_alpha": 10**400}, "damaged"),
    ],
    ids=["hungry", "no pattern", "long", "many", "large"],
)
def test_patterns_of_an_adapter_are_bounded(adapter, changes, words, monkeypatch):
    monkeypatch.setattr(lora, "_PATIENCE", 0.01)
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(ModelError, match=words):
        lora.merged(tiny_hf("gpt2", "causal", double=False)[0], adapter)


def test_matrices_that_do_not_fit_each_other_are_told(adapter):
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(adapter / "adapter_model.safetensors")
    name = next(name for name in tensors if "lora_A" in name)
    save_file({**tensors, name: torch.ones(5, 16)}, adapter / "adapter_model.safetensors")
    with pytest.raises(ModelError, match="can't be merged"):
        lora.merged(tiny_hf("gpt2", "causal", double=False)[0], adapter)


# -- JSON and TOML -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [DEEP, "9" * 5000, b"\xff\xfe\x00", "{"], ids=["deep", "long number", "bytes", "cut"])
def test_broken_json_is_one_kind_of_error(text):
    with pytest.raises(json.JSONDecodeError):
        limits.from_json(text)


# these read what raison has just written itself, or what it ships
OWN = {
    "core.limits", "core.json_record", "web.server", "testing.tiny", "runs.identity", "attention_models.train",
    "rationalizers.train", "models.catalog.opus_mt_zh_en", "models.catalog.stories15m",
    "models.catalog.sentiment",
}  # fmt: skip


def test_every_json_file_of_a_user_is_read_by_one_function():
    """`json.loads` has more than one exception for a damaged file; `limits.from_json` has one."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in ("loads", "load") and ast.unparse(node.value) == "json":
                found.add(".".join(path.relative_to(SOURCE).with_suffix("").parts))
    assert found <= OWN


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_a_model_with_a_file_that_is_nested_too_deep_is_told(folder, name):
    (folder / name).write_text(f'{{"a": {DEEP}}}')
    with pytest.raises(ModelError, match="can't be read"):
        raison.load(folder)


def test_records_that_are_nested_too_deep_are_told(tmp_path):
    file = tmp_path / "x.json"
    fine = {"kind": "idf", "data": {}, "model": "", "about": {}}
    for deep in (DEEP, "[" * 900 + "]" * 900):
        for field in fine:
            file.write_text(json.dumps({**fine, field: "@"}).replace('"@"', deep))
            with pytest.raises(InputError):
                Artifact.open(file, "idf").content()
    file.write_text(DEEP)
    with pytest.raises(InputError, match="nested too deep"):
        read_explanations(file)
    with pytest.raises(InputError, match="not JSON"):
        raison.Explanation.from_json(DEEP)


@pytest.mark.parametrize(
    "text",
    ["a." * 5000 + "a = 1", "seed = " + "9" * 5000, "a = " + DEEP, "a = " + "{a=" * 9000],
    ids=["dotted key", "long number", "arrays", "tables"],
)
def test_a_spec_that_no_parser_should_be_given_is_told(text, tmp_path):
    (tmp_path / "spec.toml").write_text(text)
    with pytest.raises(InputError, match="is no TOML"):
        read_spec(tmp_path / "spec.toml")


def test_a_spec_may_have_many_dots_in_its_texts(tmp_path):
    (tmp_path / "spec.toml").write_text(f'model = "sentiment"\ndata = "{"../" * 60}x.jsonl"\n')
    assert read_spec(tmp_path / "spec.toml").model == "sentiment"
