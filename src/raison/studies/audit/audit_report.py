"""`Audit`, the report of an audit: numbers with their spread, texts word by word, and a verdict in plain words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from raison.core.json_record import record_field, records_field
from raison.studies.audit.attention_agreement import Agreement
from raison.studies.audit.audit_numbers import AuditRecord, Spread
from raison.studies.audit.audit_verdict import AuditFindings, verdict_sentences
from raison.studies.audit.entropies import Entropies
from raison.studies.audit.information_about_words import WordInformation
from raison.studies.audit.replaced_attention import ReplacedAttention
from raison.studies.audit.trained_adversary import Adversary
from raison.studies.audit.word_by_word import ShownText

__all__ = ["Audit"]


@dataclass(frozen=True, eq=False)
class Audit(AuditRecord):
    """What was found; numbers that are not defined for a model are None."""

    model: str
    data: str
    count: int
    accuracy: float
    f1: float
    f1_of: str = ""  # the class that it is the F1 of (NaN where no text has it); or of all classes, their mean
    commonest: float = 0.0  # share of the commonest label
    replaced: ReplacedAttention = record_field("ReplacedAttention", default=ReplacedAttention())
    agreement: Agreement = record_field("Agreement", default=Agreement())
    entropy: Entropies = record_field("Entropies", default=Entropies())
    token_probability: Spread | None = record_field("Spread", default=None)
    information: WordInformation = record_field("WordInformation", default=WordInformation())
    instance: Spread | None = record_field(
        "Spread", default=None
    )  # the largest JSD of an attention with the same answer
    adversaries: tuple[Adversary, ...] = records_field("Adversary", default=())
    texts: tuple[ShownText, ...] = records_field("ShownText", default=())
    notes: tuple[str, ...] = ()

    def verdict(self) -> list[str]:
        """What the numbers say, in sentences; the last one answers the question."""
        return verdict_sentences(
            AuditFindings(
                count=self.count,
                accuracy=self.accuracy,
                commonest=self.commonest,
                permuted=self.replaced.permuted,
                gradient_agreement=self.agreement.gradient_of_words,
                influence=self.entropy.influence,
                instance=self.instance,
                adversaries=self.adversaries,
            )
        )

    def to_json(self) -> str:
        """All numbers, and the verdict in words."""
        return json.dumps(
            {**self.to_dict(), "verdict": self.verdict()}, indent=1, ensure_ascii=False
        )

    @classmethod
    def from_dict(cls, data: Any) -> Audit:
        """The audit of `to_json`; its verdict follows from the numbers."""
        numbers = {name: value for name, value in dict(data).items() if name != "verdict"}
        return super().from_dict(numbers)
