"""Training a rationalizer: what it learns, that it goes on to the last bit, adapters, seeds."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest
import torch

import raison
from raison.core.errors import InputError
from raison.core.records import Example
from raison.rationalizers.config import VARIANTS, LossWeights
from raison.rationalizers.evaluate import evaluate_rationalizer
from raison.rationalizers.train import train_rationalizer
from raison.testing import tiny_hf
from raison.training import fit as fitting
from raison.training.labelled_lines import read_labelled_lines
from raison.training.labelled_parts import examples_by_part
from tests.helpers.small_classifiers import reviews
from tests.helpers.small_rationalizers import (
    SMALL,
    start,
    stop_after,
)


def test_training_from_labels_alone(tmp_path):
    report = start(tmp_path / "m")
    assert report.dev.sparsity == pytest.approx(0.3, abs=0.05)
    assert report.to_dict()["what"] == "rationalizer" and len(report.history) == 3
    assert report.history[0]["score"] is None  # warm-up
    stored = json.loads((tmp_path / "m" / "training.json").read_text())
    assert stored["config"]["blocks"] == 1 and "rationale_f1" not in stored["dev"]
    model = raison.load(str(tmp_path / "m"))
    found = raison.explain(model, "a lovely film and a story")
    assert found.selected.any() and not found.selected.all()
    with pytest.raises(InputError, match="has a finished model"):
        start(tmp_path / "m")


def test_a_stopped_run_goes_on_as_if_nothing_had_happened(tmp_path, monkeypatch):
    straight = start(tmp_path / "straight")
    with monkeypatch.context() as patched, pytest.raises(fitting.TrainingStopped):
        stop_after(patched, 24)
        start(tmp_path / "broken")
    resumed = start(tmp_path / "broken")
    assert [h["loss"] if "loss" in h else h["score"] for h in resumed.history] == [
        h["loss"] if "loss" in h else h["score"] for h in straight.history
    ]
    assert resumed.dev == straight.dev


def test_an_adapter_is_small_and_loads_as_it_was_trained(tmp_path):
    hf, tokenizer = tiny_hf("bert", "classification")
    base = tmp_path / "base"
    copy.deepcopy(hf).float().save_pretrained(base)
    tokenizer.save_pretrained(base)
    config = {
        "sparsity": 0.3,
        "blocks": 1,
        "pruning": 1,
        "predictor": "whole",
        "full_text": "predictor",
    }
    data = reviews(120)
    train_rationalizer(
        base, data, out=tmp_path / "a", config=config, training=replace(SMALL, lora=2, epochs=2)
    )
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert "adapter_model.safetensors" in names and "model.safetensors" not in names
    assert (tmp_path / "a" / "adapter_model.safetensors").stat().st_size < base.joinpath(
        "model.safetensors"
    ).stat().st_size / 2
    model = raison.load(str(tmp_path / "a"))
    report = json.loads((tmp_path / "a" / "training.json").read_text())
    parts, _ = examples_by_part(data, data_dir=None, limit=None, held=0.1, seed=0)
    lines = read_labelled_lines(parts, tokenizer, ["negative", "positive"], 64)
    assert evaluate_rationalizer(model.hf, lines.parts["dev"], 0).to_dict() == pytest.approx(
        report["dev"], abs=1e-6
    )
    with pytest.raises(InputError, match="one in memory has no name"):
        start(tmp_path / "b", training=replace(SMALL, lora=2))


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_every_variant_trains(tmp_path, variant):
    config = {"sparsity": 0.3} if "gru" in variant else {"sparsity": 0.3, "full_text": "predictor"}
    if variant == "no_full_text":
        config.pop("full_text")
    config = {"width": 8, **config} if "gru" in variant else {"pruning": 1, **config}
    report = start(
        tmp_path / "m",
        variant=variant,
        config=config,
        training=replace(SMALL, epochs=2),
        data=reviews(64),
    )
    assert 0 < report.dev.sparsity < 1 and report.variant == variant
    assert raison.load(str(tmp_path / "m")).offers >= {"own", "score", "gradients"}


def test_other_weights_of_the_same_name_are_another_model(tmp_path, monkeypatch):
    hf, tokenizer = tiny_hf("bert", "classification")
    for name in ("one", "other"):
        changed = copy.deepcopy(hf).float()
        with torch.no_grad():
            changed.get_input_embeddings().weight.add_(0.1 * (name == "other"))
        changed.save_pretrained(tmp_path / name / "base")
        tokenizer.save_pretrained(tmp_path / name / "base")
    quick = replace(SMALL, epochs=2)
    go = lambda name, out, **more: train_rationalizer(  # noqa: E731
        tmp_path / name / "base", reviews(64), out=tmp_path / out, training=quick,
        config={"blocks": 1, "pruning": 1, "full_text": "predictor"}, **more,
    )  # fmt: skip
    with monkeypatch.context() as patched, pytest.raises(fitting.TrainingStopped):
        stop_after(patched, 3)
        go("one", "m")
    with pytest.raises(InputError, match="made with another model"):
        go("other", "m")
    assert go("one", "m").epochs_run == 2
    go("one", "runs", runs=2)
    with pytest.raises(InputError, match="another experiment"):
        go("other", "runs", runs=2)


def test_supervision_learns_what_people_marked(tmp_path):
    from raison.core.records import Span

    def with_gold(e: Example) -> Example:
        words, at, spans = e.text.split(" "), 0, []
        for word in words:
            if word in (
                "lovely",
                "funny",
                "warm",
                "clever",
                "moving",
                "dull",
                "stale",
                "loud",
                "empty",
                "tired",
            ):
                spans.append(Span(at, at + len(word)))
            at += len(word) + 1
        return replace(e, gold=tuple(spans))

    data = [with_gold(e) for e in reviews(300)]
    plain = replace(SMALL, epochs=8, patience=8, head_lr=3e-2, lr=3e-3)
    without = start(tmp_path / "without", data=data, training=plain)
    found = start(
        tmp_path / "with", data=data, training=replace(plain, weights=LossWeights(human=5.0))
    )
    last = [report.history[-1]["rationale_f1"] for report in (without, found)]
    assert last[1] > last[0] + 0.1, last


def test_several_seeds(tmp_path):
    report = start(tmp_path / "m", runs=2, training=replace(SMALL, epochs=2), data=reviews(64))
    assert report.seeds == (0, 1) and "deviation" in report.dev["sparsity"]


def test_a_model_in_memory_stays_the_users(tmp_path):
    hf, tokenizer = tiny_hf("bert", "classification")
    hf = copy.deepcopy(hf).float()
    before = {key: value.clone() for key, value in hf.state_dict().items()}
    pooler, attention_name = hf.bert.pooler, hf.config._attn_implementation
    config = {"blocks": 1, "pruning": 1, "predictor": "whole"}
    training = replace(SMALL, epochs=2)
    train_rationalizer(
        hf, reviews(64), out=tmp_path / "m", tokenizer=tokenizer, config=config, training=training
    )
    assert all(torch.equal(before[key], value) for key, value in hf.state_dict().items())
    assert hf.bert.pooler is pooler and hf.config._attn_implementation == attention_name


def test_a_run_of_another_experiment_is_refused(tmp_path):
    quick = replace(SMALL, epochs=2)
    start(tmp_path / "m", runs=2, training=quick, data=reviews(64))
    for other in ({"training": replace(quick, lr=1e-2)}, {"data": reviews(80)}, {"limit": 50}):
        with pytest.raises(InputError, match="another experiment"):
            start(tmp_path / "m", **{"runs": 2, "training": quick, "data": reviews(64), **other})
    again = start(tmp_path / "m", runs=2, training=quick, data=reviews(64))
    assert again.runs == 2


def test_half_checkpoints_are_trained_in_float32(tmp_path):
    hf, tokenizer = tiny_hf("bert", "classification")
    copy.deepcopy(hf).to(torch.bfloat16).save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    report = train_rationalizer(
        tmp_path / "base",
        reviews(64),
        out=tmp_path / "m",
        training=replace(SMALL, epochs=2),
        variant="whole",
    )
    assert report.config.full_text in ("predictor", "mid_cls")
    assert next(raison.load(str(tmp_path / "m")).hf.parameters()).dtype == torch.float32
