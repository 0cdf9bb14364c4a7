"""A line of numbers for each audited classifier, as recipes/attention.py writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from raison.core.json_record import JsonObject
from raison.studies.audit.audit_numbers import Spread
from raison.studies.audit.audit_report import Audit
from raison.studies.audit.trained_adversary import Adversary
from raison.studies.reproduce.experiment import ResultRow, experiment_column

__all__ = ["AdversaryNumbers", "AuditLine", "AuditNumbers", "WordsOfText", "line_of_audit"]


@dataclass(frozen=True)
class AuditNumbers(ResultRow):
    """The numbers of one audit; None for what it does not tell.

    Of a number without a good and a bad side "more is better" means that it speaks for attention that explains.
    """

    accuracy: float | None = experiment_column("on the test part", higher=True, default=None)
    f1: float | None = experiment_column(
        "of the second class, test part", higher=True, default=None
    )
    uniform: float | None = experiment_column(
        "F1 lost with uniform attention", higher=True, default=None
    )
    permuted: float | None = experiment_column(
        "F1 lost with shuffled attention, the mean of ten", higher=True, default=None
    )
    tau_gradient_words: float | None = experiment_column(
        "τ-b of attention and the gradient at words", higher=True, default=None
    )
    tau_removed_words: float | None = experiment_column(
        "τ-b of attention and leaving words out", higher=True, default=None
    )
    tau_gradient_states: float | None = experiment_column(
        "τ-b of attention and the gradient at states", higher=True, default=None
    )
    tau_removed_states: float | None = experiment_column(
        "τ-b of attention and leaving states out", higher=True, default=None
    )
    entropy_attention: float | None = experiment_column("of attention", higher=False, default=None)
    entropy_gradient: float | None = experiment_column(
        "of words' importance by gradients", higher=False, default=None
    )
    entropy_removed: float | None = experiment_column(
        "of words' importance by leaving them out", higher=False, default=None
    )
    entropy_influence: float | None = experiment_column(
        "of words' influence on a hidden state", higher=False, default=None
    )
    entropy_facets: float | None = experiment_column(
        "likewise, by facets (P2 App. A), on a few texts", higher=False, default=None
    )
    token_probability: float | None = experiment_column(
        "of the answer from each word alone", higher=False, default=None
    )
    information_frequent: float | None = experiment_column(
        "of embeddings and states, frequent words, nats", higher=True, default=None
    )
    information_drawn: float | None = experiment_column(
        "likewise, words drawn by count^¾", higher=True, default=None
    )
    instance_jsd: float | None = experiment_column(
        "largest JSD of an attention with the same answer", higher=False, default=None
    )
    auprc: float | None = experiment_column(
        "of attention against words that people find loaded, the mean over texts",
        higher=True,
        default=None,
    )
    aopc: float | None = experiment_column(
        "probability that the answer loses while the most attended words go",
        higher=True,
        default=None,
    )


@dataclass(frozen=True)
class AdversaryNumbers:
    """What a trained adversary reaches."""

    kind: str
    lam: float
    jsd: float
    tvd: float
    accuracy: float


@dataclass(frozen=True)
class WordsOfText:
    """A text, and the probability that each of its words alone gives to what is predicted."""

    tokens: tuple[str, ...]
    probability: tuple[float, ...]
    predicted: str


@dataclass(frozen=True)
class AuditLine:
    """The numbers of one audited classifier."""

    data: str
    name: str  # of its kind
    seed: int
    texts: int
    numbers: AuditNumbers
    adversaries: tuple[AdversaryNumbers, ...] = ()
    shown: WordsOfText | None = None  # of the first seed: the same text of all models

    def adversary(self, kind: str, lam: float) -> AdversaryNumbers | None:
        """The adversary of a kind that was trained with this λ."""
        for adversary in self.adversaries:
            if adversary.kind == kind and adversary.lam == lam:
                return adversary
        return None

    def to_dict(self) -> JsonObject:
        """The line in JSON."""
        line = asdict(self)
        if self.shown is None:
            del line["shown"]
        return line

    @classmethod
    def from_dict(cls, line: Mapping[str, Any]) -> AuditLine:
        """The line of `to_dict`; a number that is not there was not measured."""
        shown = None
        if line.get("shown"):
            words = line["shown"]
            shown = WordsOfText(
                tuple(words["tokens"]), tuple(words["probability"]), words["predicted"]
            )
        adversaries = []
        for adversary in line["adversaries"]:
            adversaries.append(AdversaryNumbers(**adversary))
        return cls(
            data=line["data"],
            name=line["name"],
            seed=line["seed"],
            texts=line["texts"],
            numbers=AuditNumbers(**line["numbers"]),
            adversaries=tuple(adversaries),
            shown=shown,
        )


def line_of_audit(
    audit: Audit,
    *,
    data: str,
    name: str,
    seed: int,
    auprc: float | None = None,
    aopc: float | None = None,
) -> AuditLine:
    """What the tables need of one audit; `auprc` and `aopc` judge its attention as an explanation."""
    shown = None
    if seed == 0 and audit.texts:  # the same text of all models, since it is drawn by the seed
        text = audit.texts[0]
        shown = WordsOfText(
            tokens=text.tokens, probability=text.probability, predicted=text.predicted
        )
    adversaries = []
    for adversary in audit.adversaries:
        adversaries.append(adversary_numbers(adversary))
    return AuditLine(
        data=data,
        name=name,
        seed=seed,
        texts=audit.count,
        numbers=rounded_audit_numbers(numbers_of_audit(audit, auprc=auprc, aopc=aopc)),
        adversaries=tuple(adversaries),
        shown=shown,
    )


def numbers_of_audit(audit: Audit, *, auprc: float | None, aopc: float | None) -> AuditNumbers:
    """The columns of one audit; what it does not tell is None."""
    uniform = audit.replaced.uniform
    permuted = audit.replaced.permuted
    frequent = audit.information.frequent_words
    drawn = audit.information.drawn_words
    return AuditNumbers(
        accuracy=audit.accuracy,
        f1=audit.f1,
        uniform=None if uniform is None else uniform.f1_drop,
        permuted=None if permuted is None else permuted.f1_drop,
        tau_gradient_words=mean_of_spread_in_audit(audit.agreement.gradient_of_words),
        tau_removed_words=mean_of_spread_in_audit(audit.agreement.leaving_words_out),
        tau_gradient_states=mean_of_spread_in_audit(audit.agreement.gradient_of_states),
        tau_removed_states=mean_of_spread_in_audit(audit.agreement.leaving_states_out),
        entropy_attention=mean_of_spread_in_audit(audit.entropy.attention),
        entropy_gradient=mean_of_spread_in_audit(audit.entropy.gradient_of_words),
        entropy_removed=mean_of_spread_in_audit(audit.entropy.leaving_words_out),
        entropy_influence=mean_of_spread_in_audit(audit.entropy.influence),
        entropy_facets=mean_of_spread_in_audit(audit.entropy.influence_by_facet),
        token_probability=mean_of_spread_in_audit(audit.token_probability),
        information_frequent=None if frequent is None else frequent.value,
        information_drawn=None if drawn is None else drawn.value,
        instance_jsd=mean_of_spread_in_audit(audit.instance),
        auprc=auprc,
        aopc=aopc,
    )


def mean_of_spread_in_audit(spread: Spread | None) -> float | None:
    """The mean, where the number is defined for some text."""
    if spread is not None and spread.count:
        return spread.mean
    return None


def rounded_audit_numbers(numbers: AuditNumbers) -> AuditNumbers:
    """The same numbers to six digits; what is not a number is not there."""
    values: dict[str, float | None] = {}
    for item in fields(numbers):
        value = vars(numbers)[item.name]
        is_defined = value is not None and np.isfinite(value)
        values[item.name] = round(float(value), 6) if is_defined else None
    return AuditNumbers(**values)


def adversary_numbers(adversary: Adversary) -> AdversaryNumbers:
    return AdversaryNumbers(
        kind=adversary.kind,
        lam=adversary.lam,
        jsd=adversary.jsd,
        tvd=adversary.tvd,
        accuracy=adversary.accuracy,
    )
