"""What the predictor can know: nothing beside the rationale, in evaluation and in training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from raison.rationalizers.batching import special_ids
from raison.rationalizers.block_ranges import blocks_of_encoder
from raison.rationalizers.calibration import calibrate_selector
from tests.helpers.small_rationalizers import (
    CONFIGS,
    ENCODERS,
    batch_of,
    built,
)


@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize("config", CONFIGS, ids=lambda f: f"{f['predictor']}-{f['hide']}")
@pytest.mark.parametrize("graph", [False, True], ids=["answer", "gradients"])
def test_nothing_leaks_past_the_rationale(family, config, graph):
    """With the rationale fixed, no other token changes the logits at all, not even in the last bit."""
    model, tokenizer = built(family, **config)
    inputs = batch_of(tokenizer)
    with torch.set_grad_enabled(
        graph
    ):  # with gradients hidden tokens are masked, without they are left out
        random = torch.Generator().manual_seed(1)
        own = model(**inputs)
        assert torch.equal(model(**inputs, rationale=own.rationale).logits, own.logits)
        kept = own.real & (torch.rand(own.real.shape, generator=random) < 0.4)
        hidden = own.real & ~kept
        assert hidden.any() and kept.any()
        ordinary = torch.tensor(sorted(set(range(len(tokenizer))) - set(tokenizer.all_special_ids)))
        plain = model(**inputs, rationale=kept).logits
        for _ in range(3):
            other = ordinary[
                torch.randint(len(ordinary), inputs["input_ids"].shape, generator=random)
            ]
            ids = torch.where(hidden, other, inputs["input_ids"])
            told = model(ids, inputs["attention_mask"], rationale=kept)
            assert torch.equal(told.logits, plain)
        seen = torch.where(
            kept, ordinary[torch.randint(len(ordinary), hidden.shape, generator=random)], ids
        )
        assert not torch.equal(model(seen, inputs["attention_mask"], rationale=kept).logits, plain)


@pytest.mark.parametrize("family", ENCODERS)
def test_words_behind_the_rationale_do_not_tell_how_many_they_are(family):
    model, tokenizer = built(family, predictor="whole")
    short, long = (
        batch_of(tokenizer, [text])
        for text in ("A dull story", "A dull story with good actors in town")
    )
    kept = torch.zeros_like(short["input_ids"])
    kept[0, 1:3] = 1
    wide = torch.zeros_like(long["input_ids"])
    wide[0, 1:3] = 1
    with torch.no_grad():
        one, other = model(**short, rationale=kept), model(**long, rationale=wide)
    torch.testing.assert_close(one.logits, other.logits, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize("config", CONFIGS, ids=lambda f: f"{f['predictor']}-{f['hide']}")
def test_masks_are_nested_and_have_gradients(family, config):
    model, tokenizer = built(
        family, **{**config, "blocks": 2, "pruning": 2} if config["predictor"] != "rest" else config
    )
    inputs = batch_of(tokenizer)
    with torch.no_grad():
        first, again = model(**inputs), model(**inputs)
    assert all(torch.equal(a, b) for a, b in zip(first.masks, again.masks, strict=True))
    model.train()
    told = model(**inputs)
    for before, after in zip((told.real, *told.masks), told.masks, strict=False):
        assert set(after.detach().unique().tolist()) <= {0.0, 1.0}
        assert (after <= before.to(after)).all()
    special = torch.isin(inputs["input_ids"], torch.tensor(special_ids(tokenizer)))
    assert not told.rationale[special].any()
    gradient = torch.autograd.grad(told.logits[:, 0].sum(), model.selector.linear.weight)[0]
    assert torch.isfinite(gradient).all() and gradient.abs().sum() > 0
    assert model.encoder.config._attn_implementation != "raison_select"  # as it was


@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize("predictor", ["rest", "whole", "apart"])
def test_what_is_hidden_is_not_computed_where_blocks_know_no_places(family, predictor, monkeypatch):
    model, tokenizer = built(family, predictor=predictor)
    inputs = batch_of(tokenizer)
    widths = []
    run = type(model).run
    monkeypatch.setattr(
        type(model),
        "run",
        lambda self, *given: widths.append(given[3].shape[1]) or run(self, *given),
    )
    kept = torch.zeros_like(inputs["input_ids"])
    kept[0, 5:7], kept[1, 2], kept[2, 1] = 1, 1, 1
    masked = model(**inputs, rationale=kept).logits
    with torch.no_grad():
        moved = model(**inputs, rationale=kept).logits
    assert model.movable == (family != "modernbert")  # rotary angles
    assert widths == [kept.shape[1], 3 if model.movable else kept.shape[1]]  # [CLS] and two words
    torch.testing.assert_close(moved, masked.detach(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", ENCODERS)
def test_training_reads_a_fixed_rationale_as_evaluation_does(family):
    """Attention shared anew among what is kept = the others masked."""
    for config in CONFIGS:
        model, tokenizer = built(family, **config)
        inputs = batch_of(tokenizer)
        with torch.no_grad():
            decided_ = model(**inputs).rationale
            masked = model(**inputs, rationale=decided_).logits
        model.train()
        model.settings = replace(model.settings, hidden_share=1.0)
        for moved in (model.movable, False):
            model._movable = moved
            shared = model(**inputs, rationale=decided_.clone().requires_grad_()).logits.detach()
            torch.testing.assert_close(shared, masked, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("predictor", ["rest", "whole", "apart"])
def test_a_share_of_the_hidden_tokens_is_tried_and_counts_for_all(predictor):
    """What is tried has the gradient that it has among all, as many times as it stands for others."""

    def slopes(share: float, moved: bool) -> torch.Tensor:
        model, tokenizer = built(predictor=predictor, hidden_share=share)
        model._movable = moved
        model.train()
        inputs, tokens = model.read(**batch_of(tokenizer))
        torch.manual_seed(5)
        found = model.generate(inputs, tokens)
        kept = (torch.arange(tokens.real.shape[1]) % 4 == 2) & tokens.real
        kept = kept.double().requires_grad_()
        (slope,) = torch.autograd.grad(
            model.predict(inputs, tokens, found.entered, kept, model.own_predictor)[:, 0].sum(),
            kept,
        )
        return slope * tokens.real

    every = slopes(1.0, False)
    torch.testing.assert_close(slopes(1.0, True), every, rtol=1e-9, atol=1e-12)
    half = slopes(0.5, True)
    hidden = (torch.arange(every.shape[1]) % 4 != 2).expand(every.shape) & (every != 0)
    assert 0.2 < (half[hidden] != 0).double().mean() < 0.8
    torch.testing.assert_close(half[~hidden], every[~hidden], rtol=1e-9, atol=1e-12)
    tried = hidden & (half != 0)
    torch.testing.assert_close(half[tried], 2 * every[tried], rtol=1e-9, atol=1e-12)


def test_the_full_text_term_stops_before_the_pruning_blocks():
    model, tokenizer = built("bert", predictor="whole", blocks=2, pruning=1, full_text="mid_cls")
    model.train()
    told = model(**batch_of(tokenizer))
    blocks = blocks_of_encoder(model.encoder)[1]
    wanted = [next(block.parameters()) for block in blocks]
    early, late = torch.autograd.grad(told.full_logits.sum(), wanted, allow_unused=True)
    assert early is not None and early.abs().sum() > 0 and late is None


def test_a_short_text_with_one_token_is_no_failure():
    """Of four words a fifth is less than one: that each keeps one, and no more, is all that can be done."""
    for count, share, room in ((4, 0.2, False), (10, 0.1, False), (10, 0.3, True)):
        model, tokenizer = built("bert", predictor="whole", sparsity=(share,))
        words = [k for k in range(len(tokenizer)) if k not in model.config.special_ids]
        ids = torch.tensor(np.random.default_rng(0).choice(words, (64, count)))
        ends = torch.tensor([[tokenizer.cls_token_id], [tokenizer.sep_token_id]]).expand(2, 64)
        inputs = {"input_ids": torch.cat([ends[0][:, None], ids, ends[1][:, None]], 1)}
        calibrate_selector(model, lambda inputs=inputs: [inputs])
        told = model(**inputs)
        assert (told.rationale.sum(1) >= 1).all()
        forced = told.margins[-1].masked_fill(~told.real, -torch.inf).max(1).values <= 0
        assert torch.equal(told.empty, forced & room)


def test_modes_of_single_modules_stay(tmp_path):
    model, _ = built("bert")
    model.train()
    model.encoder.encoder.layer[0].eval()
    before = [module.training for module in model.modules()]
    assert model.movable and [module.training for module in model.modules()] == before
