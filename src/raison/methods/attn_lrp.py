"""AttnLRP: relevance as gradient × input, with a backward pass of its own rules."""

from __future__ import annotations

from dataclasses import dataclass

from raison.methods.base import Answer, Batch, Method, method
from raison.methods.trace_answers import answers_by_gradient_rules
from raison.models.protocol import Model
from raison.models.relevance.mode import ACTIVATIONS, STATISTICS, Rules, one_signal, two_signals
from raison.models.relevance.rules import (
    constant_rule,
    half_gradients_rule,
    norm_as_given_rule,
    own_gradient_rule,
    ratio_rule,
)

__all__ = ["ATTN_LRP", "AttnLRP"]

# Achtibat 2024: gradients are passed on, times the input they are relevance. Softmax keeps its own (a Taylor step).
ATTN_LRP = Rules(
    (
        (two_signals("matmul", "bmm", "mul"), half_gradients_rule),
        (one_signal(*STATISTICS), constant_rule),
        (one_signal(*ACTIVATIONS), ratio_rule),
        (one_signal("layer_norm"), norm_as_given_rule),
        (
            one_signal(
                "linear",
                "addmm",
                "matmul",
                "bmm",
                "softmax",
                "add",
                "sub",
                "rsub",
                "mul",
                "div",
                "neg",
            ),
            own_gradient_rule,
        ),
        (two_signals("add", "sub"), own_gradient_rule),
        (one_signal("sum", "mean"), own_gradient_rule),
    ),
    gradients=True,
)


@method("attn_lrp")
@dataclass(frozen=True)
class AttnLRP(Method):
    """AttnLRP: gradient × word embedding with a backward pass that follows the rules of relevance.

    Norms with their deviation taken as given, activations y/x, products of two signals half each, softmax by its own
    first-order step, linear by the ε-rule with ε = 0; from the target's logit (Achtibat et al. 2024). The softmax step
    does not conserve, biases take a part: diagnostics say how much of the logit words and biases got.
    """

    paper = "Achtibat et al. 2024"
    additive = True
    needs = frozenset({"gradients"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        return answers_by_gradient_rules(model, batch, ATTN_LRP, breaks="softmax")
