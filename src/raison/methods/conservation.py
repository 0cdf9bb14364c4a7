"""How much of the relevance reached the words, and what a reader has to know where some did not."""

from __future__ import annotations

import numpy as np

from raison.methods.base import Answer, Batch
from raison.methods.traces import read_traces, require, to_numpy
from raison.models.protocol import Model, Trace
from raison.models.relevance.mode import Rules

__all__ = [
    "notes_on_missing_rules",
    "relevance_by_gradients",
    "relevance_reached",
    "with_conservation",
]

LOST = 1e-3  # relevance that may get lost on the way before a result says so


def relevance_reached(trace: Trace) -> float:
    """The relevance of all tokens together."""
    return float(require(trace.relevance).sum())


def with_conservation(scores: np.ndarray, trace: Trace) -> Answer:
    """The answer of a pass that hands one unit of relevance on, and whether it arrived."""
    # a contrast is one pass minus another
    expected = 0.0 if trace.target.contrast is not None else 1.0
    total = relevance_reached(trace)
    lost = abs(total - expected)
    notes = notes_on_missing_rules(trace)
    if lost > LOST:
        notes.append(
            f"Relevance was not conserved (it adds up to {total:.3g}, not {expected:g}): don't rely on it."
        )
    return Answer(
        scores, diagnostics={"relevance_sum": total, "conservation_error": lost}, notes=tuple(notes)
    )


def relevance_by_gradients(model: Model, batch: Batch, rules: Rules, breaks: str) -> list[Answer]:
    """The relevance of each token under gradient rules, and how the logit is shared out.

    `breaks` names the rules that do not conserve; without any, words and constants must add up to the logit.
    """

    def answer(trace: Trace) -> Answer:
        words = relevance_reached(trace)
        rest = trace.logit - words - trace.constants
        notes = notes_on_missing_rules(trace)
        if abs(rest) > LOST * max(1.0, abs(trace.logit)):
            notes.append(note_on_lost_relevance(trace, breaks))
        diagnostics: dict[str, object] = {
            "relevance_sum": words,
            "relevance_of_constants": trace.constants,
            "logit": trace.logit,
            "conservation_error": abs(rest),
        }
        return Answer(
            to_numpy(require(trace.relevance)), diagnostics=diagnostics, notes=tuple(notes)
        )

    return read_traces(model, batch, frozenset({"relevance"}), answer, rules=rules)


def note_on_lost_relevance(trace: Trace, breaks: str) -> str:
    words = relevance_reached(trace)
    shares = (
        f"Of the logit {trace.logit:.3g} words got {words:.3g} and biases {trace.constants:.3g}"
    )
    why = (
        f"the rule for {breaks} does not conserve the rest"
        if breaks
        else "the rest was lost: don't rely on it"
    )
    return f"{shares}; {why}."


def notes_on_missing_rules(trace: Trace) -> list[str]:
    """A sentence where the model has functions that no rule is for."""
    if not trace.strange:
        return []
    names = ", ".join(trace.strange)
    return [f"There is no rule for {names} in this model: the gradient was used there."]
