"""The base of the metrics of plausibility: what all agreement with people has in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from raison.metrics.base import FROM_0_TO_1, Metric, MetricKey, MetricQuestions, Numbers, Subject

__all__ = ["Plausibility", "agreement_key", "pooled_agreement_key"]


@dataclass(frozen=True)
class Plausibility(Metric):
    """Agreement with a human rationale; asks the model nothing."""

    needs = frozenset({"gold"})

    def ask(self, subject: Subject) -> MetricQuestions:
        yield from ()
        return self.numbers(subject)

    @abstractmethod
    def numbers(self, subject: Subject) -> Numbers:
        """The numbers of one text."""


def agreement_key(name: str) -> MetricKey:
    """A number from 0 to 1 of each text, of which more is better."""
    return MetricKey(name, "higher", range=FROM_0_TO_1)


def pooled_agreement_key(name: str) -> MetricKey:
    """A number from 0 to 1 that is pooled over texts, of which more is better."""
    return MetricKey(name, "higher", pooled=True, range=FROM_0_TO_1)
