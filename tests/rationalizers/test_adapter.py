"""A rationalizer is a model like any other, in memory, from a folder and from the catalog."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import ModelError, Unsupported
from raison.core.records import Example
from raison.models.protocol import Question
from raison.rationalizers.adapter import rationalizer_model
from raison.rationalizers.batching import special_as_unknown
from raison.rationalizers.calibration import calibrate_selector
from raison.testing import check_model
from raison.testing.precision import Float64
from raison.training.labelled_lines import read_labelled_lines
from tests.helpers.small_classifiers import reviews
from tests.helpers.small_rationalizers import (
    ENCODERS,
    TEXTS,
    batch_of,
    built,
)


@pytest.mark.parametrize("family", ENCODERS)
def test_a_rationalizer_is_a_model_like_any_other(family):
    hf, tokenizer = built(family, predictor="whole")
    with Float64():
        model = rationalizer_model(hf, tokenizer, "tiny")
        check_model(model)
        check_selection(model, hf)


def check_selection(model, hf):
    found = raison.explain(model, TEXTS[0])
    assert found.method == "own" and found.selected is not None
    (encoding,) = model.encode([Example(TEXTS[0])])
    (kept,) = model.selected([encoding])
    assert found.selected.tolist() == [
        bool(kept[found.units.of == u].any()) for u in range(len(found.units))
    ]
    assert all(
        (score > 0) == chosen for score, chosen in zip(found.scores, found.selected, strict=True)
    )
    assert "attention" not in model.offers and {"own", "gradients", "score"} <= model.offers
    ids = torch.tensor(encoding.ids)[None]
    with torch.no_grad():
        assert hf(ids).rationale[0].bool().tolist() == kept.tolist()
    other = model.labels[1 - model.predict([encoding])[0].target.ids[0]]
    greedy = raison.rationalize(
        model, TEXTS[0], "greedy", target=other, sufficient="probability(tau=0.5)"
    )
    assert greedy.certificate


def test_removing_what_was_not_read_by_the_predictor_alone_changes_nothing():
    """Where the generator's choice stays, so does the answer: removals hide from both."""
    hf, tokenizer = built("bert", predictor="whole")
    model = rationalizer_model(hf, tokenizer, "tiny")
    (encoding,) = model.encode([Example(TEXTS[0])])
    (prediction,) = model.predict([encoding])
    keep = np.ones((1, len(encoding)), bool)
    keep[0, 3] = False
    (masked,) = model.score([Question(encoding, prediction.target, keep)], removal="mask")
    ids = torch.tensor(encoding.ids)[None]
    there = torch.tensor(keep)
    with torch.no_grad():
        literal = hf(ids, there).logits[0, prediction.target.ids[0]]
    assert float(np.ravel(masked.value)[0]) == pytest.approx(float(literal), abs=1e-9)


@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize(
    "method", ["integrated_gradients(steps=64)", "deeplift", "smooth_grad", "gradient_shap"]
)
def test_methods_that_move_embeddings_hold_the_choice(family, method):
    """A choice made anew on the way would make the answer jump: sums would not be f(text) − f(baseline)."""
    hf, tokenizer = built(family, predictor="whole")
    with Float64():
        model = rationalizer_model(hf, tokenizer, "tiny")
        (encoding,) = model.encode([Example(TEXTS[0])])
        calibrate_selector(hf, lambda: [{"input_ids": torch.tensor(encoding.ids)[None]}])
        found = raison.explain(model, TEXTS[0], method, units="token")
        (kept,) = model.selected([encoding])
    inside = np.array([kept[found.units.of == u].any() for u in range(len(found.units))])
    assert 0 < inside.sum() < len(inside)
    assert np.all(found.scores[~inside] == 0) and np.all(found.scores[inside] != 0)
    if "completeness_gap" in found.diagnostics:
        assert abs(found.diagnostics["completeness_gap"]) < 0.01


@pytest.mark.parametrize("hide", ["attention", "zero"])
@pytest.mark.parametrize("graph", [False, True], ids=["answer", "gradients"])
def test_padding_in_front_changes_nothing(hide, graph):
    model, tokenizer = built("bert", hide=hide, read="first", full_text="predictor")
    inputs = batch_of(tokenizer, TEXTS[1:2])
    size = inputs["input_ids"].shape[1]
    room = torch.full((1, 3), tokenizer.pad_token_id)
    ids = torch.cat([room, inputs["input_ids"]], 1)
    there = torch.cat([torch.zeros_like(room), inputs["attention_mask"]], 1)
    places = torch.cat([torch.zeros_like(room), torch.arange(size)[None]], 1)
    with torch.set_grad_enabled(graph):
        plain = model(**inputs, full=True)
        moved = model(ids, there, position_ids=places, full=True)
    torch.testing.assert_close(moved.logits, plain.logits, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(moved.full_logits, plain.full_logits, rtol=1e-9, atol=1e-9)


def test_odds_are_of_all_pruning_blocks():
    hf, tokenizer = built("bert", predictor="whole", blocks=2, pruning=2)
    model = rationalizer_model(hf, tokenizer, "tiny")
    (encoding,) = model.encode([Example(TEXTS[0])])
    (choice,) = model.selections([encoding])
    with torch.no_grad():
        told = hf(torch.tensor(encoding.ids)[None])
    first, second = (1 / (1 + np.exp(-margin[0].numpy())) for margin in told.margins)
    np.testing.assert_allclose(
        choice.probabilities, first * second * told.real[0].numpy(), atol=1e-9
    )


def test_a_typed_special_token_is_an_unknown_word():
    hf, tokenizer = built("bert", predictor="whole")
    with Float64():
        model = rationalizer_model(hf, tokenizer, "tiny")
    (typed,) = model.encode([Example("A dull [SEP] story with [CLS] actors")])
    (plain,) = model.encode([Example("A dull story")])
    special = np.isin(typed.ids, hf.config.special_ids)
    assert special.sum() == np.isin(plain.ids, hf.config.special_ids).sum() == 2
    assert (typed.ids == tokenizer.unk_token_id).sum() == 2
    rows = read_labelled_lines(
        {"train": [Example("A dull [SEP] story with [CLS] actors", label="x")]}, tokenizer, ["x"], 64,
        lambda pieces: special_as_unknown(pieces.ids, pieces.start, hf.config.special_ids, tokenizer),
    )  # fmt: skip
    assert rows.parts["train"][0].ids == tuple(
        typed.ids.tolist()
    )  # and it learns from what it will read


def test_padding_in_the_place_of_a_word_is_no_word():
    hf, tokenizer = built("bert", predictor="whole")
    with Float64():
        model = rationalizer_model(hf, tokenizer, "tiny")
        (encoding,) = model.encode([Example(TEXTS[0])])
        (prediction,) = model.predict([encoding])
        keep = np.ones((1, len(encoding)), bool)
        keep[0, 3:6] = False
        found = {
            removal: float(
                np.ravel(
                    model.score([Question(encoding, prediction.target, keep)], removal=removal)[
                        0
                    ].value
                )[0]
            )
            for removal in ("mask", "pad_token")
        }
    assert found["pad_token"] == pytest.approx(found["mask"], abs=1e-9)


def test_the_catalog_may_hold_one(tmp_path, monkeypatch):
    """A name of the catalog whose folder a loader owns; who wants a plain model is told so."""
    from raison.models import catalog
    from raison.models.load_options import LoadOptions
    from raison.models.pretrained import open_checkpoint
    from raison.studies.audit.run_audit import audit

    model, tokenizer = built()
    model.float().save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    catalog.catalog_entries()
    monkeypatch.setattr(catalog, "_entries", dict(catalog._entries))
    catalog.register_catalog_folder("chooser", "Selects.", "Apache-2.0", 1, tmp_path / "m")
    catalog.register_catalog_folder("lost", "Is not there.", "Apache-2.0", 1, tmp_path / "none")
    found = raison.load("chooser")
    assert found.name == "chooser" and "own" in found.offers and "chooser" in raison.ls("models")
    assert raison.explain(found, TEXTS[0]).model == "chooser"
    with pytest.raises(Unsupported, match="chooser has no attention that could be audited"):
        audit(found, reviews(8))
    with pytest.raises(ModelError, match="explains itself and no plain one"):
        open_checkpoint("chooser", LoadOptions())
    with pytest.raises(ModelError, match="reinstall raison"):
        raison.load("lost")


def test_a_folder_of_the_first_format_is_refused_in_one_sentence(tmp_path):
    model, tokenizer = built()
    model.float().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["frame"] = config.pop("rationalizer")
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        ModelError, match="raison 0.1 wrote it in another format: train the rationalizer again"
    ):
        raison.load(tmp_path)
