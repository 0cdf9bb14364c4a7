"""Agreement of attention with importance of words and states: τ-b, text by text (P2 Figures 1 and 4, Table 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.json_record import record_field
from raison.metrics.attention import kendall_defined, kendall_tau
from raison.studies.audit.audit_numbers import AuditRecord, Spread, measured_audit_numbers
from raison.studies.audit.audited_texts import AttentiveTexts, AuditedTexts
from raison.studies.audit.state_importance import state_gradients, state_removals

__all__ = ["Agreement", "agreement_with_importance"]


@dataclass(frozen=True, eq=False)
class Agreement(AuditRecord):
    """τ-b of attention with importance; None for what a model does not define."""

    gradient_of_words: Spread | None = record_field("Spread", default=None)
    leaving_words_out: Spread | None = record_field("Spread", default=None)
    gradient_of_states: Spread | None = record_field("Spread", default=None)
    leaving_states_out: Spread | None = record_field("Spread", default=None)

    def by_title(self) -> dict[str, Spread]:
        """What was measured, by what people call it."""
        named = {
            "gradient of words": self.gradient_of_words,
            "leaving words out": self.leaving_words_out,
            "gradient of states": self.gradient_of_states,
            "leaving states out": self.leaving_states_out,
        }
        return measured_audit_numbers(named)


def agreement_with_importance(texts: AuditedTexts) -> Agreement:
    """τ-b of attention with the importance of words and, where they are attended to directly, of hidden states."""
    words = spread_of_attention_taus(texts, texts.gradients)
    words_left_out = spread_of_attention_taus(texts, texts.removals)
    if not isinstance(texts, AttentiveTexts):
        return Agreement(gradient_of_words=words, leaving_words_out=words_left_out)
    return Agreement(
        gradient_of_words=words,
        leaving_words_out=words_left_out,
        gradient_of_states=spread_of_attention_taus(
            texts, state_gradients(texts.model, texts.encodings)
        ),
        leaving_states_out=spread_of_attention_taus(
            texts, state_removals(texts.model, texts.encodings)
        ),
    )


def spread_of_attention_taus(texts: AuditedTexts, importance: Sequence[np.ndarray]) -> Spread:
    """τ-b text by text; not defined where all weights of a text are equal."""
    taus = []
    for attention, row in zip(texts.attention, importance, strict=True):
        if kendall_defined(attention, row):
            taus.append(float(kendall_tau(attention, row)))
        else:
            taus.append(float("nan"))
    return Spread.of(taus, texts.seed)
