"""What a rationalizer may be trained on: pairs, numbers, classes of one text; and what is refused."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import InputError, ModelError, Unsupported
from raison.core.records import Example
from raison.rationalizers.report import RegressionQuality
from raison.rationalizers.train import train_rationalizer
from raison.show.explanation_sentences import headline_phrases
from raison.testing import tiny_hf
from raison.training.labelled_parts import examples_by_part
from tests.helpers.small_classifiers import reviews
from tests.helpers.small_rationalizers import (
    SMALL,
    start,
)


def test_pairs_and_regression(tmp_path):
    rng = np.random.default_rng(0)
    pairs = [replace(e, pair=reviews(1, seed=int(rng.integers(1000)))[0].text) for e in reviews(96)]
    config = {
        "sparsity": (0.2, 0.5),
        "blocks": 1,
        "pruning": 1,
        "predictor": "whole",
        "full_text": "predictor",
    }
    report = start(tmp_path / "pairs", data=pairs, config=config, training=replace(SMALL, epochs=2))
    assert report.config.sparsity == (0.2, 0.5)
    model = raison.load(str(tmp_path / "pairs"))
    encodings = model.encode([Example(e.text, e.pair) for e in pairs])
    kept = np.zeros(2)
    every = np.zeros(2)
    for encoding, own in zip(encodings, model.selected(encodings), strict=True):
        for side in (0, 1):
            inside = (encoding.segment == side) & (encoding.start >= 0)
            kept[side] += own[inside].sum()
            every[side] += inside.sum()
    assert kept / every == pytest.approx([0.2, 0.5], abs=0.1)
    for part in (
        report.dev.to_dict(),
        report.history[-1],
    ):  # each text's own share, not only both together
        assert [part["sparsity_of_text_1"], part["sparsity_of_text_2"]] == pytest.approx(
            [0.2, 0.5], abs=0.15
        )
    scored = [replace(e, label=str(len(e.text.split()) / 10)) for e in reviews(96)]
    found = start(
        tmp_path / "numbers", data=scored, regression=True, training=replace(SMALL, epochs=2)
    )
    assert isinstance(found.dev.from_rationale, RegressionQuality)
    said = raison.explain(raison.load(str(tmp_path / "numbers")), "a lovely film")
    assert said.selected.any()


def test_a_regression_learns_numbers_of_any_size(tmp_path):
    """Shares of five stars, marks up to 90 and thousandths are learned alike, and told in their own units."""
    shares = []
    for middle, spread in ((0.0, 1.0), (75.0, 15.0), (1e-3, 1e-4)):
        data = [
            replace(e, label=str(middle + spread * (1 if e.label == "positive" else -1)))
            for e in reviews(200)
        ]
        place = tmp_path / str(middle)
        report = start(
            place, data=data, regression=True, training=replace(SMALL, epochs=5, patience=5)
        )
        dev = report.dev.from_rationale
        assert dev.error_of_the_mean == pytest.approx(spread**2, rel=0.1) and not report.troubles
        shares.append(dev.error / dev.error_of_the_mean)
        found = raison.explain(raison.load(str(place)), data[0].text)
        said = found.prediction.value
        assert abs(said - middle) < 2 * spread
        assert headline_phrases(found) == [f"value {said:.4g}"]
    assert shares[0] < 0.95 and shares == pytest.approx([shares[0]] * 3, rel=1e-3)


def test_a_file_is_no_encoder(tmp_path):
    (tmp_path / "words.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelError, match="is a file: name the folder of an encoder"):
        train_rationalizer(tmp_path / "words.gguf", reviews(64), out=tmp_path / "m")


def test_a_regression_of_one_number_is_refused(tmp_path):
    with pytest.raises(InputError, match="the number 3: a regression needs different ones"):
        start(tmp_path / "m", data=[replace(e, label="3") for e in reviews(64)], regression=True)


def test_a_class_of_one_text_stays_in_training(tmp_path):
    data = [*reviews(60), *(replace(e, label=f"rare{k}") for k, e in enumerate(reviews(5, seed=9)))]
    for seed in range(12):
        parts, _ = examples_by_part(data, data_dir=None, limit=None, held=0.2, seed=seed)
        assert {e.label for e in parts["train"]} == {e.label for e in data}
        assert len(parts["dev"]) >= 8
    with pytest.raises(InputError, match="no class has two"):
        examples_by_part(
            [replace(e, label=str(k)) for k, e in enumerate(reviews(9))],
            data_dir=None,
            limit=None,
            held=0.2,
            seed=0,
        )


def test_damaged_weights_and_configs_are_told_in_a_sentence(tmp_path):
    hf, tokenizer = tiny_hf("bert", "classification")
    broken = copy.deepcopy(hf).float()
    with torch.no_grad():
        next(iter(broken.bert.encoder.parameters()))[0] = float("nan")
    with pytest.raises(ModelError, match="hold NaN or infinite numbers"):
        train_rationalizer(broken, reviews(64), out=tmp_path / "n", tokenizer=tokenizer)
    start(tmp_path / "m", training=replace(SMALL, epochs=2), data=reviews(64))
    with pytest.raises(Unsupported, match="'m' is a rationalizer already"):
        train_rationalizer(str(tmp_path / "m"), reviews(64), out=tmp_path / "again")
    path = tmp_path / "m" / "config.json"
    config = json.loads(path.read_text())
    for key, value in (("base", 3), ("special_ids", 3), ("special_ids", [])):
        path.write_text(json.dumps({**config, key: value}))
        with pytest.raises(ModelError):
            raison.load(tmp_path / "m")


def test_labels_of_a_regression_are_numbers(tmp_path):
    with pytest.raises(InputError, match="is no number: a regression needs one|is no number"):
        start(tmp_path / "m", data=reviews(60), regression=True)
