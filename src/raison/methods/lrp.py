"""Relevance propagation: a unit of relevance at the answer is handed back, function by function, to the words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from raison.core.spec import one_of
from raison.methods.base import Answer, Batch, Method, method, read_traces
from raison.methods.gradients import numpy
from raison.methods.rollout import last_of_each
from raison.models.protocol import Model, Trace
from raison.models.relevance.mode import ACTIVATIONS, Rules, one, two
from raison.models.relevance.rules import (
    added,
    constant,
    half_gradients,
    halved,
    linear,
    multiplied,
    own,
    passed,
    ratio,
    standardised,
    summed,
)

__all__ = ["ALPHA_BETA", "ATTN_LRP", "CPLRP", "CP_LRP", "LRP", "AttnLRP", "PartialLRP"]

STATISTICS = ("rsqrt", "sqrt", "pow", "var", "std", "norm")  # of a norm that is written out

# P4's rules (Chefer 2021b with sums per example): relevance itself is passed on.
ALPHA_BETA = Rules(
    (
        (one("linear", "addmm", "matmul", "bmm"), linear),
        (two("add", "sub"), added),
        (two("matmul", "bmm"), multiplied),
        (two("mul"), halved),
        (one(*STATISTICS), constant),
        (one(*ACTIVATIONS, "softmax", "layer_norm", "rms_norm", "add", "sub", "rsub", "mul", "div", "neg"), passed),
        (one("sum", "mean"), summed),
    )
)
# Achtibat 2024: gradients are passed on, times the input they are relevance. Softmax keeps its own (a Taylor step).
ATTN_LRP = Rules(
    (
        (two("matmul", "bmm", "mul"), half_gradients),
        (one(*STATISTICS), constant),
        (one(*ACTIVATIONS), ratio),
        (one("layer_norm"), standardised),
        (one("linear", "addmm", "matmul", "bmm", "softmax", "add", "sub", "rsub", "mul", "div", "neg"), own),
        (two("add", "sub"), own),
        (one("sum", "mean"), own),
    ),
    gradients=True,
)
# Ali 2022: attention weights are given, so relevance reaches the words through the values alone. A gate is what an
# attention weight is, the factor that says how much of the other passes: it is given, too, unless a user wants halves.
IDENTITY = ((one("softmax"), constant), *ATTN_LRP.table)
GRADIENT = ((one("softmax"), constant), (one(*ACTIVATIONS), own), *ATTN_LRP.table)
CP_LRP = {
    (activations, gates): Rules(table, gradients=True, gates_constant=gates == "constant")
    for activations, table in (("gradient", GRADIENT), ("identity", IDENTITY))
    for gates in ("constant", "half")
}


LOST = 1e-3  # relevance that may get lost on the way before a result says so


def conservation(trace: Trace) -> tuple[dict[str, Any], list[str]]:
    """Diagnostics and notes of a pass under ALPHA_BETA: how much of the relevance reached the words."""
    whole = 0.0 if trace.target.contrast is not None else 1.0  # a contrast is one pass minus another
    total = float(trace.relevance.sum())  # type: ignore[union-attr]
    notes = strange(trace)
    if abs(total - whole) > LOST:
        notes.append(f"Relevance was not conserved (it adds up to {total:.3g}, not {whole:g}): don't rely on it.")
    return {"relevance_sum": total, "conservation_error": abs(total - whole)}, notes


def strange(trace: Trace) -> list[str]:
    names = ", ".join(trace.strange)
    return [f"There is no rule for {names} in this model: the gradient was used there."] if names else []


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
            diagnostics, notes = conservation(trace)
            scores = numpy(trace.relevance)  # type: ignore[arg-type]
            return Answer(scores, diagnostics=diagnostics, notes=tuple(notes))

        return read_traces(model, batch, frozenset({"relevance"}), answer, rules=ALPHA_BETA)


@method("partial_lrp")
@dataclass(frozen=True)
class PartialLRP(Method):
    """Relevance of the last block's attention weights, positive part, mean over heads, at the rows of the answer.

    score_j = Σ_i r_i · mean_h (R^L_hij)⁺ (Voita et al. 2019, as P4 compares it). An encoder-decoder's source is read
    from its last cross-attention, its own words from the decoder's last self-attention.
    """

    paper = "Voita et al. 2019; P4"
    signed = False
    additive = True
    needs = frozenset({"gradients", "attention"})
    watches = frozenset({"readout"})

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        # where the answer is read is a matter of gradients, which the rules would bend
        plain = dict(model.trace(batch.encodings, batch.targets, want=self.watches))
        answers: list[Answer | None] = [None] * len(batch)
        want = frozenset({"relevance", "attention"})
        for index, trace in model.trace(batch.encodings, batch.targets, want=want, rules=ALPHA_BETA):
            scores = np.zeros(len(trace.encoding))
            for last in last_of_each(trace.maps):
                seen = numpy(last.relevance.clamp_min(0).mean(0))  # type: ignore[union-attr]
                scores[last.cols] += plain[index].readout[last.rows] @ seen  # type: ignore[index]
            diagnostics, notes = conservation(trace)
            answers[index] = Answer(scores, diagnostics=diagnostics, notes=tuple(notes))
        return answers  # type: ignore[return-value]


def shares_of_logit(trace: Trace, breaks: str) -> tuple[dict[str, Any], list[str]]:
    """Diagnostics and notes of a pass under gradient rules: who gets which part of the logit, and what is lost.

    `breaks` names the rules that do not conserve; without any, words and constants must add up to the logit.
    """
    words = float(trace.relevance.sum())  # type: ignore[union-attr]
    rest = trace.logit - words - trace.constants
    told: dict[str, Any] = {
        "relevance_sum": words,
        "relevance_of_constants": trace.constants,
        "logit": trace.logit,
        "conservation_error": abs(rest),
    }
    notes = strange(trace)
    if abs(rest) > LOST * max(1.0, abs(trace.logit)):
        shares = f"Of the logit {trace.logit:.3g} words got {words:.3g} and biases {trace.constants:.3g}"
        why = f"the rule for {breaks} does not conserve the rest" if breaks else "the rest was lost: don't rely on it"
        notes.append(f"{shares}; {why}.")
    return told, notes


def by_gradients(model: Model, batch: Batch, rules: Rules, breaks: str) -> list[Answer]:
    def answer(trace: Trace) -> Answer:
        diagnostics, notes = shares_of_logit(trace, breaks)
        scores = numpy(trace.relevance)  # type: ignore[arg-type]
        return Answer(scores, diagnostics=diagnostics, notes=tuple(notes))

    return read_traces(model, batch, frozenset({"relevance"}), answer, rules=rules)


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
        return by_gradients(model, batch, ATTN_LRP, "softmax")


@method("cp_lrp")
@dataclass(frozen=True)
class CPLRP(Method):
    """CP-LRP: gradient × word embedding with attention weights and the deviations of norms as constants.

    So relevance reaches the words through the values alone (Ali et al. 2022). Activations keep their gradient, as in
    the paper; activations="identity" passes relevance through them unchanged, as later code does, and conserves. The
    paper has no gated products: a gate (SwiGLU's activation) is taken as given, as the paper takes attention weights,
    which gate the values; gates="half" gives half of the relevance to each factor.
    """

    paper = "Ali et al. 2022"
    additive = True
    needs = frozenset({"gradients"})

    activations: str = "gradient"  # gradient | identity
    gates: str = "constant"  # constant | half

    def __post_init__(self) -> None:
        one_of("activations", self.activations, ("gradient", "identity"))
        one_of("gates", self.gates, ("constant", "half"))

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        breaks = "activations" if self.activations == "gradient" else ""
        return by_gradients(model, batch, CP_LRP[self.activations, self.gates], breaks)
