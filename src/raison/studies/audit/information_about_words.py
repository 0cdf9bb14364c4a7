"""Mutual information of hidden states and the words at which they stand (P3 Table 2)."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from raison.core.json_record import record_field
from raison.metrics.attention import information_of_states
from raison.studies.audit.audit_numbers import AuditRecord, measured_audit_numbers
from raison.studies.audit.audited_texts import AuditedTexts, WordStates

__all__ = ["StateInformation", "WordInformation", "information_about_words"]

WORDS = 1000  # word types whose states are clustered
PAIRS = 20_000  # embeddings with their states, at most
FEWEST_PAIRS = 20


@dataclass(frozen=True, eq=False)
class StateInformation(AuditRecord):
    """Mutual information of embeddings and hidden states; see `raison.metrics.attention.Information`."""

    value: float  # nats
    bias: float  # the same after the pairs were shuffled
    pairs: int
    k: int  # clusters on each side
    used: tuple[int, ...]  # clusters that got a point


@dataclass(frozen=True, eq=False)
class WordInformation(AuditRecord):
    """The information of frequent words, and of words drawn by count^¾; None where too few pairs are there."""

    frequent_words: StateInformation | None = record_field("StateInformation", default=None)
    drawn_words: StateInformation | None = record_field("StateInformation", default=None)

    def by_title(self) -> dict[str, StateInformation]:
        """What was measured, by what people call it."""
        named = {"frequent words": self.frequent_words, "drawn words": self.drawn_words}
        return measured_audit_numbers(named)


def information_about_words(texts: AuditedTexts) -> WordInformation:
    """Mutual information of embeddings and hidden states, of frequent words and of words drawn by count^¾."""
    words = texts.word_states()
    ids = words.ids
    if not len(ids):
        return WordInformation()

    counts = np.bincount(ids)
    known = np.flatnonzero(counts)
    by_count = known[np.argsort(-counts[known], kind="stable")]
    rng = np.random.default_rng(texts.seed)
    odds = counts[known] ** 0.75
    count = min(WORDS, len(known))
    drawn = rng.choice(known, count, replace=False, p=odds / odds.sum())
    return WordInformation(
        frequent_words=information_of_words(words, by_count[:WORDS], rng, texts.seed),
        drawn_words=information_of_words(words, drawn, rng, texts.seed),
    )


def information_of_words(
    words: WordStates, chosen: np.ndarray, rng: np.random.Generator, seed: int
) -> StateInformation | None:
    """The information of some word types; None where too few tokens have one of them."""
    rows = np.flatnonzero(np.isin(words.ids, chosen))
    if len(rows) > PAIRS:
        rows = rng.choice(rows, PAIRS, replace=False)
    if len(rows) < FEWEST_PAIRS:
        return None
    information = information_of_states(words.embeddings[rows], words.states[rows], seed=seed)
    return StateInformation(**asdict(information))
