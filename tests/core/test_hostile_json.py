"""JSON and TOML that break a parser: one sentence."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import raison
from raison.core import limits
from raison.core.artifact import Artifact
from raison.core.errors import InputError, ModelError
from raison.runs.run_spec import read_run_spec
from raison.studies.exchange.read_explanations import read_explanations
from raison.testing import tiny_hf
from tests.helpers.paths import SOURCE

DEEP = "[" * 200_000 + "]" * 200_000


@pytest.fixture
def folder(tmp_path) -> Path:
    hf, tokenizer = tiny_hf("bert", "classification", double=False)
    hf.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    "text", [DEEP, "9" * 5000, b"\xff\xfe\x00", "{"], ids=["deep", "long number", "bytes", "cut"]
)
def test_broken_json_is_one_kind_of_error(text):
    with pytest.raises(json.JSONDecodeError):
        limits.read_json_text(text)


# these read what raison has just written itself, or what it ships
OWN = {
    "core.limits", "core.json_record", "testing.tiny", "runs.identity", "attention_models.train",
    "rationalizers.train", "models.catalog.opus_mt_zh_en", "models.catalog.stories15m",
    "models.catalog.sentiment",
}  # fmt: skip


def test_every_json_file_of_a_user_is_read_by_one_function():
    """`json.loads` has more than one exception for a damaged file; `limits.read_json_text` has one."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Attribute)
                and node.attr in ("loads", "load")
                and ast.unparse(node.value) == "json"
            ):
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
        read_run_spec(tmp_path / "spec.toml")


def test_a_spec_may_have_many_dots_in_its_texts(tmp_path):
    (tmp_path / "spec.toml").write_text(f'model = "sentiment"\ndata = "{"../" * 60}x.jsonl"\n')
    assert read_run_spec(tmp_path / "spec.toml").model == "sentiment"
