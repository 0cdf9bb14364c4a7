"""Odd input that a hostile reading found once to end in something unexpected, each kept from coming back."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import raison
from raison.cli.texts import number_or_text
from raison.core.errors import InputError, ModelError
from raison.datasets.open import open_dataset
from raison.models.lora import merged
from raison.testing import tiny_hf, tiny_model

GOOD = '{"text": "a fine film", "label": "good"}'


@pytest.mark.parametrize(
    "bad",
    [
        '{"text": "x", "label": ' + "9" * 5000 + "}",
        '{"text": "x", "slots": 5}',
        '{"text": "x", "gold": [{"start": 0, "end": 1, "segment": [1]}]}',
        '{"text": "x", "gold": "' + "[" * 100_000 + '"}',
    ],
    ids=["long number", "slots", "segment", "deep gold"],
)
def test_one_odd_record_is_one_broken_record(bad, tmp_path):
    file = tmp_path / "data.jsonl"
    file.write_text(f"{GOOD}\n{bad}\n{GOOD}\n")
    read = open_dataset(str(file), skip_broken=True)
    assert len(read.examples) == 2 and len(read.broken) == 1
    with pytest.raises(InputError, match="Line 2 of"):
        open_dataset(str(file))


def test_encodings_and_levels_that_do_not_exist(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"text\nna\xefve\n")
    with pytest.raises(InputError, match="is no encoding of texts"):
        open_dataset(f"{tmp_path / 'a.csv'}(encoding=rot13)")
    (tmp_path / "a.txt").write_text("one line\n")
    with pytest.raises(InputError, match="level"):
        open_dataset(f"{tmp_path / 'a.txt'}(level=sentence)")


def test_digits_that_are_no_numbers():
    model = raison.load(lambda texts: [[0.1, 0.2]] * len(texts), labels=["a", "b"])
    with pytest.raises(InputError, match="has no output"):
        raison.explain(model, "some words", target="²")
    assert number_or_text("9" * 5000) == "9" * 5000 and number_or_text("12") == 12


def test_a_class_may_be_named_by_its_number_in_words():
    model = tiny_model("bert", "classification")
    named = raison.explain(model, "a good film", "leave_one_out", target=1, contrast="0")
    assert named.target.contrast == (0,)


@pytest.mark.parametrize("wrong", [{"lora_alpha": None}, {"lora_alpha": "x"}, {"alpha_pattern": {"(": 3}}])
def test_a_damaged_adapter_is_told(wrong, tmp_path):
    peft = pytest.importorskip("peft")
    hf, _ = tiny_hf("gpt2", "causal")
    config = peft.LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True)
    adapter = peft.get_peft_model(hf.float(), config)
    adapter.save_pretrained(tmp_path / "adapter")
    place = tmp_path / "adapter" / "adapter_config.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), **wrong}))
    with pytest.raises(ModelError, match="adapter"):
        merged(tiny_hf("gpt2", "causal")[0].float(), tmp_path / "adapter")


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
def test_a_full_disk_behind_standard_output_is_told():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "raison", "ls", "methods"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "No space left" in done.stderr


def test_offsets_behind_the_end_of_a_text_are_refused():
    """A picture of a three-word text took gigabytes when its last token ended at 200,000,000."""
    from raison.web import schemas
    from raison.web.exporting import export_response

    found = raison.explain(tiny_model("bert", "classification"), "a b c").to_dict()
    for kind in ("svg", "html"):
        assert export_response(schemas.Export(explanations=[found], kind=kind)).status_code == 200
        bad = json.loads(json.dumps(found))
        bad["encoding"]["end"][-2] = 2 * 10**8
        with pytest.raises(InputError, match="no explanations of raison"):
            export_response(schemas.Export(explanations=[bad], kind=kind))


def test_a_long_name_is_broken_in_time_that_grows_with_it():
    """Every line of a long word measured all that was left of it."""
    from raison.show.figure.typeset import FARTHEST, Sheet, Word

    measured = []

    class Counting(Sheet):
        def __init__(self):
            self.ruler = lambda text, size, weight: measured.append(len(text)) or 0.1 * len(text)

    parts = list(Counting().broken(Word("x" * 20_000, "plain"), 10, 5.0))
    assert "".join(part.text for part in parts) == "x" * 20_000 and all(len(part.text) <= 50 for part in parts)
    assert max(measured) <= FARTHEST and sum(measured) < 20_000 * 12


def test_a_file_of_something_else_among_the_results_is_damage(tmp_path):
    from typer.testing import CliRunner

    from raison.cli.app import app, assemble

    hf, tokenizer = tiny_hf("bert", "classification")
    hf.save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    (tmp_path / "c.jsonl").write_text('{"text": "a film"}\n{"text": "plain"}\n')
    run, out = CliRunner(), tmp_path / "r"
    assemble()
    made = run.invoke(
        app, ["run", "-m", str(tmp_path / "m"), "-d", str(tmp_path / "c.jsonl"), "-M", "random", "--out", str(out)]
    )
    assert made.exit_code == 0
    (shard,) = (out / "shards").iterdir()
    (cost,) = (out / "costs").iterdir()
    shard.write_bytes(cost.read_bytes())
    told = run.invoke(app, ["store", "verify", str(out)])
    assert told.exit_code == 1 and "unexpected" not in told.output and "is no record of a result" in told.output
    for words in (["store", "repair", str(out)], ["report", str(out), "--out", str(tmp_path / "x.html")]):
        told = run.invoke(app, words)
        assert "unexpected" not in told.output, (words, told.output)
    again = run.invoke(app, ["run", "--resume", "--out", str(out)])
    assert again.exit_code == 0, again.output
    assert run.invoke(app, ["store", "verify", str(out)]).exit_code == 0


def test_ray_has_devices_of_its_own():
    from raison.runs.spec import Means

    with pytest.raises(InputError, match="give gpus"):
        Means(ray="local", device="cuda")
