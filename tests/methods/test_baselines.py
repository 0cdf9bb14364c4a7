"""What stands for an absent word."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import Unsupported
from raison.core.registry import methods
from raison.methods import quadrature
from raison.methods.baselines import Baseline, WordEmbeddings
from raison.models.protocol import TargetSpec
from raison.testing import tiny_hf, tiny_model
from raison.testing.precision import Float64
from tests.oracles.paths import OTHER, TASKS, TEXT, Literal, explained


@pytest.fixture(autouse=True)
def precise(request):
    """Float64 all the way, but for real models, which are float32."""
    with nullcontext() if request.node.get_closest_marker("registry") else Float64():
        yield


# -- properties ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "task"), TASKS)
def test_embeddings_are_those_of_a_trace(family, task):
    model = tiny_model(family, task)
    encoding, target = model.resolve_targets(model.encode([raison.Example(TEXT)])[0])[0]
    ((_, trace),) = model.trace([encoding], [target], want=frozenset())
    read = target.inputs(len(encoding))
    assert torch.equal(WordEmbeddings(model).of(encoding)[read], trace.embeddings[read])


# -- baselines -------------------------------------------------------------------------------------------------


def test_the_default_baseline_is_what_the_model_has():
    hf, tokenizer = tiny_hf("llama", "causal")
    pad = tokenizer.pad_token_id
    assert Baseline(WordEmbeddings(raison.load(hf, tokenizer)), "auto").name == "mask"
    tokenizer.mask_token = None
    assert Baseline(WordEmbeddings(raison.load(hf, tokenizer)), "auto").name == "pad"
    with torch.no_grad():
        hf.get_input_embeddings().weight[pad] = 0  # zero by another name
    assert Baseline(WordEmbeddings(raison.load(hf, tokenizer)), "auto").name == "mean"
    tokenizer.pad_token = None
    model = raison.load(hf, tokenizer)
    assert Baseline(WordEmbeddings(model), "auto").name == "mean"
    for name in ("mask", "pad"):
        with pytest.raises(Unsupported, match=f"has no {name} token to be a baseline: use"):
            explained(model, TEXT, f"integrated_gradients(baseline={name})")


@pytest.mark.parametrize("family", ["bart", "t5", "marian"])
def test_baselines_of_two_streams(family):
    """Each stream takes absence from its own table; Marian's encoder scales its embeddings, and so does absence."""
    model, literal = tiny_model(family, "seq2seq"), Literal(family, "seq2seq")
    encoding, target = model.resolve_targets(
        model.encode([raison.Example(OTHER)])[0], TargetSpec(target=2)
    )[0]
    free = target.free(encoding)
    assert free[encoding.segment == 0].any() and free[encoding.segment == 1].any()
    own = WordEmbeddings(model).of(encoding)
    for name in ("mean", "mask", "zero", "pad"):
        rows = Baseline(WordEmbeddings(model), name).rows(encoding, free)
        assert torch.equal(rows[~free], own[~free])
        for stream, table in enumerate(literal.tables):
            whole = table(torch.arange(table.num_embeddings)).detach()
            token = {
                "mask": literal.tokenizer.mask_token_id,
                "pad": literal.tokenizer.pad_token_id,
            }.get(name)
            expected = (
                whole.mean(0)
                if name == "mean"
                else torch.zeros_like(whole[0])
                if name == "zero"
                else whole[token]
            )
            here = free & (encoding.segment == stream)
            np.testing.assert_allclose(rows[here], expected.expand(int(here.sum()), -1), atol=1e-12)


def test_a_text_as_baseline():
    model = tiny_model("bert", "classification")
    encoding = model.encode([raison.Example(TEXT)])[0]
    free = model.resolve_targets(encoding)[0][1].free(encoding)
    words = WordEmbeddings(model)
    ids = model.codec("the town", special=False).ids
    rows = Baseline(words, "text:the town").rows(encoding, free)
    laid = np.resize(ids, int(free.sum()))
    assert torch.equal(rows[free], words.rows(0, laid))
    assert torch.equal(rows[~free], words.of(encoding)[~free])
    found = explained(model, TEXT, "integrated_gradients(baseline='text:the town', steps=3)")
    assert found.diagnostics["baseline"] == "text:the town"
    same = explained(model, TEXT, f"integrated_gradients(baseline={'text:' + TEXT!r}, steps=3)")
    assert not same.scores.any()  # a text against itself
    cut = explained(
        model, "the town", "integrated_gradients(baseline='text:a dull story with actors', steps=3)"
    )
    assert any("of which only the first" in note for note in cut.notes)


def test_zero_makes_rmsnorm_jump_and_the_note_says_so():
    """Any share of an embedding is normalised to the same length, so that equal steps never see the jump at zero."""
    model = tiny_model("llama", "causal")
    gaps = []
    for steps in (16, 64, 256):
        found = explained(
            model, TEXT, f"integrated_gradients(baseline=zero, moved=all, steps={steps})"
        )
        gaps.append(found.diagnostics["completeness_gap"])
    assert min(gaps) > 0.01
    assert any(
        note.startswith("The scores miss what they should add up to") for note in found.notes
    )
    assert (
        explained(model, TEXT, "integrated_gradients(steps=256)").diagnostics["completeness_gap"]
        < 0.01
    )


def test_notes_about_cancelling_and_unsettled_paths():
    model = tiny_model("bert", "classification")
    method = methods.build("integrated_gradients")
    close = quadrature.Integral(np.array([1.0, -1.0]), 0.5, 0.5001, 12)
    (note,) = method.doubts(close)
    assert "hardly differs from the baseline's" in note
    (note,) = method.doubts(quadrature.Integral(np.array([1.0]), 0.0, 1.001, 243, settled=False))
    assert "had not settled after 243 points" in note
    (note,) = method.doubts(quadrature.Integral(np.array([1.0]), 0.0, 1.5, 30))
    assert note.endswith("by 33 %, 0.5: the model computes no more exactly.")
    found = explained(model, TEXT, "integrated_gradients(tolerance=1e-9, most=11)")
    assert found.diagnostics["points"] <= 11 and len(found.notes) == 1
