"""raison rationalize as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from raison.core.records import Explanation
from raison.testing import tiny_hf
from tests.helpers.command_line import one_sentence, raison

TEXT = "The old town lies on a hill above the river."


def saved(place: Path, family: str, task: str) -> Path:
    model, tokenizer = tiny_hf(family, task, double=False)
    model.config.max_position_embeddings = (
        64 if task == "classification" else 256
    )  # rotary positions have no table
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def writer(tmp_path_factory) -> str:
    return str(saved(tmp_path_factory.mktemp("models") / "tiny-writer", "llama", "causal"))


@pytest.fixture(scope="module")
def critic(tmp_path_factory) -> str:
    return str(saved(tmp_path_factory.mktemp("models") / "tiny-critic", "bert", "classification"))


def test_text_path_and_certificate_are_printed(writer):
    result = raison("rationalize", TEXT, "-m", writer, "-S", "greedy")
    assert result.returncode == 0 and result.stderr == "", result.stderr
    for words in (
        "rationale",
        "of 16 tokens",
        "start",
        "sufficient (checked anew)",
        "token-forwards",
    ):
        assert words in result.stdout or words == "of 16 tokens", result.stdout


def test_json_is_the_record(critic):
    rule = "probability(tau=0.95)"
    result = raison("rationalize", TEXT, "-m", critic, "--sufficient", rule, "--json")
    found = Explanation.from_json(result.stdout.strip())
    certificate = found.certificate
    assert found.method == f"refined(sufficient={rule})" and certificate.rule == rule
    assert certificate.sufficient and certificate.size == found.selected.sum() == len(found.order)
    assert certificate.probability >= 0.95 * certificate.full_probability


def test_the_matrix_of_a_whole_text(writer, tmp_path):
    pytest.importorskip("matplotlib")
    picture, page = tmp_path / "all.svg", tmp_path / "all.html"
    result = raison(
        "rationalize",
        TEXT,
        "-m",
        writer,
        "--target",
        "all",
        "--figure",
        str(picture),
        "--html",
        str(page),
    )
    assert result.returncode == 0, result.stderr
    assert "rationales of one text" in result.stdout and "in the rationale" in result.stdout
    assert picture.read_text("utf-8").startswith("<?xml") and "certificate" in page.read_text(
        "utf-8"
    )


def test_a_range_of_tokens_and_a_generated_text(writer):
    span = Explanation.from_json(
        raison("rationalize", TEXT, "-m", writer, "--target", "3:5", "--json").stdout
    )
    assert span.target.positions == (3, 4) and span.target.kind == "text"
    written = Explanation.from_json(
        raison("rationalize", TEXT, "-m", writer, "--generate", "3", "--json").stdout
    )
    assert len(written.target.ids) == 3 and written.certificate.is_prediction


def test_grounded_answers(writer, tmp_path):
    for name, text in {
        "a.txt": "The town lies on a hill.",
        "b.md": "She left early. He did not.",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = ["--context", str(tmp_path / "a.txt"), "--context", str(tmp_path / "b.md")]
    result = raison(
        "rationalize", "-m", writer, "--question", "Where?", *files, "--json", "--generate", "4"
    )
    assert result.returncode == 0, result.stderr
    grounding = json.loads(result.stdout)["grounding"]
    assert [passage["name"] for passage in grounding["passages"]] == ["a.txt", "b.md"]
    assert grounding["question"] == "Where?" and grounding["statement"].endswith(".")
    shown = raison("rationalize", "-m", writer, "--question", "Where?", *files, "--generate", "4")
    assert grounding["statement"][:20] in shown.stdout and "b.md" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rationalize"], "Give a text"),
        (["rationalize", TEXT, "-S", "gready"], "greedy"),
        (["rationalize", TEXT, "-S", "greedy(largest=-1)"], "largest"),
        (["rationalize", TEXT, "--sufficient", "probabilty"], "probability"),
        (["rationalize", TEXT, "--sufficient", "probability(tau=2)"], "tau"),
        (["rationalize", TEXT, "--context", "nowhere.txt"], "nowhere.txt"),
        (["rationalize", TEXT, "--answer", "x"], "--question"),
        (["rationalize", TEXT, "--figure", "/nowhere/x.png"], "/nowhere/x.png"),
        (["rationalize", "one two", "-m", "WRITER", "--target", "5:3"], "5:3"),
        (["rationalize", "a", "-m", "WRITER"], "longer text"),
        (["rationalize", TEXT, "-m", "CRITIC", "--generate", "3"], "does not write"),
        (["rationalize", TEXT, "-m", "CRITIC", "--target", "green"], "green"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, words, writer, critic):
    arguments = [
        {"WRITER": writer, "CRITIC": critic}.get(argument, argument) for argument in arguments
    ]
    assert words in one_sentence(raison(*arguments), 2)


INTERRUPTED = """
import sys
from raison.cli.app import main
from raison.models.transformers_model import TransformersModel
plain, calls = TransformersModel.score, [0]
def score(self, questions, **kwargs):
    calls[0] += "memory" in kwargs
    if calls[0] == 4:
        calls[0] += 1
        raise KeyboardInterrupt
    return plain(self, questions, **kwargs)
TransformersModel.score = score
sys.argv = ["raison", "rationalize", *sys.argv[1:]]
main()
"""


def test_ctrl_c_prints_the_best_so_far(writer):
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            INTERRUPTED,
            TEXT,
            "-m",
            writer,
            "-S",
            "exact",
            "--target",
            "all",
            "--json",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert result.returncode == 130, result.stderr
    found = [Explanation.from_json(line) for line in result.stdout.splitlines()]
    assert {"interrupted"} <= {e.certificate.status for e in found} <= {"interrupted", "complete"}
    assert "best that was found" in result.stderr and "Traceback" not in result.stderr
