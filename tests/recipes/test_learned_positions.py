"""The recipe of the models of P0 Figure 4, on a few texts."""

from __future__ import annotations

import io
import json
import random
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

WORDS = ("the", "dog", "of", "moon", "and", "a", "cat", "sun")


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
                info = tarfile.TarInfo(
                    f"aclImdb/{part}/{('neg', 'pos')[k % 2]}/{k}_{(2, 9)[k % 2]}.txt"
                )
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    articles = [sentence() for _ in range(12)]
    (tmp_path / "wikitext2").mkdir()
    (tmp_path / "wikitext2" / "valid.txt").write_text(
        "\n".join([*articles, "Known to all"]) + "\n", encoding="utf-8"
    )
    (tmp_path / "wikitext2" / "test.txt").write_text(
        f"{sentence()}\nknown , to ALL !\n", encoding="utf-8"
    )
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
    assert (
        all(recipe.FEWEST <= few <= recipe.MOST for few in lengths[:-1]) and len(set(lengths)) > 2
    )


def test_texts_of_the_recipe(recipe, data):
    plain, left_out = recipe.texts(data, 99, 0.0, 0)
    assert left_out == 1 and len(plain) == 24 + 12
    assert not any("br" in example.text or "Known" in example.text for example in plain)
    again, _ = recipe.texts(data, 99, 1.0, 0)
    assert [len(example.text.split()) for example in again] == [recipe.TIMES * 80] * 24 + [40] * 12
    assert len(recipe.texts(data, 5, 1.0, 0)[0]) == 5 + 12


def test_two_trainings_of_one_beginning(recipe, data, capsys):
    words = [
        "--data",
        str(data),
        "--steps",
        "6",
        "--batch",
        "4",
        "--length",
        "16",
        "--pieces",
        "280",
        "--width",
        "16",
    ]
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
        assert tokenizer.convert_ids_to_tokens(tokenizer("dog the dog")["input_ids"])[-2:] == [
            "Ġthe",
            "Ġdog",
        ]
    standard, compatible = reports["none"], reports["uniform_length"]
    assert (
        standard["history"][0] == compatible["history"][0]
    )  # the same weights and text before the first step
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
