"""Gradients of noisy copies against slow, literal code."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch

from raison.core.registry import methods
from raison.methods.base import Batch
from raison.testing import tiny_model
from raison.testing.precision import Float64
from tests.oracles.paths import OTHER, TEXT, Literal, explained, token_scores


@pytest.fixture(autouse=True)
def precise(request):
    """Float64 all the way, but for real models, which are float32."""
    with nullcontext() if request.node.get_closest_marker("registry") else Float64():
        yield


@pytest.mark.parametrize("base", ["gradient_norm", "input_x_gradient"])
@pytest.mark.parametrize(
    ("family", "task"), [("bert", "classification"), ("t5", "seq2seq"), ("gpt2", "causal")]
)
def test_smoothgrad_without_noise_is_the_map_itself(base, family, task):
    model = tiny_model(family, task)
    found = explained(model, TEXT, f"smooth_grad(noise=0, of={base})")
    plain = explained(model, TEXT, base)
    np.testing.assert_allclose(found.scores, plain.scores, atol=1e-12)
    assert found.diagnostics["aggregation"] == plain.diagnostics["aggregation"]
    assert methods.build(f"smooth_grad(of={base})").signed == methods.build(base).signed


@pytest.mark.parametrize("base", ["gradient_norm", "input_x_gradient"])
@pytest.mark.parametrize(("family", "task"), [("bert", "classification"), ("marian", "seq2seq")])
def test_smoothgrad_copy_by_copy(base, family, task):
    """The same noise, drawn again and run one copy at a time on the raw model."""
    model, literal = tiny_model(family, task), Literal(family, task)
    found = explained(model, OTHER, f"smooth_grad(samples=5, of={base})", seed=3)
    encoding, target = found.encoding, found.target
    streams, own = literal.streams(encoding, target), literal.rows(encoding, target)
    everything = torch.cat(own)
    sigma = 0.15 * float(everything.max() - everything.min())
    assert found.diagnostics["sigma"] == pytest.approx(sigma)
    seeds = Batch([encoding], [target], [], seed=3).generator(0).integers(2**63, size=5)
    maps = []
    for seed in seeds:
        drawn = torch.from_numpy(
            np.random.default_rng(seed).standard_normal((len(encoding), everything.shape[1]))
        )
        noisy = [rows + sigma * drawn[index] for rows, index in zip(own, streams, strict=True)]
        _, gradient = literal.slope(encoding, target, noisy)
        scores = np.zeros(len(encoding))
        for index, rows, slope in zip(streams, noisy, gradient, strict=True):
            scores[index] = (
                slope.norm(dim=-1) if base == "gradient_norm" else (slope * rows).sum(-1)
            )
        maps.append(scores)
    np.testing.assert_allclose(token_scores(found), np.mean(maps, 0), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(
        found.parts["standard_error"], np.std(maps, 0, ddof=1) / np.sqrt(5), atol=1e-9
    )
    other = explained(model, OTHER, f"smooth_grad(samples=5, of={base})", seed=4)
    assert not np.allclose(other.scores, found.scores)


def test_smoothgrad_of_a_token_ignores_what_follows():
    """The range of the embeddings is that of what the target may see."""
    model = tiny_model("gpt2", "causal")
    words = "The old town lies on a hill"
    inside, alone = (
        explained(model, text, "smooth_grad(samples=3)", target=3).diagnostics["sigma"]
        for text in (words, words[:16])
    )
    assert inside == alone
