"""P0 Figure 4: a word alone at a position, against passes written out by hand."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import raison
from raison.core.errors import InputError
from raison.studies.reproduce.experiment import Trial, experiments
from raison.studies.reproduce.experiments.repeated_words import PLACES
from raison.studies.reproduce.suite import SuiteRun, suites
from raison.studies.word_repetition import frequent_words, repetition_of_word

WORDS = ("the", "dog", "of", "moon", "and", "a", "cat", "sun")
METHODS = {"at first": "first", "later": "later", "beside": "beside"}
SIZE = 9


@pytest.fixture(scope="module")
def model():
    """A tiny GPT-2 with learned positions that reads words one by one; "river" is two tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    names = ["[UNK]", "[PAD]", *WORDS, "ri", "##ver", "."]
    core = Tokenizer(models.WordPiece({name: k for k, name in enumerate(names)}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]", pad_token="[PAD]")
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=len(names), n_positions=16, n_embd=32, n_layer=2, n_head=2, initializer_range=0.3
    )
    hf = GPT2LMHeadModel(config).eval()
    return raison.load(hf, tokenizer)


@pytest.fixture
def text(tmp_path) -> Path:
    draw = random.Random(0)
    words = draw.choices((*WORDS, "river"), weights=(30, 20, 9, 8, 7, 6, 5, 4, 25), k=600)
    (tmp_path / "text.txt").write_text(" ".join(words) + " .\n", encoding="utf-8")
    return tmp_path / "text.txt"


def trial_of(model, text, methods=METHODS, count=4, **settings) -> Trial:
    run = SuiteRun(
        "a run",
        "tiny",
        f"{text}(level=file)",
        split=None,
        settings={"positions": SIZE, "blocks": 3, **settings},
    )
    return Trial(model, methods, run, count)


@torch.no_grad()
def said(model, words, positions) -> tuple[float, bool]:
    """Probability of the last word again, and whether it is the first choice, in a pass that holds these words only."""
    ids = [model.tokenizer.convert_tokens_to_ids(word) for word in words]
    given = {"input_ids": torch.tensor([ids]), "position_ids": torch.tensor([positions])}
    logits = model.hf(**given, attention_mask=torch.ones(1, len(ids))).logits[0, -1].double()
    return float(logits.softmax(-1)[ids[-1]]), int(logits.argmax()) == ids[-1]


def literal(model, word, other):
    alone = [said(model, [word], [t]) for t in range(SIZE - 1)]
    beside = [said(model, [other, word], [0, t]) for t in range(1, SIZE - 1)]
    return [
        np.array(column, dtype=float)
        for part in (alone, beside)
        for column in zip(*part, strict=True)
    ]


def test_a_word_alone_is_a_pass_with_that_word_at_its_position(model):
    found = repetition_of_word(model, " dog", " moon", SIZE)
    expected = literal(model, "dog", "moon")
    for ours, theirs in zip(
        (found.alone, found.alone_top, found.beside, found.beside_top), expected, strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert found.alone.std() > 0.05  # learned positions: where it stands matters


def test_numbers_of_the_experiment(model, text):
    evaluation = experiments["repetition"](trial_of(model, text))
    words = [seen.id for seen in evaluation.texts]
    assert words == ["the", "dog", "of", "moon"]
    expected = [
        literal(model, word, other)
        for word, other in zip(words, [*words[1:], words[0]], strict=True)
    ]
    for key, shift in (("repeats", 0), ("top", 1)):
        at_first = [each[shift][0] for each in expected]
        later = [each[shift][1:].mean() for each in expected]
        beside = [each[2 + shift].mean() for each in expected]
        for title, values in zip(METHODS, (at_first, later, beside), strict=True):
            np.testing.assert_allclose(evaluation.cell(title, key).each, values, atol=1e-6)
    assert 0 < evaluation.cell("later", "top").value < 1  # a case that could go wrong
    for key, part in (("repetition_curve", 0), ("distance_curve", 2)):
        curves = evaluation.curves[key]
        np.testing.assert_allclose(curves["the"], expected[0][part], atol=1e-6)
        np.testing.assert_allclose(
            curves["mean of 4 words"], np.mean([each[part] for each in expected], 0), atol=1e-6
        )
    assert any("Perplexity" in note for note in evaluation.notes)


def test_only_words_that_are_one_token_and_most_frequent_first(model):
    texts = ["the river river river dog dog dog the . . . the the moon 7 7 7 7 7 7 ."]
    assert frequent_words(model, texts, 5) == [" the", " dog", " moon"]
    assert frequent_words(model, texts, 2) == [" the", " dog"]
    assert frequent_words(model, ["river . river . 7"], 5) == []


def test_what_can_not_be_asked(model, text):
    with pytest.raises(InputError, match="A word stands first, later, beside, not anywhere"):
        experiments["repetition"](trial_of(model, text, {"x": "anywhere"}))
    with pytest.raises(InputError, match="positions"):
        experiments["repetition"](trial_of(model, text, positions=2))


def test_the_suite_fits_the_experiment():
    suite = suites()["P0-figure4"]
    assert set(suite.methods.values()) == set(PLACES)
    runs, columns = {run.name for run in suite.runs}, {"repeats", "top"}
    for claim in suite.claims:
        assert {claim.first, claim.second} <= set(suite.methods) and claim.key in columns
    for claim in suite.across:
        for side in (claim.first, claim.second):
            assert side.run in runs and side.method in suite.methods
        assert claim.key in columns
