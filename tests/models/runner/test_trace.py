"""Maps and gradients of a trace against slow, literal code, with plain transformers calls only."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import raison
from raison.models.protocol import Question, TargetSpec
from raison.testing import tiny_model
from raison.testing.precision import Float64
from tests.helpers.eager_models import DECODERS, ENCODERS, TEXT, WRITERS, eager


@pytest.fixture(autouse=True)
def precise():
    with Float64():
        yield


# -- attention and gradients ------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ENCODERS + DECODERS)
def test_maps_are_the_models_own(family):
    """Recorded maps = transformers' output_attentions; readout rows as the architecture defines them."""
    model = tiny_model(family, "classification")
    encoding = model.encode([raison.Example(TEXT)])[0]
    ((_, trace),) = model.trace(
        [encoding],
        [model.resolve_targets(encoding)[0][1]],
        want=frozenset({"attention", "readout"}),
    )
    hf, _ = eager(family, "classification")
    with torch.no_grad():
        expected = hf(
            input_ids=torch.from_numpy(encoding.ids.copy())[None], output_attentions=True
        ).attentions
    assert len(trace.maps) == len(expected)
    for seen, weights in zip(trace.maps, expected, strict=True):
        assert torch.equal(seen.weights, weights[0].double())
    row = len(encoding) - 1 if family in DECODERS else 0
    pooling = getattr(hf.config, "classifier_pooling", "cls")
    expected_rows = (
        np.full(len(encoding), 1 / len(encoding))
        if pooling == "mean"
        else np.eye(len(encoding))[row]
    )
    np.testing.assert_allclose(trace.readout, expected_rows, atol=1e-9)


@pytest.mark.parametrize("family", WRITERS)
def test_encoder_decoder_maps(family):
    model = tiny_model(family, "seq2seq")
    encoding, target = model.resolve_targets(model.encode([raison.Example(TEXT)])[0])[0]
    ((_, trace),) = model.trace(
        [encoding], [target], want=frozenset({"attention", "attention_gradients", "gradients"})
    )
    hf, _ = eager(family, "seq2seq")
    source = torch.from_numpy(encoding.ids[encoding.segment == 0].copy())[None]
    prefix = torch.from_numpy(encoding.ids[encoding.segment != 0].copy())[None, :-1]
    with torch.no_grad():
        out = hf(input_ids=source, decoder_input_ids=prefix, output_attentions=True)
    for kind, expected in (
        ("encoder", out.encoder_attentions),
        ("decoder", out.decoder_attentions),
        ("cross", out.cross_attentions),
    ):
        found = [m for m in trace.maps if m.kind == kind]
        assert len(found) == len(expected)
        for seen, weights in zip(found, expected, strict=True):
            assert torch.equal(seen.weights, weights[0])
    value = out.logits.log_softmax(-1)[0, range(prefix.shape[1]), list(target.ids)].sum()
    assert abs(float(value) - trace.value) < 1e-9


@pytest.mark.parametrize("family", ENCODERS)
def test_gradient_methods_on_classifiers(family):
    model = tiny_model(family, "classification")
    hf, _ = eager(family, "classification")
    norm = raison.explain(model, TEXT, method="gradient_norm", units="token", target=1)
    product = raison.explain(model, TEXT, method="input_x_gradient", units="token", target=1)
    ids = torch.from_numpy(norm.encoding.ids.copy())[None]
    embedded = hf.get_input_embeddings()(ids).detach().requires_grad_(True)
    hf(inputs_embeds=embedded).logits[0, 1].backward()
    free = norm.units.of >= 0
    np.testing.assert_allclose(norm.scores, embedded.grad[0].norm(dim=-1).numpy()[free], rtol=1e-9)
    expected = (embedded.grad * embedded).sum(-1)[0].detach().numpy()
    np.testing.assert_allclose(product.scores, expected[free], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(product.parts["token_scores"], expected, rtol=1e-9, atol=1e-12)


def test_attention_gradient_by_finite_differences():
    """d value / d A, by nudging one weight of a recorded map through the head factor of a one-head model."""
    model = tiny_model("bert", "classification")
    encoding = model.encode([raison.Example(TEXT)])[0]
    target = model.resolve_targets(encoding, TargetSpec(target=1))[0][1]
    ((_, trace),) = model.trace([encoding], [target], want=frozenset({"attention_gradients"}))
    step = 1e-5
    for layer, head in ((0, 0), (0, 1), (1, 1)):
        values = []
        for sign in (1, -1):
            factor = np.ones((2, 2))
            factor[layer, head] += sign * step
            ((_, moved),) = model.trace(
                [encoding], [target], want=frozenset({"gradients"}), heads=factor
            )
            values.append(moved.value)
        seen = trace.maps[layer]
        expected = float(
            (seen.gradient * seen.weights)[head].sum()
        )  # the derivative along A itself
        assert abs((values[0] - values[1]) / (2 * step) - expected) < 1e-6


def test_switching_a_head_off_removes_its_output():
    model = tiny_model("bert", "classification")
    hf, _ = eager("bert", "classification")
    encoding = model.encode([raison.Example(TEXT)])[0]
    target = model.resolve_targets(encoding, TargetSpec(target=0))[0][1]
    heads = np.array([[1, 0], [1, 1]])
    (found,) = model.score(
        [Question(encoding, target, np.ones((1, len(encoding)), bool))], heads=heads
    )
    with torch.no_grad():
        dense = hf.bert.encoder.layer[0].attention.output.dense.weight
        dense[:, 8:] = 0  # the second head's part of the output projection
        expected = hf(input_ids=torch.from_numpy(encoding.ids.copy())[None]).logits[0, 0]
    assert abs(found.value[0, 0] - float(expected)) < 1e-9


# -- explain ------------------------------------------------------------------------------------------------


def test_captum_agrees_on_saliency_and_ablation():
    captum = pytest.importorskip("captum.attr")
    model = tiny_model("bert", "classification")
    hf, tokenizer = eager("bert", "classification")
    found = raison.explain(model, TEXT, method="input_x_gradient", units="token", target=1)
    ids = torch.from_numpy(found.encoding.ids.copy())[None]
    layer = captum.LayerGradientXActivation(
        lambda i: hf(input_ids=i).logits, hf.bert.embeddings.word_embeddings
    )
    expected = layer.attribute(ids, target=1).sum(-1)[0].detach().numpy()
    np.testing.assert_allclose(found.scores, expected[found.units.of >= 0], rtol=1e-7, atol=1e-10)

    ablated = raison.explain(
        model, TEXT, method="leave_one_out", units="token", target=1, removal="mask_token"
    )
    ablation = captum.FeatureAblation(lambda i: hf(input_ids=i).logits)
    expected = ablation.attribute(ids, baselines=tokenizer.mask_token_id, target=1)[0].numpy()
    np.testing.assert_allclose(
        ablated.scores, expected[ablated.units.of >= 0], rtol=1e-6, atol=1e-9
    )
