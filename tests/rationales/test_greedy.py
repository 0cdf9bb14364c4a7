"""Greedy rationalization is the published algorithm, token by token."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import raison
from raison.models.protocol import Question
from raison.testing import tiny_hf, tiny_model
from tests.helpers.searches import (
    CAUSAL,
    OPENINGS,
    SEQ2SEQ,
    TEXT,
    asked,
    check_greedy_is_literal,
    drawn,
    found_by,
    near_ties,
    rationale,
    tiny,
    verify,
)
from tests.oracles.rationales import greedy_labels


@pytest.mark.parametrize("family", CAUSAL + SEQ2SEQ)
def test_greedy_is_the_published_algorithm(family, precise):
    generator = np.random.default_rng(0)
    check_greedy_is_literal(tiny(family), [drawn(tiny(family), generator) for _ in range(12)])


def test_greedy_of_a_label_is_the_published_algorithm(precise):
    for seed, text in enumerate((TEXT, "A dull story with good actors", "She said it wasn't bad")):
        model = tiny_model("bert", "classification", seed)
        about = rationale(model, text, "greedy", sufficient="argmax", units="token")

        def score(keep, model=model, about=about):
            target = replace(about.target, output="log_prob")
            scored = model.score([Question(about.encoding, target, keep)], removal="mask")[0]
            return scored.value[:, 0], scored.margin[:, 0] > 0

        expected = greedy_labels(score, len(about.encoding), free=about.target.free(about.encoding))
        assert about.positions == expected.order and expected.reached


@pytest.mark.registry
def test_greedy_on_a_real_model(stories15m):
    assert near_ties(stories15m, OPENINGS[4:7]) <= 1


# -- D. properties ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["greedy", "refined", "exact", "by_order", "hierarchical"])
def test_a_bigram_model_needs_the_previous_token_only(search):
    hf, tokenizer = tiny_hf("llama", "causal")
    with torch.no_grad():
        for layer in hf.model.layers:
            layer.self_attn.o_proj.weight.zero_()
    model = raison.load(hf, tokenizer)
    found = rationale(model, TEXT, search, target="all")
    assert len(found) == len(found[0].encoding) - 1
    assert not any(about.selected.any() for about in found)
    assert all(
        about.certificate.kept_tokens == 2 for about in found[1:]
    )  # the start of the text is always there
    own = rationale(model, TEXT, search)
    assert own.certificate.rule == "argmax" and own.size == 0 and own.certificate.optimal


def copier(place: int):
    """A GPT-2 that writes the token at `place` again: one-hot words and positions, one head that looks there."""
    from transformers import GPT2Config, GPT2LMHeadModel

    _, tokenizer = tiny_hf("gpt2", "causal")
    words, places = len(tokenizer), 16
    width = words + places
    config = GPT2Config(
        vocab_size=words, n_embd=width, n_layer=1, n_head=1, n_positions=places, n_inner=2
    )
    hf = GPT2LMHeadModel(config).double().eval()
    with torch.no_grad():
        for name, weight in hf.named_parameters():
            weight.fill_(1.0 if "ln_" in name and name.endswith("weight") else 0.0)
        hf.transformer.wte.weight[:, :words] = torch.eye(words)
        hf.transformer.wpe.weight[:, words:] = torch.eye(places)
        attention = hf.transformer.h[0].attn
        attention.c_attn.bias[words + place] = 200.0  # every query asks for this position
        attention.c_attn.weight[words:, width + words : 2 * width] = torch.eye(
            places, width - words
        )
        attention.c_attn.weight[:words, 2 * width : 2 * width + words] = torch.eye(words)
        attention.c_proj.weight[:words, :words] = 3.0 * torch.eye(words)
    hf.tie_weights()
    return raison.load(hf, tokenizer)


@pytest.mark.parametrize("place", [0, 3])
def test_a_copy_model_needs_two_tokens(place):
    model = copier(place)
    generator = np.random.default_rng(place)
    (base,) = model.encode([raison.Example("The old town lies on")])
    ids = generator.permutation(np.arange(10, 300))[: len(base)]
    encoding = replace(base, ids=ids)
    target = model.predict([encoding])[0].target
    assert target.ids[0] == ids[place]
    for search in ("greedy", "refined", "exact", "by_order"):
        (about,) = found_by(search, model, [(encoding, target)])
        assert about.positions == [place] and about.certificate.kept_tokens == 2
        assert verify(model, about).irreducible
    assert found_by("exact", model, [(encoding, target)])[0].certificate.optimal


@pytest.mark.parametrize("family", ["gpt2", "mistral", "t5"])
def test_no_prefix_of_a_greedy_rationale_is_enough(family, precise):
    model, generator = tiny(family), np.random.default_rng(1)
    for about in found_by(
        "greedy(sufficient=argmax)", model, [drawn(model, generator) for _ in range(8)]
    ):
        growing = np.zeros((len(about.order) + 1, len(about.units)), bool)
        for row in range(1, len(growing)):
            growing[row, about.order[:row]] = True
        enough = (asked(model, about, growing).margin > 0).all(-1)
        assert enough[-1] and not enough[:-1].any()
        assert [step.size for step in about.steps] == list(range(len(about.steps)))


def test_of_equals_the_lowest_position_wins():
    """Any two words are enough, and all are worth the same."""

    def two(texts):
        return [[min(len(text.split()), 2) / 2, 0.75] for text in texts]

    for search in ("greedy", "refined", "exact", "by_order"):
        about = rationale(two, "one two three four five", search)
        assert about.order.tolist() == [0, 1], search
