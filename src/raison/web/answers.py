"""What the server answers: records whose JSON the page reads."""

from __future__ import annotations

from dataclasses import dataclass

from raison.core.json_record import Record
from raison.core.records import Encoding, Explanation
from raison.studies.trust import Trust
from raison.studies.what_if import HeadsOfAnswer

__all__ = ["ExplanationAnswer", "HeadsAnswer", "PredictionAnswer", "TrustAnswer"]


@dataclass(frozen=True, eq=False)
class PredictionAnswer(Record):
    """What a model says about a text, and how it cuts the text into tokens."""

    encoding: Encoding
    text: str  # the predicted outcome
    value: float | None  # None: of a translation nobody has asked it
    kind: str  # label | tag | span | token | text
    top: tuple[tuple[str, float], ...]  # the best outcomes with their values
    probable: bool  # values are probabilities


@dataclass(frozen=True, eq=False)
class ExplanationAnswer(Record):
    """Explanations, and the Python that gives the same."""

    explanations: tuple[Explanation, ...]
    python: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TrustAnswer(Record):
    """How far an explanation by a method can be trusted."""

    trust: Trust
    method: str


@dataclass(frozen=True, eq=False)
class HeadsAnswer(Record):
    """All heads, the explanation, and the same without some of them."""

    heads: HeadsOfAnswer
    explanation: Explanation
    muted: Explanation | None = None
