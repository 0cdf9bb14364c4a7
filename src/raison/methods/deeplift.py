"""DeepLIFT: what each word contributes to the change from an absent text to the real one, by finite differences."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from raison.methods.base import Answer, Batch, Method, method
from raison.methods.baselines import (
    Baseline,
    WordEmbeddings,
    check_baseline,
    tokens_moved_from_baseline,
)
from raison.methods.trace_answers import (
    answers_from_traces,
    notes_on_rules_missing_in_trace,
    require_traced,
    tensor_to_numpy,
)
from raison.models.protocol import Model, Trace
from raison.models.relevance.deeplift import (
    rescale_elementwise,
    rescale_layer_norm,
    rescale_logsumexp,
    rescale_product,
    rescale_quotient,
    rescale_softmax,
)
from raison.models.relevance.mode import ACTIVATIONS, Rules, one_signal, two_signals
from raison.models.relevance.rules import own_gradient_rule

__all__ = ["RESCALE", "DeepLIFT"]

RESCALE = Rules(
    (
        (two_signals("matmul", "bmm", "mul"), rescale_product),
        (two_signals("div"), rescale_quotient),
        (
            one_signal(
                *ACTIVATIONS, "pow", "rsqrt", "sqrt", "exp", "log", "reciprocal", "rdiv", "erf"
            ),
            rescale_elementwise,
        ),
        (one_signal("softmax"), rescale_softmax),
        (one_signal("logsumexp"), rescale_logsumexp),
        (one_signal("layer_norm"), rescale_layer_norm),
        (
            one_signal(
                "linear",
                "addmm",
                "matmul",
                "bmm",
                "add",
                "sub",
                "rsub",
                "mul",
                "div",
                "neg",
                "sum",
                "mean",
            ),
            own_gradient_rule,
        ),
        (two_signals("add", "sub"), own_gradient_rule),
    ),
    paired=True,
)

GAP = 0.05  # of the change: more than rounding, so worth a note
SMALLEST = 1e-300  # no gap is divided by zero


@method("deeplift")
@dataclass(frozen=True)
class DeepLIFT(Method):
    """Finite differences instead of gradients, from an absent text to the real one, through every function.

    score_i = ⟨m_i, e_i − e′_i⟩, m = the product of multipliers Δout/Δin along the way: Δy/Δx of element-wise functions,
    the mean of the other factor in a product, weights of linear ones (Shrikumar et al. 2017, the rescale rule). Softmax
    and norms are taken apart into such steps, where other code takes them as linear at their output; so the scores add
    up to f(e) − f(e′) on every family, which the diagnostics show. Two forward passes and one backward pass.
    """

    baseline: str = "auto"  # zero | pad | mask | mean | text:… | auto: mask, else pad, else mean
    paper = "Shrikumar et al. 2017"
    additive = True
    needs = frozenset({"gradients"})

    def __post_init__(self) -> None:
        check_baseline(self.baseline)

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        words = WordEmbeddings(model)
        absent = Baseline(words, self.baseline)
        pairs = []
        for encoding, target in zip(batch.encodings, batch.targets, strict=True):
            baseline = absent.rows(encoding, tokens_moved_from_baseline(encoding, target, "free"))
            pairs.append(torch.stack([words.of(encoding), baseline]))

        def answer(trace: Trace) -> Answer:
            return deeplift_contributions(trace, absent.name)

        return answers_from_traces(
            model, batch, frozenset(), answer, rules=RESCALE, embeddings=pairs
        )


def deeplift_contributions(trace: Trace, baseline: str) -> Answer:
    """The contribution of each token, and whether they add up to the change of the value."""
    scores = tensor_to_numpy(require_traced(trace.relevance))
    change = trace.cuts[0]
    error = change - float(scores.sum())
    hundredth_of_scores = abs(scores).sum() / 100
    gap = abs(error) / max(abs(change), hundredth_of_scores, SMALLEST)
    notes = notes_on_rules_missing_in_trace(trace)
    if gap > GAP:
        reason = ": the dtype is too narrow."
        if notes:
            reason = ", since gradients do not add up to it."
        notes.append(f"The scores miss {gap:.0%} of the change{reason}")
    diagnostics = {
        "value": trace.value,
        "baseline_value": trace.value - change,
        "baseline": baseline,
        "completeness_error": error,
        "completeness_gap": gap,
    }
    return Answer(scores, diagnostics=diagnostics, notes=tuple(notes))
