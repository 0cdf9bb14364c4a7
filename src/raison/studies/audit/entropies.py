"""Normalised entropy of attention, of importance, and of influence on a hidden state (P2 Figure 2, Table 1)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core import progress
from raison.core.json_record import record_field
from raison.metrics.attention import normalised_entropy
from raison.models.float64 import COARSE
from raison.models.load import load
from raison.models.protocol import InspectableModel
from raison.studies.audit.audit_numbers import AuditRecord, Spread, measured_audit_numbers
from raison.studies.audit.audited_texts import AttentiveTexts, AuditedTexts
from raison.studies.audit.state_importance import influence_on_states

__all__ = ["Entropies", "normalised_entropies", "texts_for_entropy_facets"]

FACETED = 8  # texts whose influence is measured facet by facet as well, which costs as many passes as a state is wide
SHORT = 64  # tokens of such a text, if there are such: the passes of a longer one take minutes


@dataclass(frozen=True, eq=False)
class Entropies(AuditRecord):
    """Normalised entropies, from 0 (one word) to 1 (all words alike); None for what a model does not define."""

    attention: Spread | None = record_field("Spread", default=None)
    gradient_of_words: Spread | None = record_field("Spread", default=None)
    leaving_words_out: Spread | None = record_field("Spread", default=None)
    influence: Spread | None = record_field("Spread", default=None)
    influence_by_facet: Spread | None = record_field("Spread", default=None)
    influence_same_texts: Spread | None = record_field(
        "Spread", default=None
    )  # as the facets are measured on

    def by_title(self) -> dict[str, Spread]:
        """What was measured, by what people call it."""
        named = {
            "attention": self.attention,
            "gradient of words": self.gradient_of_words,
            "leaving words out": self.leaving_words_out,
            "influence": self.influence,
            "influence, by facet": self.influence_by_facet,
            "influence, same texts": self.influence_same_texts,
        }
        return measured_audit_numbers(named)


def normalised_entropies(texts: AuditedTexts) -> Entropies:
    """Entropies of attention, of words' importance, of words' influence on hidden states."""
    attention = entropies_of_rows(texts.attention)
    gradients = entropies_of_rows(texts.gradients)
    removals = entropies_of_rows(texts.removals)

    model = entropy_model_in_float64(texts.model)
    influences = []
    for number, encoding in enumerate(texts.encodings):
        influences.append(mean_entropy(influence_on_states(model, encoding)))
        progress.report(number + 1, len(texts), "influence of words on hidden states")

    faceted: list[int] = []
    if isinstance(texts, AttentiveTexts):
        faceted = texts_for_entropy_facets([len(encoding) for encoding in texts.encodings])
    by_facet = []
    for number in faceted:
        by_facet.append(
            mean_entropy(influence_on_states(model, texts.encodings[number], facets=True))
        )
    same_texts = [influences[number] for number in faceted]
    return Entropies(
        attention=Spread.of(attention, texts.seed),
        gradient_of_words=Spread.of(gradients, texts.seed),
        leaving_words_out=Spread.of(removals, texts.seed),
        influence=Spread.of(influences, texts.seed),
        influence_by_facet=Spread.of(by_facet, texts.seed) if faceted else None,
        influence_same_texts=Spread.of(same_texts, texts.seed) if faceted else None,
    )


def entropy_model_in_float64(model: InspectableModel) -> InspectableModel:
    """A copy in double precision: behind a LayerNorm hidden states are nearly of one size, and what moves them is lost
    in float32."""
    hf = copy.deepcopy(model.hf)
    if model.device.type in COARSE:
        hf = hf.cpu()
    precise = load(hf.double(), model.tokenizer)
    if not isinstance(precise, InspectableModel):
        raise TypeError(
            f"{model.name} was loaded as {type(precise).__name__}."
        )  # a copy is what the original is
    return precise


def entropies_of_rows(rows: Sequence[np.ndarray]) -> list[float]:
    return [entropy_of_row(row) for row in rows]


def entropy_of_row(row: np.ndarray) -> float:
    """NaN where there is none: one word, or no importance at all."""
    if len(row) < 2 or not row.any():
        return float("nan")
    return float(normalised_entropy(row))


def mean_entropy(rows: np.ndarray) -> float:
    """The mean over hidden states, of those that have an entropy."""
    entropies = []
    for row in rows:
        entropies.append(entropy_of_row(row))
    values = np.array(entropies)
    defined = values[np.isfinite(values)]
    if len(defined):
        return float(np.mean(defined))
    return float("nan")


def texts_for_entropy_facets(lengths: Sequence[int]) -> list[int]:
    """A few texts, neither the shortest nor long ones; where all are long, the shortest."""
    by_length = sorted(range(len(lengths)), key=lambda number: lengths[number])
    short = sum(length <= SHORT for length in lengths)
    first_quarter = len(by_length) // 4
    start = max(0, min(first_quarter, short - FACETED))
    chosen = by_length[start:short][:FACETED]
    return chosen or by_length[:1]
