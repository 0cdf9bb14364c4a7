"""An attention classifier is a model like any other, in memory and from a folder."""

from __future__ import annotations

import json

import numpy as np
import pytest

import raison
from raison.attention_models.adapter import attention_model
from raison.attention_models.build import new_classifier
from raison.attention_models.config import ClassifierConfig
from raison.attention_models.vocabulary import words_tokenizer
from raison.attention_models.word_vectors import random_vectors
from raison.core.errors import ModelError
from raison.core.records import Example
from raison.models.protocol import Question
from raison.testing import check_model
from raison.training.labelled_lines import read_labelled_lines
from raison.training.seeds import seeded_generator
from tests.helpers.small_classifiers import CONFIGS, built


@pytest.mark.parametrize("config", CONFIGS)
def test_it_is_a_model_like_any_other(config):
    model = attention_model(built(**config), built(**config).tokenizer, "tiny")
    check_model(model)
    assert {"own", "gradients", "hidden", "score"} <= model.offers and model.removals[0] == "delete"
    found = raison.explain(model, "a lovely film and a dull ending", method="own", units="token")
    (encoding,) = model.encode([Example("a lovely film and a dull ending")])
    np.testing.assert_allclose(found.scores, model.own([encoding])[0][1:-1], atol=1e-12)
    raison.rationalize(model, "a lovely film and a dull ending")
    for name in ("integrated_gradients", "leave_one_out", "lime", "gradient_norm"):
        raison.explain(model, "a lovely film", method=name)


def test_what_the_mask_hides_does_not_exist():
    """Deleting a word is reading the text without it, also for a BiLSTM."""
    model = attention_model(built(), built().tokenizer, "tiny")
    (whole,), (less,) = (
        model.encode([Example(text)]) for text in ("a lovely very film", "a lovely film")
    )
    keep = np.ones((1, len(whole)), bool)
    keep[0, 3] = False
    target = model.resolve_targets(whole)[0][1]
    for removal in ("delete", "mask"):
        (found,) = model.score([Question(whole, target, keep)], removal=removal)
        (wanted,) = model.score([Question(less, target, np.ones((1, len(less)), bool))])
        np.testing.assert_allclose(found.value, wanted.value, atol=1e-12)


def test_pairs_and_several_classes():
    tokenizer = words_tokenizer(["a lovely film", "a dull one"])
    model = new_classifier(
        ClassifierConfig(width=8),
        tokenizer,
        ["no", "yes", "maybe"],
        random_vectors(len(tokenizer), 8, seeded_generator(1)),
        0,
    )
    model = attention_model(model, tokenizer, "tiny")
    found = raison.explain(
        model, Example("a lovely film", pair="a dull one"), method="own", units="word"
    )
    assert found.encoding.segments == ("first", "second") and found.target.text in (
        "no",
        "yes",
        "maybe",
    )
    assert found.scores.sum() == pytest.approx(1, abs=1e-6)


def test_numbers_and_accents_are_explained_as_a_whole():
    """The vocabulary writes them as one; what is shown and compared with people's marks is what stands in the text."""
    model = model_named(["a good film of 1999 cafe\u0301"])
    for text, words in (
        ("a good film of 2012 with 12345", ["a", "good", "film", "of", "2012", "with", "12345"]),
        ("cafe\u0301 2012", ["cafe\u0301", "2012"]),
        ("3 films", ["3", "films"]),
    ):
        (encoding,) = model.encode([Example(text)])
        spans = [
            (int(a), int(b)) for a, b in zip(encoding.start, encoding.end, strict=True) if a >= 0
        ]
        assert [text[a:b] for a, b in spans] == words


def model_named(texts):
    tokenizer = words_tokenizer(texts)
    vectors = random_vectors(len(tokenizer), 12, seeded_generator(0))
    hf = (
        new_classifier(ClassifierConfig(width=12), tokenizer, ["no", "yes"], vectors, 0)
        .eval()
        .requires_grad_(False)
    )
    return attention_model(hf, tokenizer, "tiny")


def test_what_is_too_long_is_cut_as_explaining_cuts_it():
    hf = built(double=False, longest=32)
    model = attention_model(hf, hf.tokenizer, "m")
    data = [
        Example("good film " * 40, "a bad one " * 5, label="negative"),
        Example("good " * 90, label="positive"),
    ]
    lines = read_labelled_lines({"dev": data}, model.tokenizer, ["negative", "positive"], 32)
    encodings = model.encode([Example(e.text, e.pair) for e in data], truncate=True)
    assert model.max_tokens == 32 and lines.counts["dev, cut"] == 2
    assert [line.ids for line in lines.parts["dev"]] == [tuple(e.ids.tolist()) for e in encodings]


def test_a_config_of_another_model_is_told_in_one_sentence(tmp_path):
    hf = built(double=False)
    hf.save_pretrained(tmp_path)
    hf.tokenizer.save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"width": ', '"width": 1'))
    with pytest.raises(
        ModelError,
        match=r"other shapes than its config.json says: take both files from one model\)",
    ):
        raison.load(str(tmp_path))


def test_a_folder_of_the_first_format_is_refused_in_one_sentence(tmp_path):
    hf = built(double=False)
    hf.save_pretrained(tmp_path)
    hf.tokenizer.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["design"] = config.pop("classifier")
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        ModelError, match="raison 0.1 wrote it in another format: train the classifier again"
    ):
        raison.load(tmp_path)
