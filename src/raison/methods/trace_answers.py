"""Answers made from traces: one per example, and how much of the relevance reached the words.

A trace is what a model shows of one forward and backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch

from raison.methods.base import Answer, Batch
from raison.models.protocol import Model, Trace
from raison.models.relevance.mode import Rules

__all__ = [
    "GRADIENTS",
    "answer_with_conservation",
    "answers_by_gradient_rules",
    "answers_from_traces",
    "notes_on_rules_missing_in_trace",
    "require_traced",
    "sum_of_relevance",
    "tensor_to_numpy",
]

T = TypeVar("T")

GRADIENTS = frozenset({"gradients"})
LOST = 1e-3  # relevance that may get lost on the way before a result says so


def answers_from_traces(
    model: Model,
    batch: Batch,
    want: frozenset[str],
    answer_of: Callable[[Trace], Answer],
    *,
    rules: Rules | None = None,
    embeddings: Sequence[torch.Tensor] | None = None,
) -> list[Answer]:
    """One answer per example, made from its trace."""
    answers: dict[int, Answer] = {}
    traces = model.trace(
        batch.encodings, batch.targets, want=want, embeddings=embeddings, rules=rules
    )
    for index, trace in traces:
        answers[index] = answer_of(trace)
    return [answers[index] for index in range(len(batch))]


def require_traced(value: T | None) -> T:
    """Something that a trace was asked for; a model whose trace lacks it is not written right."""
    if value is None:
        raise TypeError("the trace lacks something that was asked for by `want`")
    return value


def tensor_to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """The numbers of a tensor in double precision."""
    return tensor.detach().cpu().double().numpy()


def sum_of_relevance(trace: Trace) -> float:
    """The relevance of all tokens together."""
    return float(require_traced(trace.relevance).sum())


def answer_with_conservation(scores: np.ndarray, trace: Trace) -> Answer:
    """The answer of a pass that hands one unit of relevance on, and whether it arrived."""
    # a contrast is one pass minus another
    expected = 0.0 if trace.target.contrast is not None else 1.0
    total = sum_of_relevance(trace)
    lost = abs(total - expected)
    notes = notes_on_rules_missing_in_trace(trace)
    if lost > LOST:
        notes.append(
            f"Relevance was not conserved (it adds up to {total:.3g}, not {expected:g}): don't rely on it."
        )
    diagnostics: dict[str, object] = {"relevance_sum": total, "conservation_error": lost}
    return Answer(scores, diagnostics=diagnostics, notes=tuple(notes))


def answers_by_gradient_rules(
    model: Model, batch: Batch, rules: Rules, breaks: str
) -> list[Answer]:
    """The relevance of each token under gradient rules, and how the logit is shared out.

    `breaks` names the rules that do not conserve; without any, words and constants must add up to the logit.
    """

    def answer(trace: Trace) -> Answer:
        scores = tensor_to_numpy(require_traced(trace.relevance))
        words = sum_of_relevance(trace)
        rest = trace.logit - words - trace.constants
        notes = notes_on_rules_missing_in_trace(trace)
        if abs(rest) > LOST * max(1.0, abs(trace.logit)):
            notes.append(note_on_lost_relevance(trace, breaks))
        diagnostics: dict[str, object] = {
            "relevance_sum": words,
            "relevance_of_constants": trace.constants,
            "logit": trace.logit,
            "conservation_error": abs(rest),
        }
        return Answer(scores, diagnostics=diagnostics, notes=tuple(notes))

    return answers_from_traces(model, batch, frozenset({"relevance"}), answer, rules=rules)


def note_on_lost_relevance(trace: Trace, breaks: str) -> str:
    """A sentence about how much of the logit words and biases got, and why some of it was lost."""
    words = sum_of_relevance(trace)
    why = "the rest was lost: don't rely on it"
    if breaks:
        why = f"the rule for {breaks} does not conserve the rest"
    return (
        f"Of the logit {trace.logit:.3g} words got {words:.3g} and biases {trace.constants:.3g}; "
        f"{why}."
    )


def notes_on_rules_missing_in_trace(trace: Trace) -> list[str]:
    """A sentence where the model has functions that no rule is for."""
    if not trace.strange:
        return []
    names = ", ".join(trace.strange)
    return [f"There is no rule for {names} in this model: the gradient was used there."]
