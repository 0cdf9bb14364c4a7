"""Classifiers that select their rationale: masks, leaks, losses, splitting, training, loading."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import raison
from raison.cli.app import app, assemble
from raison.core.errors import InputError, ModelError, Unsupported
from raison.core.records import Example
from raison.models.protocol import Question
from raison.rationalizers.adapter import selective
from raison.rationalizers.batching import added_by, as_words
from raison.rationalizers.block_ranges import blocks_of, stretch
from raison.rationalizers.build import assembled
from raison.rationalizers.calibration import calibrate
from raison.rationalizers.config import NAMED, Frame, levels
from raison.rationalizers.homogeneity import Homogeneity, homogeneity, split_of
from raison.rationalizers.losses import Weights, coherence, prediction_loss, shares, sparsity_gap, total
from raison.rationalizers.module import Rationalizer, Selected
from raison.rationalizers.report import measured, troubles
from raison.rationalizers.selection import attention, decided, sampled, seeing
from raison.rationalizers.train import Regimen, train_rationalizer
from raison.show.wording import headline
from raison.testing import check_model, tiny_hf
from raison.testing.precision import Float64
from raison.training import fit as fitting
from raison.training.class_data import Line, examples_by_part, lines_of
from tests.test_attention_classifier import reviews

ENCODERS = ("bert", "roberta", "distilbert", "electra", "modernbert")
TEXTS = ["The old town lies on a hill above the river.", "A dull story with good actors", "It begins."]


def encoder_of(family: str):
    hf, tokenizer = tiny_hf(family, "classification")
    return copy.deepcopy(getattr(hf, hf.base_model_prefix)), tokenizer


def built(family: str = "bert", **frame) -> tuple[Rationalizer, object]:
    encoder, tokenizer = encoder_of(family)
    settings = {"blocks": 1, "pruning": 1, "full_text": "predictor", "dropout": 0.0, **frame}
    labels = ["negative", "positive"]
    model = assembled(encoder, tokenizer, Frame.of(settings), labels, seed=0).double()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name in ("attention_dropout", "dropout_prob", "dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return model.eval(), tokenizer


def batch_of(tokenizer, texts=TEXTS, pairs=None):
    found = tokenizer(texts, pairs, return_tensors="pt", padding=True)
    return {key: found[key] for key in ("input_ids", "attention_mask")}


FRAMES = [{"predictor": p, "hide": h} for p in ("rest", "whole", "apart") for h in ("attention", "zero")]


# -- levels, masks, leaks ------------------------------------------------------------------------------------


def test_levels_fall_to_what_was_asked():
    assert levels(0.2, 2) == pytest.approx([0.678, 0.2], abs=1e-3)  # methods.md 2.2
    assert levels(0.2, 4) == pytest.approx([0.852, 0.678, 0.467, 0.2], abs=1e-3)
    assert levels(0.3, 1) == pytest.approx([0.3])
    for count in (1, 3, 6):
        found = levels(0.15, count)
        assert found == sorted(found, reverse=True) and found[-1] == pytest.approx(0.15) and found[0] < 1


@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize("frame", FRAMES, ids=lambda f: f"{f['predictor']}-{f['hide']}")
@pytest.mark.parametrize("graph", [False, True], ids=["answer", "gradients"])
def test_nothing_leaks_past_the_rationale(family, frame, graph):
    """With the rationale fixed, no other token changes the logits at all, not even in the last bit."""
    model, tokenizer = built(family, **frame)
    inputs = batch_of(tokenizer)
    with torch.set_grad_enabled(graph):  # with gradients hidden tokens are masked, without they are left out
        random = torch.Generator().manual_seed(1)
        own = model(**inputs)
        assert torch.equal(model(**inputs, rationale=own.rationale).logits, own.logits)
        kept = own.real & (torch.rand(own.real.shape, generator=random) < 0.4)
        hidden = own.real & ~kept
        assert hidden.any() and kept.any()
        ordinary = torch.tensor(sorted(set(range(len(tokenizer))) - set(tokenizer.all_special_ids)))
        plain = model(**inputs, rationale=kept).logits
        for _ in range(3):
            other = ordinary[torch.randint(len(ordinary), inputs["input_ids"].shape, generator=random)]
            ids = torch.where(hidden, other, inputs["input_ids"])
            told = model(ids, inputs["attention_mask"], rationale=kept)
            assert torch.equal(told.logits, plain)
        seen = torch.where(kept, ordinary[torch.randint(len(ordinary), hidden.shape, generator=random)], ids)
        assert not torch.equal(model(seen, inputs["attention_mask"], rationale=kept).logits, plain)


@pytest.mark.parametrize("family", ENCODERS)
def test_words_behind_the_rationale_do_not_tell_how_many_they_are(family):
    model, tokenizer = built(family, predictor="whole")
    short, long = (batch_of(tokenizer, [text]) for text in ("A dull story", "A dull story with good actors in town"))
    kept = torch.zeros_like(short["input_ids"])
    kept[0, 1:3] = 1
    wide = torch.zeros_like(long["input_ids"])
    wide[0, 1:3] = 1
    with torch.no_grad():
        one, other = model(**short, rationale=kept), model(**long, rationale=wide)
    torch.testing.assert_close(one.logits, other.logits, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize("frame", FRAMES, ids=lambda f: f"{f['predictor']}-{f['hide']}")
def test_masks_are_nested_and_have_gradients(family, frame):
    model, tokenizer = built(family, **{**frame, "blocks": 2, "pruning": 2} if frame["predictor"] != "rest" else frame)
    inputs = batch_of(tokenizer)
    with torch.no_grad():
        first, again = model(**inputs), model(**inputs)
    assert all(torch.equal(a, b) for a, b in zip(first.masks, again.masks, strict=True))
    model.train()
    told = model(**inputs)
    for before, after in zip((told.real, *told.masks), told.masks, strict=False):
        assert set(after.detach().unique().tolist()) <= {0.0, 1.0}
        assert (after <= before.to(after)).all()
    special = torch.isin(inputs["input_ids"], torch.tensor(added_by(tokenizer)))
    assert not told.rationale[special].any()
    gradient = torch.autograd.grad(told.logits[:, 0].sum(), model.head.linear.weight)[0]
    assert torch.isfinite(gradient).all() and gradient.abs().sum() > 0
    assert model.encoder.config._attn_implementation != "raison_select"  # as it was


@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize("predictor", ["rest", "whole", "apart"])
def test_what_is_hidden_is_not_computed_where_blocks_know_no_places(family, predictor, monkeypatch):
    model, tokenizer = built(family, predictor=predictor)
    inputs = batch_of(tokenizer)
    widths = []
    run = type(model).run
    monkeypatch.setattr(type(model), "run", lambda self, *given: widths.append(given[3].shape[1]) or run(self, *given))
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
    for frame in FRAMES:
        model, tokenizer = built(family, **frame)
        inputs = batch_of(tokenizer)
        with torch.no_grad():
            decided_ = model(**inputs).rationale
            masked = model(**inputs, rationale=decided_).logits
        model.train()
        model.frame = replace(model.frame, tried=1.0)
        for moved in (model.movable, False):
            model.__dict__["movable"] = moved
            shared = model(**inputs, rationale=decided_.clone().requires_grad_()).logits.detach()
            torch.testing.assert_close(shared, masked, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("predictor", ["rest", "whole", "apart"])
def test_a_share_of_the_hidden_tokens_is_tried_and_counts_for_all(predictor):
    """What is tried has the gradient that it has among all, as many times as it stands for others."""

    def slopes(share: float, moved: bool) -> torch.Tensor:
        model, tokenizer = built(predictor=predictor, tried=share)
        model.__dict__["movable"] = moved
        model.train()
        inputs, tokens = model.read(**batch_of(tokenizer))
        torch.manual_seed(5)
        found = model.generate(inputs, tokens)
        kept = (torch.arange(tokens.real.shape[1]) % 4 == 2) & tokens.real
        kept = kept.double().requires_grad_()
        reader = model.encoder if model.reader is None else model.reader
        (slope,) = torch.autograd.grad(model.predict(inputs, tokens, found.entered, kept, reader)[:, 0].sum(), kept)
        return slope * tokens.real

    every = slopes(1.0, False)
    torch.testing.assert_close(slopes(1.0, True), every, rtol=1e-9, atol=1e-12)
    half = slopes(0.5, True)
    hidden = (torch.arange(every.shape[1]) % 4 != 2).expand(every.shape) & (every != 0)
    assert 0.2 < (half[hidden] != 0).double().mean() < 0.8
    torch.testing.assert_close(half[~hidden], every[~hidden], rtol=1e-9, atol=1e-12)
    tried = hidden & (half != 0)
    torch.testing.assert_close(half[tried], 2 * every[tried], rtol=1e-9, atol=1e-12)


def test_a_draw_is_hard_and_its_gradient_soft():
    logits = torch.randn(4, 9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    torch.manual_seed(3)
    mask = sampled(logits)
    torch.manual_seed(3)
    noise = -torch.log(-torch.log(torch.rand_like(logits)))
    soft = torch.softmax(logits + noise, -1)[..., 1]
    assert torch.equal(mask.detach(), (soft > 0.5).double())
    torch.testing.assert_close(
        torch.autograd.grad(mask.sum(), logits, retain_graph=True)[0], torch.autograd.grad(soft.sum(), logits)[0]
    )
    torch.manual_seed(0)
    odds = torch.tensor([0.0, math.log(3)]).expand(20_000, 1, 2)  # keeps 3 of 4
    assert float(sampled(odds).mean()) == pytest.approx(0.75, abs=0.02)


def test_the_gradient_of_seeing_a_token_is_the_whole_step():
    """For a hidden token: what attention would give with it, minus what it gives; for a seen one: the slope."""
    encoder, _ = encoder_of("bert")
    module = encoder.encoder.layer[0].attention.self
    random = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(1, 2, 5, 4, dtype=torch.float64, generator=random) for _ in range(3))

    def attended(seen):
        with seeing(seen):
            return attention(module.eval(), query, key, value, None, scaling=0.5)[0]

    seen = torch.tensor([[1.0, 0.0, 1.0, 0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(1, 5, 2, 4, dtype=torch.float64, generator=random)
    (gradient,) = torch.autograd.grad((attended(seen) * upstream).sum(), seen)
    plain = attended(seen.detach())
    for t in range(5):
        if seen[0, t] == 0:
            more = seen.detach().clone()
            more[0, t] = 1
            expected = ((attended(more) - plain) * upstream).sum()
        else:
            step = torch.zeros_like(seen)
            step[0, t] = 1e-6
            expected = ((plain - attended(seen.detach() - step)) / 1e-6 * upstream).sum()
        assert float(gradient[0, t]) == pytest.approx(float(expected), rel=1e-4, abs=1e-6)


def test_the_gradient_of_weights_between_0_and_1_is_their_slope():
    encoder, _ = encoder_of("bert")
    module = encoder.encoder.layer[0].attention.self.eval()
    random = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(1, 2, 4, 4, dtype=torch.float64, generator=random) for _ in range(3))
    upstream = torch.randn(1, 4, 2, 4, dtype=torch.float64, generator=random)

    def worth(seen):
        with seeing(seen):
            return (attention(module, query, key, value, None, scaling=0.5)[0] * upstream).sum()

    weights = torch.tensor([[0.3, 0.9, 0.05, 0.6]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(worth, weights)


def test_the_likeliest_token_stays_where_all_would_go():
    margin = torch.tensor([[-1.0, -3.0, -0.5, 2.0], [1.0, -1.0, -1.0, -1.0], [-1.0, -1.0, -1.0, -1.0]])
    among = torch.tensor([[True, True, True, False], [True] * 4, [False] * 4])
    kept = decided(margin, among, True)
    assert kept.tolist() == [[False, False, True, False], [True, False, False, False], [False] * 4]
    assert decided(margin, among, False).sum() == 1


# -- stretches of blocks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ENCODERS)
def test_stretches_are_the_encoder(family):
    encoder, tokenizer = encoder_of(family)
    inputs = batch_of(tokenizer)
    before = {name: id(module) for name, module in encoder.named_modules()}
    with torch.no_grad():
        whole = encoder.eval()(**inputs).last_hidden_state
        every = stretch(encoder, 0, len(blocks_of(encoder)[1]), inputs)
        first = stretch(encoder, 0, 1, inputs)
        second = stretch(encoder, 1, 2, inputs, states=first.left[-1])
    assert torch.equal(every.output, whole)
    torch.testing.assert_close(second.output, whole, rtol=0, atol=1e-12)
    torch.testing.assert_close(second.entered, every.left[0], rtol=0, atol=1e-12)
    assert before == {name: id(module) for name, module in encoder.named_modules()}


def test_what_cannot_be_split_is_refused(tmp_path):
    with pytest.raises(Unsupported, match="can't be split"):
        blocks_of(encoder_of("albert")[0])
    hf, tokenizer = tiny_hf("bart", "seq2seq")
    with pytest.raises(Unsupported, match="no encoder of BERT's kind"):
        train_rationalizer(hf, reviews(50), out=tmp_path / "r", tokenizer=tokenizer)


# -- losses ---------------------------------------------------------------------------------------------------


def told_of(mask, real, **more) -> Selected:
    mask = torch.tensor(mask, dtype=torch.float64)
    real = torch.tensor(real, dtype=torch.bool)
    base = {"masks": (mask,), "real": real, "side": torch.zeros_like(real).long(), "logits": torch.zeros(len(mask), 2)}
    return Selected(**{**base, **more})


def test_sparsity_and_coherence_are_the_formulas():
    told = told_of([[0, 1, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0]], [[0, 1, 1, 1, 1, 0], [0, 1, 1, 0, 0, 0]])
    assert float(shares(told.masks[0], told, 1)[0]) == pytest.approx(3 / 6)
    assert float(sparsity_gap(told, Frame(blocks=1, pruning=1, full_text="none", sparsity=(0.5,)))) == pytest.approx(0)
    assert float(sparsity_gap(told, Frame(blocks=1, pruning=1, full_text="none", sparsity=(0.2,)))) == pytest.approx(
        0.3
    )
    assert float(coherence(told.masks[0], told.real)) == pytest.approx((0 + 1 + 0 + 1) / 4)
    padded = told_of([[0, 1, 1, 0, 0, 0, 0, 0]], [[0, 1, 1, 1, 1, 0, 0, 0]])
    plain = told_of([[0, 1, 1, 0, 0]], [[0, 1, 1, 1, 1]])
    assert coherence(padded.masks[0], padded.real) == coherence(plain.masks[0], plain.real)
    for same in (0.0, 1.0):
        assert float(coherence(torch.full((1, 5), same), torch.ones(1, 5, dtype=torch.bool))) == 0
    sides = told_of([[1, 1, 0, 1]], [[1, 1, 1, 1]], side=torch.tensor([[0, 0, 1, 1]]))
    assert [float(s) for s in shares(sides.masks[0], sides, 2)] == [1.0, 0.5]
    frame = Frame(blocks=1, pruning=1, full_text="none", sparsity=(0.9, 0.3))
    assert float(sparsity_gap(sides, frame)) == pytest.approx(0.1 + 0.2)


def test_the_loss_is_the_papers():
    """λ_cls CE + λ_full CE_full + λ_D (CE − CE_full) with 1, 2, 1 (methods.md 2.2)."""
    model, tokenizer = built("bert", full_text="predictor")
    model.train()
    torch.manual_seed(0)
    with torch.no_grad():
        told = model(**batch_of(tokenizer))
    labels = torch.tensor([0, 1, 1])
    short, full = prediction_loss(told.logits, labels), prediction_loss(told.full_logits, labels)
    literal = short + 2 * full + 1 * (short - full)
    ours = total(told, labels, model.frame, Weights(sparsity=0, coherence=0))
    assert float(ours) == pytest.approx(float(literal), rel=1e-9)
    more = total(told, labels, model.frame, Weights(sparsity=3, coherence=0.5))
    extra = 3 * sparsity_gap(told, model.frame) + 0.5 * sum(coherence(m, told.real) for m in told.masks)
    assert float(more - ours) == pytest.approx(float(extra), rel=1e-9)


def test_the_full_text_term_stops_before_the_pruning_blocks():
    model, tokenizer = built("bert", predictor="whole", blocks=2, pruning=1, full_text="mid_cls")
    model.train()
    told = model(**batch_of(tokenizer))
    blocks = blocks_of(model.encoder)[1]
    wanted = [next(block.parameters()) for block in blocks]
    early, late = torch.autograd.grad(told.full_logits.sum(), wanted, allow_unused=True)
    assert early is not None and early.abs().sum() > 0 and late is None


def test_a2r_and_human_terms():
    model, tokenizer = built("bert", predictor="apart", soft=True, full_text="none")
    model.train()
    inputs = batch_of(tokenizer)
    with torch.no_grad():
        told = model(**inputs)
    labels = torch.tensor([0, 1, 1])
    assert told.soft_logits is not None and told.full_logits is None
    one, other = told.logits.softmax(-1), told.soft_logits.softmax(-1)
    middle = (one + other) / 2
    jsd = ((one * (one / middle).log()).sum(-1) + (other * (other / middle).log()).sum(-1)).mean() / 2
    found = total(told, labels, model.frame, Weights(sparsity=0, coherence=0, soft=1))
    expected = 2 * prediction_loss(told.logits, labels) + 2 * prediction_loss(told.soft_logits, labels) + jsd
    assert float(found) == pytest.approx(float(expected), rel=1e-6)
    gold = torch.zeros_like(told.real)
    gold[:, 2] = True
    known = torch.tensor([True, False, True])
    human = total(told, labels, model.frame, Weights(sparsity=0, coherence=0, human=1), gold=gold, known=known) - found
    inside = told.real & known[:, None]
    odds = torch.sigmoid(told.margins[-1])
    literal = -torch.where(gold, odds, 1 - odds).log()[inside].mean()
    assert float(human) == pytest.approx(float(literal), rel=1e-6)


class Scripted:
    """Says and selects what the tokens of a text spell out: 1x the answer, 2x that from the full text, 30 a word that
    is dropped, 31 one that is kept behind the first pruning block only, 32 one that is kept."""

    device = torch.device("cpu")

    def eval(self):
        return self

    def __call__(self, input_ids, rationale=None, full=True, **_):
        real = input_ids >= 30
        first, last = real & (input_ids >= 31), real & (input_ids == 32)
        own = last if rationale is None else rationale.bool() & real
        said, whole = (torch.eye(3)[input_ids[:, k] % 10] for k in (0, 1))
        side = torch.zeros_like(input_ids)
        empty = real.any(1) & ~last.any(1)
        return Selected(
            logits=said, rationale=own.long(), masks=(first.long(), own.long()), empty=empty, real=real, side=side,
            full_logits=whole if full else None,
        )  # fmt: skip


def test_what_is_measured_is_counted_by_hand():
    yes, no = True, False
    lines = [  # said, said from the full text, words; what people marked
        Line((10, 21, 32, 30, 32), 0, gold=(no, no, yes, yes, no)),  # right; wrong; keeps 2 of 3, 1 of 2 marked
        Line((11, 21, 31, 30, 30, 30), 1, gold=(no, no, yes, no, no, no)),  # right, right; keeps nothing, empty
        Line((12, 20, 32, 32), 0),  # wrong, right; keeps all 2; nothing is marked
        Line((11, 21, 32, 31, 30, 30, 30), 2, gold=(no, no, no, yes, no, no, no)),  # wrong, wrong; keeps 1 of 5
    ]
    found = measured(Scripted(), lines, 0)
    assert found["accuracy"] == 2 / 4 and found["full text accuracy"] == 2 / 4
    assert found["sparsity"] == pytest.approx(5 / 14) and found["sparsity of the first"] == pytest.approx(7 / 14)
    assert (found["empty"], found["full"]) == (1 / 4, 1 / 4)
    # of the three texts with marks: kept 3, marked 4, both 1
    assert (found["precision"], found["recall"]) == (pytest.approx(1 / 3), 1 / 4)
    assert found["rationale f1"] == pytest.approx(2 / 7)
    every = measured(Scripted(), lines, 0, "all")
    assert every["sparsity"] == 1.0 and "full text accuracy" not in every


# -- homogeneity and calibration -------------------------------------------------------------------------------


def test_homogeneity_is_the_formula():
    encoder, tokenizer = encoder_of("bert")
    inputs = batch_of(tokenizer)
    real = inputs["attention_mask"].bool() & ~torch.isin(inputs["input_ids"], torch.tensor(added_by(tokenizer)))
    found = homogeneity(encoder.eval(), [{**inputs, "real": real}])
    with torch.no_grad():
        layers = encoder(**inputs, output_hidden_states=True).hidden_states
    for number, states in enumerate(layers):
        spreads, cosines = [], []
        for row in range(len(TEXTS)):
            tokens = states[row][real[row]].numpy()
            spreads.append(np.trace(np.cov(tokens.T, bias=True)))
            unit = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
            every = unit @ unit.T
            cosines.append(every[~np.eye(len(tokens), dtype=bool)].mean())
        assert found.spread[number] == pytest.approx(np.mean(spreads))
        assert found.cosine[number] == pytest.approx(np.mean(cosines))
    assert found.texts == 3


def test_the_split_is_the_last_wide_block():
    alike = Homogeneity((90, 115, 107, 99, 107, 82, 40), (0,) * 7, 9)  # MiniLM
    assert split_of(alike, rest=True) == 4
    rising = Homogeneity((1, 2, 3, 4, 5), (0,) * 5, 9)
    assert split_of(rising, rest=True) == 3 and split_of(rising, rest=False) == 4


@pytest.mark.parametrize("pair", [False, True])
def test_calibration_reaches_the_asked_share(pair):
    shares_ = (0.3, 0.5) if pair else (0.3,)
    model, tokenizer = built("bert", predictor="whole", blocks=2, pruning=2, sparsity=shares_, least_one=False)
    texts = [" ".join(TEXTS[k % 3 :] + TEXTS[: k % 3]) for k in range(6)]
    inputs = batch_of(tokenizer, texts, [TEXTS[k % 3] for k in range(6)] if pair else None)
    with torch.no_grad():
        model.head.linear.bias.copy_(torch.tensor([2.0, -2.0]))  # would keep next to nothing
        model.head.linear.weight.mul_(0.1)
    calibrate(model, lambda: [inputs])
    told = model(**inputs)
    for number, mask in enumerate(told.masks):
        for text, share in enumerate(shares(mask, told, len(shares_))):
            assert float(share) == pytest.approx(levels(shares_[text], 2)[number], abs=0.03)


# -- as a model ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ENCODERS)
def test_a_rationalizer_is_a_model_like_any_other(family):
    hf, tokenizer = built(family, predictor="whole")
    with Float64():
        model = selective(hf, tokenizer, "tiny")
        check_model(model)
        check_selection(model, hf)


def check_selection(model, hf):
    found = raison.explain(model, TEXTS[0])
    assert found.method == "own" and found.selected is not None
    (encoding,) = model.encode([Example(TEXTS[0])])
    (kept,) = model.selected([encoding])
    assert found.selected.tolist() == [bool(kept[found.units.of == u].any()) for u in range(len(found.units))]
    assert all((score > 0) == chosen for score, chosen in zip(found.scores, found.selected, strict=True))
    assert "attention" not in model.offers and {"own", "gradients", "score"} <= model.offers
    ids = torch.tensor(encoding.ids)[None]
    with torch.no_grad():
        assert hf(ids).rationale[0].bool().tolist() == kept.tolist()
    other = model.labels[1 - model.predict([encoding])[0].target.ids[0]]
    greedy = raison.rationalize(model, TEXTS[0], "greedy", target=other, sufficient="probability(tau=0.5)")
    assert greedy.certificate


def test_removing_what_was_not_read_by_the_predictor_alone_changes_nothing():
    """Where the generator's choice stays, so does the answer: removals hide from both."""
    hf, tokenizer = built("bert", predictor="whole")
    model = selective(hf, tokenizer, "tiny")
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
@pytest.mark.parametrize("method", ["integrated_gradients(steps=64)", "deeplift", "smooth_grad", "gradient_shap"])
def test_methods_that_move_embeddings_hold_the_choice(family, method):
    """A choice made anew on the way would make the answer jump: sums would not be f(text) − f(baseline)."""
    hf, tokenizer = built(family, predictor="whole")
    with Float64():
        model = selective(hf, tokenizer, "tiny")
        (encoding,) = model.encode([Example(TEXTS[0])])
        calibrate(hf, lambda: [{"input_ids": torch.tensor(encoding.ids)[None]}])
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
    model = selective(hf, tokenizer, "tiny")
    (encoding,) = model.encode([Example(TEXTS[0])])
    (choice,) = model.choices([encoding])
    with torch.no_grad():
        told = hf(torch.tensor(encoding.ids)[None])
    first, second = (1 / (1 + np.exp(-margin[0].numpy())) for margin in told.margins)
    np.testing.assert_allclose(choice.odds, first * second * told.real[0].numpy(), atol=1e-9)


# -- training --------------------------------------------------------------------------------------------------

SMALL = Regimen(lr=1e-3, head_lr=3e-3, epochs=3, batch=16, warm=1.0, decay=0.0)


def start(tmp_path, **more):
    hf, tokenizer = tiny_hf("bert", "classification")
    hf = copy.deepcopy(hf).float()
    settings = {"frame": {"sparsity": 0.3, "blocks": 1, "pruning": 1, "predictor": "whole", "full_text": "predictor"}}
    return train_rationalizer(
        hf, more.pop("data", reviews(200)), out=tmp_path, tokenizer=tokenizer,
        **{**settings, "regimen": SMALL, **more},
    )  # fmt: skip


def test_training_from_labels_alone(tmp_path):
    report = start(tmp_path / "m")
    assert report["dev"]["sparsity"] == pytest.approx(0.3, abs=0.05)
    assert report["what"] == "rationalizer" and len(report["history"]) == 3
    assert report["history"][0]["score"] is None  # warm-up
    stored = json.loads((tmp_path / "m" / "training.json").read_text())
    assert stored["frame"]["blocks"] == 1 and "rationale f1" not in stored["dev"]
    model = raison.load(str(tmp_path / "m"))
    found = raison.explain(model, "a lovely film and a story")
    assert found.selected.any() and not found.selected.all()
    with pytest.raises(InputError, match="has a finished model"):
        start(tmp_path / "m")


def stop_after(monkeypatch, steps: int) -> None:
    """Runs are stopped there; every step has a checkpoint."""
    calls = {"count": 0}
    plain = fitting.one_step

    def stopping(*args, **kwargs):
        calls["count"] += 1
        if calls["count"] == steps + 1:
            raise fitting.Stopped("stopped")
        return plain(*args, **kwargs)

    monkeypatch.setattr(fitting, "one_step", stopping)
    monkeypatch.setattr(fitting.Watch, "due", lambda self: True)


def test_a_stopped_run_goes_on_as_if_nothing_had_happened(tmp_path, monkeypatch):
    straight = start(tmp_path / "straight")
    with monkeypatch.context() as patched, pytest.raises(fitting.Stopped):
        stop_after(patched, 24)
        start(tmp_path / "broken")
    resumed = start(tmp_path / "broken")
    assert [h["loss"] if "loss" in h else h["score"] for h in resumed["history"]] == [
        h["loss"] if "loss" in h else h["score"] for h in straight["history"]
    ]
    assert resumed["dev"] == straight["dev"]


def test_an_adapter_is_small_and_loads_as_it_was_trained(tmp_path):
    hf, tokenizer = tiny_hf("bert", "classification")
    base = tmp_path / "base"
    copy.deepcopy(hf).float().save_pretrained(base)
    tokenizer.save_pretrained(base)
    frame = {"sparsity": 0.3, "blocks": 1, "pruning": 1, "predictor": "whole", "full_text": "predictor"}
    data = reviews(120)
    train_rationalizer(base, data, out=tmp_path / "a", frame=frame, regimen=replace(SMALL, lora=2, epochs=2))
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert "adapter_model.safetensors" in names and "model.safetensors" not in names
    assert (tmp_path / "a" / "adapter_model.safetensors").stat().st_size < base.joinpath(
        "model.safetensors"
    ).stat().st_size / 2
    model = raison.load(str(tmp_path / "a"))
    report = json.loads((tmp_path / "a" / "training.json").read_text())
    parts, _ = examples_by_part(data, data_dir=None, limit=None, held=0.1, seed=0)
    lines = lines_of(parts, tokenizer, ["negative", "positive"], 64)
    assert measured(model.hf, lines.parts["dev"], 0) == pytest.approx(report["dev"], abs=1e-6)
    with pytest.raises(InputError, match="one in memory has no name"):
        start(tmp_path / "b", regimen=replace(SMALL, lora=2))


@pytest.mark.parametrize("variant", sorted(NAMED))
def test_every_variant_trains(tmp_path, variant):
    frame = {"sparsity": 0.3} if "gru" in variant else {"sparsity": 0.3, "full_text": "predictor"}
    if variant == "no_full_text":
        frame.pop("full_text")
    frame = {"width": 8, **frame} if "gru" in variant else {"pruning": 1, **frame}
    report = start(tmp_path / "m", variant=variant, frame=frame, regimen=replace(SMALL, epochs=2), data=reviews(64))
    assert 0 < report["dev"]["sparsity"] < 1 and report["variant"] == variant
    assert raison.load(str(tmp_path / "m")).offers >= {"own", "score", "gradients"}


def test_pairs_and_regression(tmp_path):
    rng = np.random.default_rng(0)
    pairs = [replace(e, pair=reviews(1, seed=int(rng.integers(1000)))[0].text) for e in reviews(96)]
    frame = {"sparsity": (0.2, 0.5), "blocks": 1, "pruning": 1, "predictor": "whole", "full_text": "predictor"}
    report = start(tmp_path / "pairs", data=pairs, frame=frame, regimen=replace(SMALL, epochs=2))
    assert report["frame"]["sparsity"] == (0.2, 0.5)
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
    for part in (report["dev"], report["history"][-1]):  # each text's own share, not only both together
        assert [part["sparsity, text 1"], part["sparsity, text 2"]] == pytest.approx([0.2, 0.5], abs=0.15)
    scored = [replace(e, label=str(len(e.text.split()) / 10)) for e in reviews(96)]
    found = start(tmp_path / "numbers", data=scored, regression=True, regimen=replace(SMALL, epochs=2))
    assert {"error", "correlation"} <= set(found["dev"]) and "accuracy" not in found["dev"]
    said = raison.explain(raison.load(str(tmp_path / "numbers")), "a lovely film")
    assert said.selected.any()


def test_a_regression_learns_numbers_of_any_size(tmp_path):
    """Shares of five stars, marks up to 90 and thousandths are learned alike, and told in their own units."""
    shares = []
    for middle, spread in ((0.0, 1.0), (75.0, 15.0), (1e-3, 1e-4)):
        data = [replace(e, label=str(middle + spread * (1 if e.label == "positive" else -1))) for e in reviews(200)]
        place = tmp_path / str(middle)
        report = start(place, data=data, regression=True, regimen=replace(SMALL, epochs=5, patience=5))
        dev = report["dev"]
        assert dev["error of the mean"] == pytest.approx(spread**2, rel=0.1) and not report["troubles"]
        shares.append(dev["error"] / dev["error of the mean"])
        found = raison.explain(raison.load(str(place)), data[0].text)
        said = found.prediction.value
        assert abs(said - middle) < 2 * spread
        assert headline(found) == [f"value {said:.4g}"]
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
            [replace(e, label=str(k)) for k, e in enumerate(reviews(9))], data_dir=None, limit=None, held=0.2, seed=0
        )


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
        tmp_path / name / "base", reviews(64), out=tmp_path / out, regimen=quick,
        frame={"blocks": 1, "pruning": 1, "full_text": "predictor"}, **more,
    )  # fmt: skip
    with monkeypatch.context() as patched, pytest.raises(fitting.Stopped):
        stop_after(patched, 3)
        go("one", "m")
    with pytest.raises(InputError, match="made with another model"):
        go("other", "m")
    assert go("one", "m")["epochs run"] == 2
    go("one", "runs", runs=2)
    with pytest.raises(InputError, match="another experiment"):
        go("other", "runs", runs=2)


def test_supervision_learns_what_people_marked(tmp_path):
    from raison.core.records import Span

    def with_gold(e: Example) -> Example:
        words, at, spans = e.text.split(" "), 0, []
        for word in words:
            if word in ("lovely", "funny", "warm", "clever", "moving", "dull", "stale", "loud", "empty", "tired"):
                spans.append(Span(at, at + len(word)))
            at += len(word) + 1
        return replace(e, gold=tuple(spans))

    data = [with_gold(e) for e in reviews(300)]
    plain = replace(SMALL, epochs=8, patience=8, head_lr=3e-2, lr=3e-3)
    without = start(tmp_path / "without", data=data, regimen=plain)
    found = start(tmp_path / "with", data=data, regimen=replace(plain, weights=Weights(human=5.0)))
    last = [report["history"][-1]["rationale f1"] for report in (without, found)]
    assert last[1] > last[0] + 0.1, last


def test_several_seeds(tmp_path):
    report = start(tmp_path / "m", runs=2, regimen=replace(SMALL, epochs=2), data=reviews(64))
    assert report["seeds"] == [0, 1] and "deviation" in report["dev"]["sparsity"]


def test_troubles_are_told():
    good = {"empty": 0.0, "full": 0.0, "accuracy": 0.8, "full text accuracy": 0.85}
    assert troubles(good, 0.5) == []
    assert troubles({**good, "accuracy": 1.0}, 0.99) == []  # more than the commonest label, as far as there is room
    assert troubles({**good, "accuracy": 1.0}, 1.0) == []
    assert "44% of the rationales would be empty" in troubles({**good, "empty": 0.44}, 0.5)[0]
    assert "the whole text" in troubles({**good, "full": 0.5}, 0.5)[0]
    assert "commonest label" in troubles({**good, "accuracy": 0.51}, 0.5)[0]
    assert "interlocking" in troubles({**good, "accuracy": 0.65}, 0.5)[0]
    alone = {"empty": 0.0, "full": 0.0, "accuracy": 0.65, "every token accuracy": 0.85}
    assert "interlocking" in troubles(alone, 0.5)[0]
    assert "nothing to do" in troubles({"empty": 0.0, "full": 0.0, "correlation": -0.1}, 0.0)[0]


def test_bad_settings_are_told_in_one_sentence(tmp_path):
    for frame, sentence in (
        ({"sparsity": 0}, "between 0 and 1"), ({"sparsity": 1.0}, "between 0 and 1"),
        ({"sparsity": (0.2, 0.2, 0.2)}, "one share, or two"), ({"blocks": 7}, "can have 1 to 2 of them, not 7"),
        ({"blocks": 7, "predictor": "rest"}, "can have 1 to 1 of them, not 7"),
        ({"predictor": "half"}, "predictor is rest"), ({"hide": "paint"}, "hide is"), ({"nonsense": 1}, "no setting"),
        ({"blocks": 1, "pruning": 2}, "can't drop tokens"),
        ({"full_text": "mid_cls", "blocks": 1, "pruning": 1}, "mid_cls"),
        ({"sparsity": (0.2, 0.3), "full_text": "none", "blocks": 1, "pruning": 1}, "Two sparsities are for pairs"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=sentence):
            start(tmp_path / "m", frame=frame, data=reviews(60))
    with pytest.raises(InputError, match="no variant|variant is"):
        start(tmp_path / "m", variant="plrm")
    with pytest.raises(InputError, match="weight of coherence"):
        Weights(coherence=-1)
    with pytest.raises(InputError, match="none of 2 is left"):
        Regimen(epochs=2, warm=2.0)
    with pytest.raises(InputError, match="half stores an adapter"):
        Regimen(half=True)
    one = [replace(e, label="positive") for e in reviews(60)]
    with pytest.raises(InputError, match="at least two classes"):
        start(tmp_path / "m", data=one)
    with pytest.raises(InputError, match="no label"):
        start(tmp_path / "m", data=[replace(e, label=None) for e in reviews(60)])


def test_the_command_line(tmp_path):
    hf, tokenizer = tiny_hf("bert", "classification")
    copy.deepcopy(hf).float().save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    file = tmp_path / "data.csv"
    file.write_text("text,label\n" + "\n".join(f"{e.text},{e.label}" for e in reviews(80)))
    assemble()
    args = ["train", "rationalizer", "-m", str(tmp_path / "base"), "--data", str(file), "--out", str(tmp_path / "m")]
    more = ["--sparsity", "0.3", "--blocks", "1", "--pruning", "1", "--full-text", "none", "--epochs", "2"]
    result = CliRunner().invoke(app, [*args, *more, "--batch", "16"])
    assert result.exit_code == 0, result.output
    assert "dev: accuracy" in result.output and "sparsity" in result.output
    report = json.loads((tmp_path / "m" / "training.json").read_text())
    assert report["command"].startswith("raison train rationalizer -m base --data data.csv --sparsity 0.3 --out FOLDER")
    shown = CliRunner().invoke(app, ["explain", "-m", str(tmp_path / "m"), "a lovely film and a story"])
    assert shown.exit_code == 0 and "rationale" in shown.output
    bad = CliRunner().invoke(app, [*args[:-1], str(tmp_path / "x"), "--sparsity", "2"])
    assert bad.exit_code == 2 or bad.exit_code == 1
    assert "between 0 and 1" in bad.output and "Traceback" not in bad.output


def test_a_model_in_memory_stays_the_users(tmp_path):
    hf, tokenizer = tiny_hf("bert", "classification")
    hf = copy.deepcopy(hf).float()
    before = {key: value.clone() for key, value in hf.state_dict().items()}
    pooler, attention_name = hf.bert.pooler, hf.config._attn_implementation
    frame = {"blocks": 1, "pruning": 1, "predictor": "whole"}
    regimen = replace(SMALL, epochs=2)
    train_rationalizer(hf, reviews(64), out=tmp_path / "m", tokenizer=tokenizer, frame=frame, regimen=regimen)
    assert all(torch.equal(before[key], value) for key, value in hf.state_dict().items())
    assert hf.bert.pooler is pooler and hf.config._attn_implementation == attention_name


def test_encoders_that_would_read_hidden_tokens_are_refused(tmp_path):
    for family in ("deberta",):
        encoder, tokenizer = encoder_of(family)
        with pytest.raises(Unsupported, match="can't be hidden from"):
            frame = Frame.of({"blocks": 1, "pruning": 1, "predictor": "whole", "full_text": "none"})
            assembled(encoder, tokenizer, frame, ["no", "yes"], 0)
    from transformers import MegatronBertConfig, MegatronBertModel, SqueezeBertConfig, SqueezeBertModel

    tokenizer = encoder_of("bert")[1]
    small = {"vocab_size": len(tokenizer), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    small |= {"intermediate_size": 64, "max_position_embeddings": 64}
    frame = {"blocks": 1, "pruning": 1, "full_text": "predictor"}
    torch.manual_seed(0)
    old = MegatronBertModel(
        MegatronBertConfig(**small)
    ).eval()  # blocks that know no places, with attention of their own
    for chosen in (frame, {}):  # before anything is measured
        with pytest.raises(Unsupported, match="can't be hidden from MegatronBertModel"):
            train_rationalizer(old, reviews(50), out=tmp_path / "o", tokenizer=tokenizer, frame=chosen)
    odd = SqueezeBertModel(SqueezeBertConfig(**small, embedding_size=32)).eval()
    with pytest.raises(Unsupported, match="can't be (split|hidden)"):
        train_rationalizer(odd, reviews(50), out=tmp_path / "o", tokenizer=tokenizer)
    hf, tokenizer = tiny_hf("gpt2", "classification")
    with pytest.raises(Unsupported, match=r"no encoder"):
        train_rationalizer(
            hf, reviews(50), out=tmp_path / "r", tokenizer=tokenizer, frame={"blocks": 1, "full_text": "none"}
        )


def test_a_typed_special_token_is_an_unknown_word():
    hf, tokenizer = built("bert", predictor="whole")
    with Float64():
        model = selective(hf, tokenizer, "tiny")
    (typed,) = model.encode([Example("A dull [SEP] story with [CLS] actors")])
    (plain,) = model.encode([Example("A dull story")])
    special = np.isin(typed.ids, hf.config.special)
    assert special.sum() == np.isin(plain.ids, hf.config.special).sum() == 2
    assert (typed.ids == tokenizer.unk_token_id).sum() == 2
    rows = lines_of(
        {"train": [Example("A dull [SEP] story with [CLS] actors", label="x")]}, tokenizer, ["x"], 64,
        lambda pieces: as_words(pieces.ids, pieces.start, hf.config.special, tokenizer),
    )  # fmt: skip
    assert rows.parts["train"][0].ids == tuple(typed.ids.tolist())  # and it learns from what it will read


def test_a_short_text_with_one_token_is_no_failure():
    """Of four words a fifth is less than one: that each keeps one, and no more, is all that can be done."""
    for count, share, room in ((4, 0.2, False), (10, 0.1, False), (10, 0.3, True)):
        model, tokenizer = built("bert", predictor="whole", sparsity=(share,))
        words = [k for k in range(len(tokenizer)) if k not in model.config.special]
        ids = torch.tensor(np.random.default_rng(0).choice(words, (64, count)))
        ends = torch.tensor([[tokenizer.cls_token_id], [tokenizer.sep_token_id]]).expand(2, 64)
        inputs = {"input_ids": torch.cat([ends[0][:, None], ids, ends[1][:, None]], 1)}
        calibrate(model, lambda inputs=inputs: [inputs])
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


def test_damaged_weights_and_configs_are_told_in_a_sentence(tmp_path):
    hf, tokenizer = tiny_hf("bert", "classification")
    broken = copy.deepcopy(hf).float()
    with torch.no_grad():
        next(iter(broken.bert.encoder.parameters()))[0] = float("nan")
    with pytest.raises(ModelError, match="hold NaN or infinite numbers"):
        train_rationalizer(broken, reviews(64), out=tmp_path / "n", tokenizer=tokenizer)
    start(tmp_path / "m", regimen=replace(SMALL, epochs=2), data=reviews(64))
    with pytest.raises(Unsupported, match="'m' is a rationalizer already"):
        train_rationalizer(str(tmp_path / "m"), reviews(64), out=tmp_path / "again")
    path = tmp_path / "m" / "config.json"
    config = json.loads(path.read_text())
    for key, value in (("base", 3), ("special", 3), ("special", [])):
        path.write_text(json.dumps({**config, key: value}))
        with pytest.raises(ModelError):
            raison.load(tmp_path / "m")


def test_padding_in_the_place_of_a_word_is_no_word():
    hf, tokenizer = built("bert", predictor="whole")
    with Float64():
        model = selective(hf, tokenizer, "tiny")
        (encoding,) = model.encode([Example(TEXTS[0])])
        (prediction,) = model.predict([encoding])
        keep = np.ones((1, len(encoding)), bool)
        keep[0, 3:6] = False
        found = {
            removal: float(
                np.ravel(model.score([Question(encoding, prediction.target, keep)], removal=removal)[0].value)[0]
            )
            for removal in ("mask", "pad_token")
        }
    assert found["pad_token"] == pytest.approx(found["mask"], abs=1e-9)


def test_labels_of_a_regression_are_numbers(tmp_path):
    with pytest.raises(InputError, match="is no number: a regression needs one|is no number"):
        start(tmp_path / "m", data=reviews(60), regression=True)


def test_a_run_of_another_experiment_is_refused(tmp_path):
    quick = replace(SMALL, epochs=2)
    start(tmp_path / "m", runs=2, regimen=quick, data=reviews(64))
    for other in ({"regimen": replace(quick, lr=1e-2)}, {"data": reviews(80)}, {"limit": 50}):
        with pytest.raises(InputError, match="another experiment"):
            start(tmp_path / "m", **{"runs": 2, "regimen": quick, "data": reviews(64), **other})
    again = start(tmp_path / "m", runs=2, regimen=quick, data=reviews(64))
    assert again["runs"] == 2


def test_half_checkpoints_are_trained_in_float32(tmp_path):
    hf, tokenizer = tiny_hf("bert", "classification")
    copy.deepcopy(hf).to(torch.bfloat16).save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    report = train_rationalizer(
        tmp_path / "base", reviews(64), out=tmp_path / "m", regimen=replace(SMALL, epochs=2), variant="whole"
    )
    assert report["frame"]["full_text"] in ("predictor", "mid_cls")
    assert next(raison.load(str(tmp_path / "m")).hf.parameters()).dtype == torch.float32


def test_the_catalog_may_hold_one(tmp_path, monkeypatch):
    """A name of the catalog whose folder a loader owns; who wants a plain model is told so."""
    from raison.models import catalog
    from raison.models.load_options import LoadOptions
    from raison.models.pretrained import plain_model
    from raison.studies.audit.run import audit

    model, tokenizer = built()
    model.float().save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    catalog.entries()
    monkeypatch.setattr(catalog, "_entries", dict(catalog._entries))
    catalog.register_folder("chooser", "Selects.", "Apache-2.0", 1, tmp_path / "m")
    catalog.register_folder("lost", "Is not there.", "Apache-2.0", 1, tmp_path / "none")
    found = raison.load("chooser")
    assert found.name == "chooser" and "own" in found.offers and "chooser" in raison.ls("models")
    assert raison.explain(found, TEXTS[0]).model == "chooser"
    with pytest.raises(Unsupported, match="chooser has no attention that could be audited"):
        audit(found, reviews(8))
    with pytest.raises(ModelError, match="explains itself and no plain one"):
        plain_model("chooser", LoadOptions())
    with pytest.raises(ModelError, match="reinstall raison"):
        raison.load("lost")
