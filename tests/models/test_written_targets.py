"""Targets of models that write."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import raison
from raison.core.records import Example
from raison.models.load import load
from raison.models.protocol import TargetSpec
from raison.models.tasks.base import outcomes_of_texts
from raison.testing import tiny_hf, tiny_model

TEXT = "The old town lies on a hill"


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("The old town", "lies", " lies"),
        ("The old town", " lies", " lies"),
        ("The old town", ".", "."),
        ("(", "it", "it"),
        ("日本の首都は", "東", "東"),
        ("The old town ", "lies", "lies"),
    ],
)
def test_a_continuation_gets_a_space_only_between_words(text, target, expected):
    model = tiny_model("gpt2", "causal")
    longer, goal = model.resolve_targets(
        model.encode([raison.Example(text)])[0], TargetSpec(target=target)
    )[0]
    assert model.codec.text(goal.ids) == expected
    assert model.codec.text(longer.ids) == text + expected


def test_a_continuation_after_a_space_has_one_space():
    model = tiny_model("llama", "causal")
    longer, _ = model.resolve_targets(
        model.encode([raison.Example("The old ")])[0], TargetSpec(target="town")
    )[0]
    assert "  " not in model.codec.text(longer.ids[1:])


def test_a_decoder_with_its_own_vocabulary_is_seen():
    from transformers import MarianMTModel

    hf, tokenizer = tiny_hf("marian", "seq2seq")
    config = hf.config
    config.share_encoder_decoder_embeddings = False
    config.tie_word_embeddings = False
    torch.manual_seed(0)
    own = MarianMTModel(config).double().eval()
    with torch.no_grad():
        for weight in own.parameters():
            weight.copy_(torch.randn_like(weight) * 0.3)
    own.generation_config.max_new_tokens = 5
    model = raison.load(own, tokenizer)
    last = raison.explain(model, TEXT, "gradient_norm", target="all", units="token")[-1]
    written = last.units.of[last.encoding.segment > 0]
    assert (last.scores[written[written >= 0]] > 0).all()
    zero = raison.explain(
        model, TEXT, "leave_one_out", target="all", units="token", removal="zero"
    )[-1]
    assert np.abs(zero.scores[written[written >= 0]]).min() > 0


def test_truncation_leaves_room_for_a_continuation():
    model = tiny_model("gpt2", "causal")
    found = raison.explain(model, "good " * 100, target=" dull story", truncate=True)
    assert len(found.encoding) == model.max_tokens and found.encoding.truncated > 0
    assert found.target.text == " dull story"


def test_source_and_target_have_limits_of_their_own():
    model = tiny_model("marian", "seq2seq")
    text = "good " * 24
    size = int((model.encode([raison.Example(text)])[0].segment == 0).sum())
    assert size + 45 > model.max_tokens > max(size, 46)
    found = raison.explain(model, text, target=[7] * 45, method="gradient_norm")
    assert len(found.target.ids) == 45


def test_a_contrast_behind_punctuation_keeps_its_space():
    model = tiny_model("gpt2", "causal")
    text = "The film is a lovely surprise, and nobody"
    (encoding,) = model.encode([Example(text)])
    place = next(
        k
        for k, (a, b) in enumerate(zip(encoding.start, encoding.end, strict=True))
        if text[a:b] == " and"
    )
    found = raison.explain(model, text, "gradient_norm", target=place, contrast="the")
    assert model.codec.text(found.target.contrast) == " the"


def test_a_forced_first_token_stands_before_the_target():
    """BART's settings force `<s>`, mBART's and NLLB's a language: the model decides what comes behind it."""
    import torch

    hf, tokenizer = tiny_hf("bart", "seq2seq")
    plain = load(hf, tokenizer)
    forced = copy.deepcopy(hf)
    forced.generation_config.forced_bos_token_id = 7
    model = load(forced, tokenizer)
    (encoding,) = model.encode([Example("The film is lovely")])
    start = plain.encode([Example("The film is lovely")])[0].ids[-1]
    assert encoding.ids[-2:].tolist() == [start, 7]
    (found,) = model.resolve_targets(encoding, TargetSpec(target=" good film"))
    source = torch.tensor([encoding.ids[:-2].tolist()])
    rest = torch.tensor([[int(start), 7, *found[1].ids]])
    with torch.no_grad():
        logits = forced(input_ids=source, decoder_input_ids=rest[:, :-1]).logits.log_softmax(-1)[
            0, 1:
        ]
    expected = [float(logits[k, i]) for k, i in enumerate(found[1].ids)]
    (told,) = outcomes_of_texts(model.runner, [found[0]], [found[1]])
    own = told.log_softmax(-1)
    np.testing.assert_allclose(
        [float(own[k, i]) for k, i in enumerate(found[1].ids)], expected, atol=1e-5
    )
    with torch.no_grad():
        whole = forced.generate(input_ids=source, max_new_tokens=6, num_beams=1, do_sample=False)[
            0
        ].tolist()
    assert whole[:2] == [start, 7]
    assert model.write(encoding, 5) == [
        i for i in whole[2:] if i != forced.generation_config.eos_token_id
    ]
