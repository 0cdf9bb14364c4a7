"""P0 Figure 4: a word alone at a position, against passes written out by hand; and the recipe of its models."""

from __future__ import annotations

import io
import json
import random
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

import raison
from raison.core.errors import InputError
from raison.core.evaluation import Evaluation
from raison.studies.repetition import frequent_words, repetition_of_word
from raison.studies.reproduce.experiment import Trial, experiments
from raison.studies.reproduce.experiments.repetition import PLACES
from raison.studies.reproduce.run import Outcome
from raison.studies.reproduce.suite import Run, Suite, suites

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
    config = GPT2Config(vocab_size=len(names), n_positions=16, n_embd=32, n_layer=2, n_head=2, initializer_range=0.3)
    hf = GPT2LMHeadModel(config).eval()
    return raison.load(hf, tokenizer)


@pytest.fixture
def text(tmp_path) -> Path:
    draw = random.Random(0)
    words = draw.choices((*WORDS, "river"), weights=(30, 20, 9, 8, 7, 6, 5, 4, 25), k=600)
    (tmp_path / "text.txt").write_text(" ".join(words) + " .\n", encoding="utf-8")
    return tmp_path / "text.txt"


def trial_of(model, text, methods=METHODS, count=4, **settings) -> Trial:
    run = Run("a run", "tiny", f"{text}(level=file)", split=None, settings={"positions": SIZE, "blocks": 3, **settings})
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
    return [np.array(column, dtype=float) for part in (alone, beside) for column in zip(*part, strict=True)]


def test_a_word_alone_is_a_pass_with_that_word_at_its_position(model):
    found = repetition_of_word(model, " dog", " moon", SIZE)
    expected = literal(model, "dog", "moon")
    for ours, theirs in zip((found.alone, found.alone_top, found.beside, found.beside_top), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert found.alone.std() > 0.05  # learned positions: where it stands matters


def test_numbers_of_the_experiment(model, text):
    evaluation = experiments["repetition"](trial_of(model, text))
    words = [seen.id for seen in evaluation.texts]
    assert words == ["the", "dog", "of", "moon"]
    expected = [literal(model, word, other) for word, other in zip(words, [*words[1:], words[0]], strict=True)]
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
        np.testing.assert_allclose(curves["mean of 4 words"], np.mean([each[part] for each in expected], 0), atol=1e-6)
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


# -- the recipe -----------------------------------------------------------------------------------------------


@pytest.fixture
def recipe(open_recipe):
    module = open_recipe("learned_positions")
    state = torch.get_rng_state()
    yield module
    torch.set_rng_state(state)


@pytest.fixture
def data(tmp_path) -> Path:
    """Reviews and articles of a few words; one article stands in the test part too, in other letters."""
    draw = random.Random(0)
    sentence = lambda: " ".join(draw.choice(WORDS) for _ in range(40))  # noqa: E731
    (tmp_path / "imdb").mkdir()
    with tarfile.open(tmp_path / "imdb" / "aclImdb_subset10000.tar.gz", "w:gz") as archive:
        for part in ("train", "test"):
            for k in range(24):
                content = f"{sentence()}<br /><br />{sentence()}".encode()
                info = tarfile.TarInfo(f"aclImdb/{part}/{('neg', 'pos')[k % 2]}/{k}_{(2, 9)[k % 2]}.txt")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    articles = [sentence() for _ in range(12)]
    (tmp_path / "wikitext2").mkdir()
    (tmp_path / "wikitext2" / "valid.txt").write_text("\n".join([*articles, "Known to all"]) + "\n", encoding="utf-8")
    (tmp_path / "wikitext2" / "test.txt").write_text(f"{sentence()}\nknown , to ALL !\n", encoding="utf-8")
    return tmp_path


def test_what_is_said_again(recipe):
    words = [str(k) for k in range(50)]
    made = recipe.repeated(" ".join(words), np.random.default_rng(0)).split()
    assert len(made) == recipe.TIMES * len(words)
    assert list(dict.fromkeys(made)) == words
    lengths = []
    while made:
        few = next(k for k in range(1, 20) if made[k : 2 * k] == made[:k])
        assert made[: recipe.TIMES * few] == made[:few] * recipe.TIMES
        made = made[recipe.TIMES * few :]
        lengths.append(few)
    assert all(recipe.FEWEST <= few <= recipe.MOST for few in lengths[:-1]) and len(set(lengths)) > 2


def test_texts_of_the_recipe(recipe, data):
    plain, left_out = recipe.texts(data, 99, 0.0, 0)
    assert left_out == 1 and len(plain) == 24 + 12
    assert not any("br" in example.text or "Known" in example.text for example in plain)
    again, _ = recipe.texts(data, 99, 1.0, 0)
    assert [len(example.text.split()) for example in again] == [recipe.TIMES * 80] * 24 + [40] * 12
    assert len(recipe.texts(data, 5, 1.0, 0)[0]) == 5 + 12


def test_two_trainings_of_one_beginning(recipe, data, capsys):
    words = ["--data", str(data), "--steps", "6", "--batch", "4", "--length", "16", "--pieces", "280", "--width", "16"]
    words += ["--heads", "2", "--layers", "2"]
    reports = {}
    for keep in ("none", "uniform_length"):
        out = data / keep
        assert recipe.main([*words, "--out", str(out), "--keep", keep]) == 0
        assert "without 1 that stand in wikitext2 test" in capsys.readouterr().out
        reports[keep] = json.loads((out / "training.json").read_text(encoding="utf-8"))
        trained = AutoModelForCausalLM.from_pretrained(out)
        assert trained.config.model_type == "gpt2" and trained.config.n_positions == 16
        tokenizer = AutoTokenizer.from_pretrained(out)
        assert tokenizer.convert_ids_to_tokens(tokenizer("dog the dog")["input_ids"])[-2:] == ["Ġthe", "Ġdog"]
    standard, compatible = reports["none"], reports["uniform_length"]
    assert standard["history"][0] == compatible["history"][0]  # the same weights and text before the first step
    assert standard["counts"] == compatible["counts"] and standard["losses"] != compatible["losses"]
    assert standard["losses"][-1] < standard["losses"][0]


def test_a_recipe_that_can_not_be(recipe, data, capsys):
    words = ["--data", str(data), "--out", str(data / "out")]
    assert recipe.main([*words, "--width", "10", "--heads", "4"]) != 0
    assert "can't be shared by 4 heads" in capsys.readouterr().err
    assert recipe.main([*words, "--pieces", "100"]) != 0
    assert "no room for all bytes" in capsys.readouterr().err
    assert recipe.main([*words, "--again", "2"]) != 0
    assert "again" in capsys.readouterr().err


def test_all_runs_are_drawn_in_one_picture(tmp_path):
    from raison.cli.reproduce import curves_of_all, drawn

    pytest.importorskip("matplotlib")
    suite = Suite("P0-figure4", "a title", "a paper", {}, (), figures=("repetition_curve",), together=True)
    curves = {"repetition_curve": {"the": [0.1, 0.2]}}
    evaluation = Evaluation("m", "d", ("a",), (), (), (), curves=curves, settings={"seed": 0})
    outcomes = [Outcome(Run(name, "m", "d"), evaluation) for name in ("one", "two")]
    assert list(curves_of_all(outcomes)["repetition_curve"]) == ["one: the", "two: the"]
    assert drawn(tmp_path / "page.md", suite, outcomes) == {"two": "figures/P0-figure4.svg"}
    assert (tmp_path / "figures" / "P0-figure4.svg").read_text().count("<svg") == 1
    assert drawn(tmp_path / "page.md", suite, []) == {}
