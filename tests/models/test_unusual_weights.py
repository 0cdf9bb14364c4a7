"""Models whose weights are no ordinary parameters: pruned, made in inference mode, or not there at all."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch.nn.utils import prune

import raison
from raison.core.errors import ModelError
from raison.testing import tiny_hf

TEXT = "The film is a lovely surprise"
METHODS = ("leave_one_out", "gradient_norm", "attn_lrp", "attention_rollout")


def scores(model) -> np.ndarray:
    return np.stack([raison.explain(model, TEXT, method).scores for method in METHODS])


def linears(hf) -> list[torch.nn.Module]:
    return [
        module
        for module in hf.modules()
        if isinstance(module, (torch.nn.Linear, torch.nn.Embedding))
    ]


@pytest.mark.parametrize(("family", "task"), [("bert", "classification"), ("llama", "causal")])
def test_a_pruned_model_is_explained_as_the_one_whose_zeros_were_written(family, task):
    hf, tokenizer = tiny_hf(family, task)
    hf = copy.deepcopy(hf)
    for module in linears(hf):
        prune.l1_unstructured(module, "weight", 0.3)
    model = raison.load(hf, tokenizer)
    inputs = tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        answer = (
            hf(**inputs)
            .logits.log_softmax(-1)
            .reshape(-1, hf.config.vocab_size if task == "causal" else 3)[-1]
        )
    (said,) = model.predict(model.encode(raison.api.examples_of(TEXT)))
    assert said.value == pytest.approx(
        float(answer.exp().max()), rel=1e-6
    )  # llama rounds some of it to float32
    found = scores(model)
    hooks = sum(len(module._forward_pre_hooks) for module in hf.modules())
    assert hooks == len(linears(hf))  # the user's model is as it was
    for module in linears(hf):
        prune.remove(module, "weight")
    np.testing.assert_allclose(found, scores(raison.load(hf, tokenizer)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("family", "task"), [("bert", "classification"), ("llama", "causal")])
def test_a_model_that_was_made_in_inference_mode_is_explained_as_any_other(family, task):
    hf, tokenizer = tiny_hf(family, task)
    with torch.inference_mode():
        other = copy.deepcopy(hf)
        within = raison.load(hf, tokenizer)
    expected = scores(raison.load(hf, tokenizer))
    model = raison.load(other, tokenizer)
    np.testing.assert_array_equal(scores(model), expected)
    np.testing.assert_array_equal(scores(within), expected)
    assert (
        model.runner.view.get_input_embeddings().weight.data_ptr()
        == other.get_input_embeddings().weight.data_ptr()
    )


def test_a_model_without_values_is_told():
    hf, tokenizer = tiny_hf("bert", "classification")
    with pytest.raises(
        ModelError, match="on the device 'meta' or offloaded in part .*has no values"
    ):
        raison.load(copy.deepcopy(hf).to("meta"), tokenizer)
    partly = copy.deepcopy(hf)
    partly.classifier.to("meta")
    with pytest.raises(ModelError, match="classifier.weight has no values"):
        raison.load(partly, tokenizer)
