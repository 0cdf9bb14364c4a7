"""Texts of an audit shown word by word, with the probability of the answer from each word alone (P3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from raison.core.records import Example
from raison.metrics.attention import probability_from_token_logits
from raison.models.protocol import InspectableModel
from raison.studies.audit.audit_numbers import AuditRecord, Spread
from raison.studies.audit.audited_texts import AttentiveTexts, AuditedTexts, audited_texts

__all__ = [
    "ShownText",
    "probability_from_words",
    "show_words_of_given_texts",
    "show_words_of_texts",
]

MEDIUM = range(6, 31)  # words of a text that is shown first


@dataclass(frozen=True, eq=False)
class ShownText(AuditRecord):
    """A text with what each of its words gets and says."""

    tokens: tuple[str, ...]
    attention: tuple[float, ...]
    probability: tuple[
        float, ...
    ]  # of the predicted class, from this word alone; empty where that is not defined
    gradient: tuple[float, ...]
    predicted: str
    label: str


def probability_from_words(texts: AttentiveTexts) -> Spread:
    """The probability of the predicted class from each word alone; of texts that are classified correctly."""
    values = []
    for logits, predicted, gold in zip(texts.word_logits, texts.predicted, texts.gold, strict=True):
        values.append(
            probability_from_token_logits(logits, int(predicted))
            if predicted == gold
            else float("nan")
        )
    return Spread.of(values, texts.seed)


def show_words_of_texts(texts: AuditedTexts, count: int) -> tuple[ShownText, ...]:
    """Texts word by word: the first of medium length, where there are such."""
    lengths = [len(real) for real in texts.real]
    medium_first = sorted(range(len(lengths)), key=lambda number: lengths[number] not in MEDIUM)
    shown = []
    for number in medium_first[:count]:
        shown.append(show_words_of_text(texts, number))
    return tuple(shown)


def show_words_of_text(texts: AuditedTexts, number: int) -> ShownText:
    """One text word by word."""
    probability: tuple[float, ...] = ()
    if isinstance(texts, AttentiveTexts):
        probability = texts.word_probabilities(number)
    tokens = texts.encodings[number].tokens
    return ShownText(
        tokens=tuple(tokens[position] for position in texts.real[number]),
        attention=tuple(round(float(weight), 4) for weight in texts.attention[number]),
        probability=probability,
        gradient=tuple(round(float(share), 4) for share in texts.gradients[number]),
        predicted=texts.model.labels[texts.predicted[number]],
        label=str(texts.examples[number].label),
    )


def show_words_of_given_texts(
    model: InspectableModel, given: Sequence[str], seed: int
) -> tuple[ShownText, ...]:
    """Texts of the user's own word by word; they have no label."""
    if not given:
        return ()
    encodings = model.encode([Example(text) for text in given], truncate=True)
    unlabelled = []
    for text in given:
        unlabelled.append(Example(text, label=model.labels[0]))
    texts = audited_texts(model, unlabelled, encodings, seed)
    shown = []
    for shown_text in show_words_of_texts(texts, len(given)):
        shown.append(replace(shown_text, label=shown_text.predicted))
    return tuple(shown)
