"""Scores of kept sets against slow, literal code, with plain transformers calls only."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import raison
from raison.core.records import Target
from raison.models.protocol import Question, TargetSpec
from raison.testing import tiny_hf, tiny_model
from raison.testing.model_contract import model_with_padding
from raison.testing.precision import Float64
from tests.helpers.eager_models import DECODERS, ENCODERS, TEXT, WRITERS, eager


@pytest.fixture(autouse=True)
def precise():
    with Float64():
        yield


def keeps(encoding, target, n=8):
    keep = np.random.default_rng(1).random((n, len(encoding))) < 0.5
    return keep | target.given(encoding)


# -- score ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize("removal", ["mask_token", "pad_token", "zero", "mask"])
def test_removals_of_encoders_one_by_one(family, removal):
    """Each keep-mask by itself, through plain transformers arguments."""
    model = tiny_model(family, "classification")
    hf, tokenizer = eager(family, "classification")
    encoding = model.encode(
        [raison.Example(TEXT, "A dull story.") if family != "roberta" else raison.Example(TEXT)]
    )[0]
    target = model.resolve_targets(encoding, TargetSpec(target=2))[0][1]
    keep = keeps(encoding, target)
    (found,) = model.score([Question(encoding, target, keep)], removal=removal)
    table = hf.get_input_embeddings()
    for row, kept in enumerate(keep):
        ids = torch.from_numpy(encoding.ids.copy())[None]
        there = torch.from_numpy(kept)[None]
        extra = (
            {}
            if encoding.types is None
            else {"token_type_ids": torch.from_numpy(encoding.types.copy())[None]}
        )
        offset = tokenizer.pad_token_id + 1 if family == "roberta" else 0
        extra["position_ids"] = torch.arange(len(encoding))[None] + offset
        if removal in ("mask_token", "pad_token"):
            ids = torch.where(there, ids, getattr(tokenizer, f"{removal}_id"))
            out = hf(input_ids=ids, attention_mask=torch.ones_like(ids), **extra)
        elif removal == "zero":
            out = hf(
                inputs_embeds=table(ids) * there[..., None],
                attention_mask=torch.ones_like(ids),
                **extra,
            )
        else:
            out = hf(input_ids=ids, attention_mask=there.long(), **extra)
        logits = out.logits[0].detach()
        assert abs(found.value[row, 0] - float(logits[2])) < 1e-9
        assert found.rank[row, 0] == int((logits > logits[2]).sum()) and found.predicted[
            row, 0
        ] == int(logits.argmax())
        others = torch.cat([logits[:2], logits[3:]])
        assert abs(found.margin[row, 0] - float(logits[2] - others.max())) < 1e-9


@pytest.mark.parametrize("family", DECODERS)
def test_deleting_in_decoders_is_masking_by_hand(family):
    """P0's rule written out: row i may see j <= i that is kept, within the layer's window by original positions."""
    model = tiny_model(family, "causal")
    hf, _ = eager(family, "causal")
    encoding = model.encode([raison.Example(TEXT)])[0]
    target = model.resolve_targets(encoding)[0][1]
    keep = keeps(encoding, target)
    (found,) = model.score([Question(encoding, target, keep)], removal="delete")
    size = len(encoding)
    index = torch.arange(size)
    window = hf.config.sliding_window if family in ("mistral", "gemma") else size
    for row, kept in enumerate(keep):
        causal = (index[None, :] <= index[:, None]) & (
            torch.from_numpy(kept)[None, :] | torch.eye(size, dtype=torch.bool)
        )
        near = causal & (index[:, None] - index[None, :] < window)
        additive = {
            n: torch.zeros(1, 1, size, size, dtype=torch.float64).masked_fill(~m, -1e9)
            for n, m in (("full", causal), ("near", near))
        }
        mask = additive["near"]
        if family == "gemma":
            mask = {"full_attention": additive["full"], "sliding_attention": additive["near"]}
        ids = torch.from_numpy(encoding.ids.copy())[None]
        logits = (
            hf(input_ids=ids, attention_mask=mask, position_ids=index[None], use_cache=False)
            .logits[0, -1]
            .detach()
        )
        expected = logits.log_softmax(-1)[target.ids[0]]
        assert abs(found.value[row, 0] - float(expected)) < 1e-8


@pytest.mark.parametrize("family", DECODERS)
def test_a_continuation_is_scored_token_by_token(family):
    model = tiny_model(family, "causal")
    hf, _ = eager(family, "causal")
    encoding, target = model.resolve_targets(
        model.encode([raison.Example("The old town")])[0], TargetSpec(target="lies on a hill")
    )[0]
    assert target.kind == "text" and model.codec.text(target.ids).strip() == "lies on a hill"
    keep = np.ones((1, len(encoding)), bool)
    (found,) = model.score([Question(encoding, target, keep)])
    with torch.no_grad():
        log_prob = (
            hf(input_ids=torch.from_numpy(encoding.ids.copy())[None]).logits[0].log_softmax(-1)
        )
    expected = [
        float(log_prob[p - 1, i]) for p, i in zip(target.positions, target.ids, strict=True)
    ]
    np.testing.assert_allclose(found.value[0], expected, atol=1e-9)


@pytest.mark.parametrize("family", WRITERS)
def test_an_empty_source_is_nothing(family):
    """What a removed source held can't be seen, by either route, and deleting equals masking."""
    model = tiny_model(family, "seq2seq")
    values = []
    for text in ("The film is lovely.", "A dull old town."):
        encoding = model.encode([raison.Example(text)])[0]
        target = Target("token", (7,), (len(encoding),), output="log_prob")
        nothing = np.zeros((1, len(encoding)), bool)
        values += [
            model.score([Question(encoding, target, nothing)], removal=r)[0].value
            for r in ("delete", "mask")
        ]
    assert max(abs(float(v[0, 0] - values[0][0, 0])) for v in values) < 1e-9


def test_questions_together_and_apart_are_the_same_bit_for_bit():
    model = tiny_model("llama", "causal")
    questions = []
    for text in (
        "The old town lies on a hill",
        "A dull story",
        "Nobody in town expected it at all",
    ):
        encoding = model.encode([raison.Example(text)])[0]
        target = model.resolve_targets(encoding)[0][1]
        questions.append(Question(encoding, target, keeps(encoding, target, 12)))
    together = model.score(questions)
    for question, found in zip(questions, together, strict=True):
        (alone,) = model.score([question])
        np.testing.assert_allclose(found.value, alone.value, atol=1e-12)
        assert (found.forwards, found.tokens) == (alone.forwards, alone.tokens)
        shown = np.unique(question.keep | question.target.given(question.encoding), axis=0)
        assert found.tokens == int(shown.sum())  # equal sets run once


@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_scores(side):
    for family, task in (
        ("gemma", "causal"),
        ("bert", "qa"),
        ("t5", "seq2seq"),
        ("modernbert", "tagging"),
    ):
        model = tiny_model(family, task)
        text = ("Who left?", TEXT) if task == "qa" else TEXT
        one, other = (
            raison.explain(m, [text, text[:2] if task == "qa" else TEXT[:12]])
            for m in (model, model_with_padding(model, side))
        )
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a.scores, b.scores, atol=1e-9)


def test_multi_label_regression_and_contrast():
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.config.problem_type = "multi_label_classification"
    model = raison.load(hf, tokenizer)
    encoding = model.encode([raison.Example(TEXT)])[0]
    target = model.resolve_targets(encoding, TargetSpec(target=1, output="prob"))[0][1]
    (found,) = model.score([Question(encoding, target, np.ones((1, len(encoding)), bool))])
    with torch.no_grad():
        logit = hf(input_ids=torch.from_numpy(encoding.ids.copy())[None]).logits[0, 1]
    assert abs(found.value[0, 0] - float(logit.sigmoid())) < 1e-9
    assert found.rank[0, 0] == int(logit <= 0) and abs(found.margin[0, 0] - float(logit)) < 1e-9

    hf.config.problem_type = None
    contrast = model.resolve_targets(encoding, TargetSpec(target=0, contrast=2))[0][1]
    (found,) = model.score([Question(encoding, contrast, np.ones((1, len(encoding)), bool))])
    with torch.no_grad():
        logits = hf(input_ids=torch.from_numpy(encoding.ids.copy())[None]).logits[0]
    assert abs(found.value[0, 0] - float(logits[0] - logits[2])) < 1e-9

    single, _ = tiny_hf("bert", "classification", labels=1)
    regression = raison.load(single, tokenizer)
    assert regression.problem == "regression"
    assert np.isfinite(raison.explain(regression, TEXT).scores).all()


# -- explain ------------------------------------------------------------------------------------------------


def test_leave_one_out_by_hand():
    model = tiny_model("gpt2", "causal")
    hf, _ = eager("gpt2", "causal")
    found = raison.explain(model, "The old town lies", units="word")
    ids = torch.from_numpy(found.encoding.ids.copy())

    def log_prob(kept):
        mask = torch.zeros(1, 1, len(kept), len(kept), dtype=torch.float64)
        mask = mask.masked_fill(torch.ones(len(kept), len(kept)).triu(1).bool(), -1e9)
        logits = (
            hf(input_ids=ids[kept][None], position_ids=kept[None], attention_mask=mask)
            .logits[0, -1]
            .detach()
        )
        return float(logits.log_softmax(-1)[found.target.ids[0]])

    everything = torch.arange(len(ids))
    for unit, score in enumerate(found.scores):
        rest = everything[torch.from_numpy(found.units.of != unit)]
        assert abs(log_prob(everything) - log_prob(rest) - score) < 1e-9


def test_all_targets_share_one_text():
    model = tiny_model("llama", "causal")
    found = raison.explain(
        model, "The old town lies", target="all", method="gradient_norm", units="token"
    )
    assert [e.target.positions[0] for e in found] == list(range(1, len(found[0].encoding)))
    for one in found:
        if not len(one.scores):  # only the start and the token it is read from stand before
            continue
        alone = raison.explain(
            model,
            "The old town lies",
            target=one.target.positions[0],
            method="gradient_norm",
            units="token",
        )
        np.testing.assert_allclose(alone.scores, one.scores, atol=1e-9)
        assert not one.scope[one.target.positions[0] :].any()


def test_a_memory_never_asks_twice_and_stays_in_its_budget():
    from raison.models.runner.score_cache import Memory

    model = tiny_model("gpt2", "causal")
    encoding = model.encode([raison.Example("The old town lies on a hill")])[0]
    target = model.resolve_targets(encoding)[0][1]
    keep = keeps(encoding, target, 30)
    question = Question(encoding, target, np.concatenate([keep, keep]))
    (plain,) = model.score([question])
    memory = Memory()
    (first,) = model.score([Question(encoding, target, keep[:20])], memory=memory)
    (second,) = model.score([question], memory=memory)
    distinct, before = (len(np.unique(k, axis=0)) for k in (keep, keep[:20]))
    assert (plain.forwards, first.forwards, second.forwards) == (
        distinct,
        before,
        distinct - before,
    )
    for name in ("value", "rank", "margin", "predicted"):
        np.testing.assert_allclose(getattr(second, name), getattr(plain, name), atol=1e-12)
    (other,) = model.score([question], memory=memory, removal="mask")
    assert other.forwards == distinct  # another removal is another question
    small = Memory(limit=3000)
    model.score([question], memory=small)
    assert 0 < small.used <= 3000
    (again,) = model.score([question], memory=small)
    assert 0 < again.forwards < distinct
    np.testing.assert_allclose(again.value, plain.value, atol=1e-12)
