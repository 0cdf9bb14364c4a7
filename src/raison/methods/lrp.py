"""LRP: a unit of relevance at the answer is handed back, function by function, to the words."""

from __future__ import annotations

from dataclasses import dataclass

from raison.methods.base import Answer, Batch, Method, method
from raison.methods.trace_answers import (
    answer_with_conservation,
    answers_from_traces,
    require_traced,
    tensor_to_numpy,
)
from raison.models.protocol import Model, Trace
from raison.models.relevance.mode import ACTIVATIONS, STATISTICS, Rules, one_signal, two_signals
from raison.models.relevance.rules import (
    addition_rule,
    constant_rule,
    half_each_rule,
    identity_rule,
    linear_rule,
    pooling_rule,
    product_of_signals_rule,
)

__all__ = ["ALPHA_BETA", "LRP"]

# P4's rules (Chefer 2021b with sums per example): relevance itself is passed on.
ALPHA_BETA = Rules(
    (
        (one_signal("linear", "addmm", "matmul", "bmm"), linear_rule),
        (two_signals("add", "sub"), addition_rule),
        (two_signals("matmul", "bmm"), product_of_signals_rule),
        (two_signals("mul"), half_each_rule),
        (one_signal(*STATISTICS), constant_rule),
        (
            one_signal(
                *ACTIVATIONS,
                "softmax",
                "layer_norm",
                "rms_norm",
                "add",
                "sub",
                "rsub",
                "mul",
                "div",
                "neg",
            ),
            identity_rule,
        ),
        (one_signal("sum", "mean"), pooling_rule),
    )
)


@method("lrp")
@dataclass(frozen=True)
class LRP(Method):
    """Layer-wise relevance propagation with P4's rules, from 1 at the answer to the word embeddings.

    Linear: α1β0; additions: in proportion, rescaled per example; products of two signals: half to each; softmax,
    activations, norms and constants: identity (Bach et al. 2015; Chefer et al. 2021; Song et al. 2024, section 3).
    The relevance of all tokens, special ones included, adds up to 1. Several target tokens: the mean of their passes.
    """

    paper = "P4: Song et al. 2024; Chefer et al. 2021"
    additive = True
    needs = frozenset({"gradients"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        def answer(trace: Trace) -> Answer:
            return answer_with_conservation(tensor_to_numpy(require_traced(trace.relevance)), trace)

        return answers_from_traces(model, batch, frozenset({"relevance"}), answer, rules=ALPHA_BETA)
