"""The verdict of an audit in sentences: one on every test, with the number that carries it, and a conclusion.

A test speaks for attention (1), against it (−1), or is not decided (0): where a number lies between two thresholds, or
where so few texts were looked at that its interval reaches over both. What is compared is what is printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.studies.audit.adversarial_attention import FAR
from raison.studies.audit.audit_numbers import Spread
from raison.studies.audit.replaced_attention import ReplacedScores
from raison.studies.audit.trained_adversary import Adversary

__all__ = ["AuditFindings", "verdict_sentences"]

FEW = 10  # fewer texts decide nothing
CHANCE = 0.02  # above the share of the commonest class: from there on a model has learned something
# points: answers depend on attention from the one on, hardly below the other
LARGE_LOSS, SMALL_LOSS = 5, 2

FOR, UNDECIDED, AGAINST = 1, 0, -1


@dataclass(frozen=True, kw_only=True)
class AuditFindings:
    """The numbers of an audit that its verdict rests on; None where one is not defined."""

    count: int  # texts
    accuracy: float
    commonest: float  # share of the commonest label
    permuted: ReplacedScores | None
    gradient_agreement: Spread | None
    influence: Spread | None
    instance: Spread | None
    adversaries: Sequence[Adversary]


@dataclass(frozen=True)
class Finding:
    """What one test says: a sentence, and whether it speaks for attention, against it, or is not decided."""

    sentence: str
    sign: int


def verdict_sentences(findings: AuditFindings) -> list[str]:
    """Sentences about an audit; the last one answers the question."""
    results = verdict_test_results(findings)
    sentences = [result.sentence for result in results]
    signs = [result.sign for result in results]
    if findings.commonest and findings.accuracy < findings.commonest + CHANCE:
        warning = (
            f"It is right on {findings.accuracy:.0%} of the texts, and the commonest label would be on "
            f"{findings.commonest:.0%}: there is little to explain."
        )
        sentences.insert(0, warning)
    sentences.append(conclusion_from_signs(signs))
    return sentences


def conclusion_from_signs(signs: Sequence[int]) -> str:
    """The answer to the question, from what all tests say."""
    if not signs:
        return "Too little is defined for this model and these texts to say whether its attention explains it."
    speak_for = signs.count(FOR)
    speak_against = signs.count(AGAINST)
    if speak_for >= 2 and not speak_against:
        return "Its attention can be read as an explanation of its answers."
    if speak_against and speak_against >= speak_for:
        return "Its attention should not be read as an explanation of its answers."

    reason = "no test decides"
    if speak_against:
        reason = "not all tests agree"
    elif speak_for:
        reason = "only one test speaks for it"
    return f"Its attention can be read as an explanation with care only: {reason}."


def verdict_test_results(findings: AuditFindings) -> list[Finding]:
    """The tests that are defined for this audit."""
    results = []
    if findings.permuted is not None:
        results.append(verdict_on_shuffled_attention(findings.permuted, findings.count))
    if findings.gradient_agreement is not None and findings.gradient_agreement.count:
        results.append(verdict_on_agreement_with_gradients(findings.gradient_agreement))
    if findings.influence is not None and findings.influence.count:
        results.append(verdict_on_mixing_of_states(findings.influence))
    if findings.instance is not None and findings.instance.count:
        results.append(verdict_on_other_attention(findings.instance))
    frozen = [adversary for adversary in findings.adversaries if adversary.kind == "frozen"]
    if frozen:
        results.append(verdict_on_trained_attention(frozen, findings.accuracy))
    return results


def verdict_on_shuffled_attention(scores: ReplacedScores, count: int) -> Finding:
    """Shuffled attention; where a class is missing F1 is not defined, and accuracy is."""
    title = "accuracy"
    drop = scores.accuracy_drop
    if np.isfinite(scores.f1_drop):
        title = "F1"
        drop = scores.f1_drop
    lost = points_lost_in_audit(drop)
    change = "does not fall"
    if lost > 0:
        change = f"falls by {lost:.1f} points"
    elif lost < 0:
        change = f"rises by {-lost:.1f} points"

    sign = verdict_sign_of_loss(lost) if count >= FEW else UNDECIDED
    how = {FOR: "depend", UNDECIDED: "depend somewhat", AGAINST: "hardly depend"}[sign]
    return Finding(
        f"With its attention weights shuffled among the words {title} {change}: answers {how} on where attention "
        "looks.",
        sign,
    )


def verdict_on_agreement_with_gradients(tau: Spread) -> Finding:
    """Attention beside the words' importance by gradients."""
    sign = verdict_sign_by_thresholds(tau, weak=0.25, strong=0.5)
    words_by_sign = {
        FOR: "agrees with",
        UNDECIDED: "agrees in part with",
        AGAINST: "has little to do with",
    }
    how = words_by_sign[sign]
    number = f"mean τ-b {tau.mean:.2f}{interval_of_few_audited_texts(tau)}"
    return Finding(f"Attention {how} the words' importance by gradients ({number}).", sign)


def verdict_on_mixing_of_states(influence: Spread) -> Finding:
    """How many words a hidden state, to which attention is paid, has taken in."""
    sign = -verdict_sign_by_thresholds(influence, weak=0.4, strong=0.7)
    words_by_sign = {
        FOR: "belongs to a few words",
        UNDECIDED: "mixes some words",
        AGAINST: "mixes many words",
    }
    how = words_by_sign[sign]
    number = f"entropy of influence {influence.mean:.2f}{interval_of_few_audited_texts(influence)}"
    return Finding(f"A hidden state {how} ({number}, where 1 is all alike).", sign)


def verdict_on_other_attention(instance: Spread) -> Finding:
    """Single texts: another attention with the same answer. Solved exactly that exists for nine texts in ten of every
    kind of model, tied ones too, so only its absence says something (as Wiegreffe & Pinter 2019 argue)."""
    is_far = np.array(instance.values) > FAR
    far = round(100 * float(np.mean(is_far)))
    sign = UNDECIDED
    usual = ", as it is with nearly every model"
    if far < 50:
        usual = ""
        if instance.count >= FEW:
            sign = FOR
    return Finding(
        f"For {far}% of {instance.count} texts there is an attention that is very different (JSD above {FAR:g} of at "
        f"most 0.69) and gives the same answer{usual}.",
        sign,
    )


def verdict_on_trained_attention(frozen: Sequence[Adversary], accuracy: float) -> Finding:
    """The frozen adversary that moved attention farthest; an unfrozen one is another model and says nothing here."""
    farthest = max(frozen, key=lambda adversary: adversary.jsd)
    lost = points_lost_in_audit(accuracy - farthest.accuracy)
    sign = verdict_sign_of_loss(lost) if farthest.jsd > FAR else UNDECIDED
    cost = "costs no accuracy"
    if lost > 0:
        cost = f"costs {lost:.1f} points of accuracy"
    return Finding(
        f"A trained attention that is as different as it can be (JSD {farthest.jsd:.2f}) {cost}.",
        sign,
    )


def points_lost_in_audit(drop: float) -> float:
    """A drop in per cent, as it is printed; never −0."""
    return round(100 * drop, 1) + 0.0


def verdict_sign_of_loss(lost: float) -> int:
    """What a loss of points says: other attention that costs answers speaks for the model's own."""
    if lost >= LARGE_LOSS:
        return FOR
    if lost < SMALL_LOSS:
        return AGAINST
    return UNDECIDED


def verdict_sign_by_thresholds(spread: Spread, *, weak: float, strong: float) -> int:
    """1 at `strong` or above, −1 below `weak`; 0 between, and where the interval reaches over both."""
    mean = round(spread.mean, 2)
    if mean >= strong and spread.low >= weak:
        return 1
    if mean < weak and spread.high < strong:
        return -1
    return 0


def interval_of_few_audited_texts(spread: Spread) -> str:
    """The interval, of few texts, where it matters."""
    if not 1 < spread.count < 50:
        return ""
    return f", {spread.low:.2f} to {spread.high:.2f} on {spread.count} texts"
