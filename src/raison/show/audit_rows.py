"""The rows of an audit of attention: what was measured, its value, and what it is about; what is read of an audit.

The protocols say what is read of an `Audit`, which studies make: nothing here needs more than NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

__all__ = [
    "AdversaryResult",
    "AuditReport",
    "AuditRow",
    "AuditedText",
    "SpreadOfTexts",
    "audit_rows",
]

PartT = TypeVar("PartT", covariant=True)


class SpreadOfTexts(Protocol):
    """A number of every text."""

    @property
    def mean(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def deviation(self) -> float: ...
    @property
    def count(self) -> int: ...
    @property
    def left_out(self) -> int: ...
    @property
    def values(self) -> Sequence[float]: ...


class AdversaryResult(Protocol):
    """What a trained adversary reaches."""

    @property
    def kind(self) -> str: ...
    @property
    def lam(self) -> float: ...
    @property
    def jsd(self) -> float: ...
    @property
    def tvd(self) -> float: ...
    @property
    def accuracy(self) -> float: ...


class AuditedText(Protocol):
    """A text with what each of its words gets and says."""

    @property
    def tokens(self) -> Sequence[str]: ...
    @property
    def attention(self) -> Sequence[float]: ...
    @property
    def probability(self) -> Sequence[float]: ...
    @property
    def predicted(self) -> str: ...
    @property
    def label(self) -> str: ...


class ReplacedResult(Protocol):
    """Accuracy and F1 with other attention, and how far they fall."""

    @property
    def accuracy(self) -> float: ...
    @property
    def f1(self) -> float: ...
    @property
    def accuracy_drop(self) -> float: ...
    @property
    def f1_drop(self) -> float: ...
    @property
    def versions(self) -> int: ...


class InformationResult(Protocol):
    """How much hidden states tell about words."""

    @property
    def value(self) -> float: ...
    @property
    def bias(self) -> float: ...
    @property
    def pairs(self) -> int: ...
    @property
    def k(self) -> int: ...


class TitledResults(Protocol[PartT]):
    """Several results of one kind, by what people call them."""

    def by_title(self) -> Mapping[str, PartT]: ...


class AuditReport(Protocol):
    """What an audit found."""

    @property
    def model(self) -> str: ...
    @property
    def data(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def accuracy(self) -> float: ...
    @property
    def f1(self) -> float: ...
    @property
    def f1_of(self) -> str: ...
    @property
    def replaced(self) -> TitledResults[ReplacedResult]: ...
    @property
    def agreement(self) -> TitledResults[SpreadOfTexts]: ...
    @property
    def entropy(self) -> TitledResults[SpreadOfTexts]: ...
    @property
    def token_probability(self) -> SpreadOfTexts | None: ...
    @property
    def information(self) -> TitledResults[InformationResult]: ...
    @property
    def instance(self) -> SpreadOfTexts | None: ...
    @property
    def adversaries(self) -> Sequence[AdversaryResult]: ...
    @property
    def texts(self) -> Sequence[AuditedText]: ...
    @property
    def notes(self) -> Sequence[str]: ...

    def verdict(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class AuditRow:
    """One number of an audit."""

    name: str
    value: str
    about: str

    @classmethod
    def of_spread(cls, name: str, spread: SpreadOfTexts) -> AuditRow:
        return cls(name, mean_and_deviation_in_audit(spread), interval_and_texts_in_audit(spread))


def audit_rows(audit: AuditReport) -> Iterator[AuditRow]:
    """All that was measured."""
    yield from audit_accuracy_rows(audit)
    for name, spread in audit.agreement.by_title().items():
        yield AuditRow.of_spread(f"τ-b with {name}", spread)
    for name, spread in audit.entropy.by_title().items():
        yield AuditRow.of_spread(f"entropy of {name}", spread)
    if audit.token_probability is not None:
        yield AuditRow.of_spread(
            "probability of the answer from a word alone", audit.token_probability
        )
    for name, measured in audit.information.by_title().items():
        yield AuditRow(
            name=f"information of states about words, {name}",
            value=f"{measured.value:.2f} nats",
            about=f"{measured.bias:.2f} if shuffled; {measured.pairs} pairs, {measured.k} clusters",
        )
    if audit.instance is not None:
        yield AuditRow.of_spread("largest JSD with the same answer", audit.instance)
    for adversary in audit.adversaries:
        moved = f"answers move by {adversary.tvd:.3f} (TVD)"
        yield AuditRow(
            name=f"adversary, {adversary.kind}, λ = {adversary.lam:g}",
            value=f"JSD {adversary.jsd:.3f}",
            about=f"accuracy {adversary.accuracy:.3f}, {moved}",
        )


def audit_accuracy_rows(audit: AuditReport) -> Iterator[AuditRow]:
    """Accuracy and F1, also with attention that was replaced."""
    texts = f"{audit.count} texts of {audit.data}"
    yield AuditRow("accuracy", audit_number_in_decimals(audit.accuracy), texts)
    has_f1 = bool(np.isfinite(audit.f1))
    if not has_f1:
        yield AuditRow("F1", "–", f"not defined: no text is {audit.f1_of}")
    elif audit.f1_of:
        yield AuditRow("F1", audit_number_in_decimals(audit.f1), f"of {audit.f1_of}")
    else:
        yield AuditRow("F1", audit_number_in_decimals(audit.f1), "")

    for name, measured in audit.replaced.by_title().items():
        times = ""
        if measured.versions > 1:
            times = f", mean of {measured.versions}"
        if has_f1:
            yield AuditRow(
                name=f"F1 with {name} attention",
                value=audit_number_in_decimals(measured.f1),
                about=describe_accuracy_drop_in_audit(measured.f1_drop) + times,
            )
        yield AuditRow(
            name=f"accuracy with {name} attention",
            value=audit_number_in_decimals(measured.accuracy),
            about=describe_accuracy_drop_in_audit(measured.accuracy_drop) + times,
        )


def audit_number_in_decimals(value: float) -> str:
    """A number of an audit as it is shown."""
    return f"{value:.3f}"


def describe_accuracy_drop_in_audit(drop: float) -> str:
    """By how many points a share falls."""
    points = round(100 * drop, 1)
    if points == 0:
        return "the same"
    if points > 0:
        return f"falls by {points:.1f} points"
    return f"rises by {-points:.1f} points"


def mean_and_deviation_in_audit(spread: SpreadOfTexts) -> str:
    """`0.512 ± 0.104`, without the deviation where there is one text only."""
    if not spread.count:
        return "–"
    if spread.count == 1:
        return f"{spread.mean:.3f}"
    return f"{spread.mean:.3f} ± {spread.deviation:.3f}"


def interval_and_texts_in_audit(spread: SpreadOfTexts) -> str:
    """The interval of the mean, and for how many texts the number is defined."""
    parts = []
    if spread.count > 1:
        parts.append(f"{spread.low:.3f} … {spread.high:.3f}, {spread.count} texts")
    elif spread.count == 1:
        parts.append("one text")
    if spread.left_out:
        parts.append(f"not defined for {spread.left_out}")
    return "; ".join(parts)
