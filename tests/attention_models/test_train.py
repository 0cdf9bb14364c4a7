"""Training a classifier: what it learns, that it repeats itself to the last bit, what it refuses."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

import raison
from raison.attention_models.config import ClassifierConfig
from raison.attention_models.evaluate import evaluate_classifier
from raison.attention_models.module import AttentionClassifier, StoredClassifierConfig
from raison.attention_models.train import train_classifier
from raison.core.errors import InputError
from raison.core.records import Example
from raison.training.labelled_lines import read_labelled_lines
from tests.helpers.paths import ROOT
from tests.helpers.small_classifiers import SMALL, built, reviews


@pytest.mark.parametrize("training", [{}, {"tying": 0.1}, {"mlm": 0.3, "mlm_share": 0.3}])
def test_it_learns_the_words_that_decide(tmp_path, training):
    report = train_classifier(
        reviews(400), out=tmp_path, config={"width": 16}, training={**SMALL, **training}
    )
    assert report.dev.accuracy > 0.95
    model = raison.load(tmp_path)
    assert model.labels == ("negative", "positive") and "own" in model.offers
    told = json.loads((tmp_path / "training.json").read_text())
    assert told["dev"]["accuracy"] == report.dev.accuracy and told["frozen_embeddings"] == (
        "mlm" in training
    )
    assert not (tmp_path / "checkpoint.pt").exists() and not (tmp_path / "best.pt").exists()
    fresh_texts = reviews(100, seed=9)
    said = [p.target.text for p in model.predict(model.encode(fresh_texts))]
    assert np.mean([s == e.label for s, e in zip(said, fresh_texts, strict=True)]) > 0.95


def test_the_same_seed_gives_the_same_model_and_several_are_told(tmp_path):
    first = train_classifier(
        reviews(80),
        out=tmp_path / "a",
        config={"width": 8},
        training={**SMALL, "epochs": 2},
        seed=1,
    )
    both = train_classifier(
        reviews(80),
        out=tmp_path / "b",
        config={"width": 8},
        training={**SMALL, "epochs": 2},
        runs=2,
    )
    second = json.loads((tmp_path / "b" / "run-1" / "training.json").read_text())
    assert tuple(second["history"]) == first.history and both.seeds == (0, 1)
    values = [
        json.loads((tmp_path / "b" / f"run-{k}" / "training.json").read_text())["dev"]["f1"]
        for k in (0, 1)
    ]
    assert both.dev["f1"]["mean"] == pytest.approx(np.mean(values))
    assert both.dev["f1"]["deviation"] == pytest.approx(np.std(values, ddof=1))
    with pytest.raises(InputError, match="holds a run of another experiment"):
        train_classifier(
            reviews(80),
            out=tmp_path / "b",
            config={"width": 8},
            training={**SMALL, "epochs": 3},
            runs=2,
        )
    for other in (
        {"config": {"width": 8, "attention": "dot"}},
        {"training": {**SMALL, "epochs": 2, "patience": 9}},
    ):
        same = {"config": {"width": 8}, "training": {**SMALL, "epochs": 2}, **other}
        with pytest.raises(InputError, match="holds a run of another experiment"):
            train_classifier(reviews(80), out=tmp_path / "b", runs=2, **same)
    with pytest.raises(InputError, match="holds a run of another experiment"):
        train_classifier(
            reviews(80),
            out=tmp_path / "b",
            config={"width": 8},
            training={**SMALL, "epochs": 2},
            runs=2,
            limit=70,
        )
    one, two = (raison.load(tmp_path / place).hf.state_dict() for place in ("a", "b/run-1"))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_the_best_epoch_is_kept_and_training_ends_when_it_gets_no_better(tmp_path):
    training = {**SMALL, "epochs": 40, "patience": 3}
    report = train_classifier(reviews(200), out=tmp_path, config={"width": 16}, training=training)
    values = [
        (one["f1"], -round(one["loss"], 2)) for one in report.history
    ]  # among equal scores the least loss
    assert report.epochs_run < 40 and len(values) - 1 - values.index(max(values)) == 3
    assert (report.dev.f1, -round(report.dev.loss, 2)) == max(values)
    assert len({score for score, _ in values}) < len(values)  # there are equals


def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path):
    code = """
import sys; sys.path.insert(0, {root!r})
from tests.helpers.small_classifiers import reviews, SMALL
from raison.attention_models import train
from raison.training import fit_settings
import functools
train.FitSettings = functools.partial(fit_settings.FitSettings, save_every=0.0)
training = {{**SMALL, "epochs": 30, "patience": 30}}
train.train_classifier(reviews(300), out={out!r}, config={{"width": 16}}, training=training)
"""

    script = code.format(root=str(ROOT), out=str(tmp_path / "killed"))
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(600):
        if (tmp_path / "killed" / "checkpoint.pt").exists() or process.poll() is not None:
            break
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / "training.json").exists()
    training = {**SMALL, "epochs": 30, "patience": 30}
    report = train_classifier(
        reviews(300), out=tmp_path / "killed", config={"width": 16}, training=training
    )
    whole = train_classifier(
        reviews(300), out=tmp_path / "whole", config={"width": 16}, training=training
    )
    assert report.history == whole.history and report.dev == whole.dev


def test_the_best_epoch_of_another_run_is_not_taken_for_this_one(tmp_path):
    from raison.training.training_folder import BEST

    training = {**SMALL, "epochs": 1, "lr": 1e-6}
    clean = train_classifier(
        reviews(120), out=tmp_path / "a", config={"width": 8}, training=training
    )
    (tmp_path / "b").mkdir()
    torch.save(
        {"f1": 2.0, "weights": {}, "settings": {}}, tmp_path / "b" / BEST
    )  # of a run that was killed early
    assert (
        train_classifier(
            reviews(120), out=tmp_path / "b", config={"width": 8}, training=training
        ).dev
        == clean.dev
    )
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "checkpoint.pt").write_bytes(b"")
    torch.save(
        {"f1": 2.0, "weights": {}, "settings": {}}, tmp_path / "c" / BEST
    )  # as another version wrote it
    with pytest.raises(
        InputError, match=r"best.pt is damaged or of another version: delete it and checkpoint.pt"
    ):
        train_classifier(reviews(120), out=tmp_path / "c", config={"width": 8}, training=training)


def test_bad_input_is_told_in_one_sentence(tmp_path):
    data, out = reviews(60), tmp_path / "out"
    with pytest.raises(InputError, match="All training texts have the label 'x'"):
        train_classifier([Example(e.text, label="x") for e in data], out=out)
    with pytest.raises(InputError, match="stand in its development or test part as well"):
        train_classifier([data[0]] * 40, out=out)
    with pytest.raises(InputError, match="1 texts have no label: name their column"):
        train_classifier([*data, Example("none")], out=out)
    with pytest.raises(InputError, match="fewer than a batch of 32"):
        train_classifier(reviews(20), out=out)
    with pytest.raises(InputError, match="has no setting 'widht'. Did you mean 'width'"):
        train_classifier(data, out=out, config={"widht": 3})
    with pytest.raises(InputError, match="λ of sparsegen"):
        train_classifier(data, out=out, config={"normalizer": "sparsegen(lam=1.5)"})
    with pytest.raises(InputError, match="mlm tells words by the frozen embeddings"):
        train_classifier(data, out=out, training={"mlm": 1.0, "freeze": False})
    with pytest.raises(InputError, match="is no file of word vectors and no model here"):
        train_classifier(data, out=out, training={"embeddings": "no-such-file.txt"})
    with pytest.raises(InputError, match="has no part to train on"):
        train_classifier("lambada_test", out=out)
    with pytest.raises(InputError, match="which no training text has"):
        from raison.training.labelled_parts import labels_of_parts

        labels_of_parts({"train": data, "dev": [Example("x", label="neutral")]})


def test_measuring_does_not_depend_on_batches():
    model = built(double=False)
    data = reviews(50)
    rows = read_labelled_lines({"dev": data}, model.tokenizer, ["negative", "positive"], 64).parts[
        "dev"
    ]
    few, many = (evaluate_classifier(model, rows, batch).to_dict() for batch in (7, 50))
    assert few == pytest.approx(many, rel=1e-5)
    config = StoredClassifierConfig(ClassifierConfig(width=4).to_dict(), 9)
    assert math.isfinite(
        float(AttentionClassifier(config)(torch.tensor([[2, 7, 3]])).logits.detach().sum())
    )
