"""What an audit says in plain words: a sentence for every test, with the number that carries it, and a last one.

A test speaks for attention (1), against it (−1), or is not decided (0): where a number lies between two thresholds, or
where so few texts were looked at that its interval reaches over both. What is compared is what is printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from raison.studies.audit.instance import FAR

__all__ = ["verdict"]

FEW = 10  # fewer texts decide nothing
CHANCE = 0.02  # above the share of the commonest class: from there on a model has learned something
Told = tuple[str, int]


def verdict(found: Any) -> list[str]:
    """Sentences about an audit; the last one answers the question."""
    tests = list(tests_of(found))
    said = [sentence for sentence, _ in tests]
    signs = [sign for _, sign in tests]
    if found.commonest and found.accuracy < found.commonest + CHANCE:
        said.insert(
            0,
            f"It is right on {found.accuracy:.0%} of the texts, and the commonest label would be on "
            f"{found.commonest:.0%}: there is little to explain.",
        )
    return [*said, conclusion(signs)]


def conclusion(signs: list[int]) -> str:
    if not signs:
        return "Too little is defined for this model and these texts to say whether its attention explains it."
    for_, against = signs.count(1), signs.count(-1)
    if for_ >= 2 and not against:
        return "Its attention can be read as an explanation of its answers."
    if against and against >= for_:
        return "Its attention should not be read as an explanation of its answers."
    why = "not all tests agree" if against else "only one test speaks for it" if for_ else "no test decides"
    return f"Its attention can be read as an explanation with care only: {why}."


def tests_of(found: Any) -> Iterator[Told]:
    if "permuted" in found.replaced:
        yield shuffled(found.replaced["permuted"], found.count)
    tau = found.agreement.get("gradient of words")
    if tau is not None and tau.count:
        sign = decided(tau, 0.25, 0.5)
        how = {1: "agrees with", 0: "agrees in part with", -1: "has little to do with"}[sign]
        yield f"Attention {how} the words' importance by gradients (mean τ-b {tau.mean:.2f}{spanned(tau)}).", sign
    mixed = found.entropy.get("influence")
    if mixed is not None and mixed.count:
        sign = -decided(mixed, 0.4, 0.7)
        how = {1: "belongs to a few words", 0: "mixes some words", -1: "mixes many words"}[sign]
        yield (
            f"A hidden state {how} (entropy of influence {mixed.mean:.2f}{spanned(mixed)}, where 1 is all alike).",
            sign,
        )
    if found.instance is not None and found.instance.count:
        yield others(found.instance)
    yield from trained(found)


def shuffled(row: Any, count: int) -> Told:
    """Shuffled attention; where a class is missing F1 is not defined, and accuracy is."""
    name = "f1" if np.isfinite(row["f1 drop"]) else "accuracy"
    lost = round(100 * row[f"{name} drop"], 1) + 0.0  # no −0
    title = "F1" if name == "f1" else "accuracy"
    change = f"falls by {lost:.1f} points" if lost > 0 else f"rises by {-lost:.1f} points" if lost else "does not fall"
    sign = (int(lost >= 5) - int(lost < 2)) if count >= FEW else 0
    how = {1: "depend", 0: "depend somewhat", -1: "hardly depend"}[sign]
    return (
        f"With its attention weights shuffled among the words {title} {change}: answers {how} on where attention "
        "looks.",
        sign,
    )


def others(instance: Any) -> Told:
    """Single texts: another attention with the same answer. Solved exactly that exists for nine texts in ten of every
    kind of model, tied ones too, so only its absence says something (as Wiegreffe & Pinter 2019 argue)."""
    far = round(100 * float(np.mean(np.array(instance.values) > FAR)))
    sign = int(far < 50 and instance.count >= FEW)
    usual = "" if far < 50 else ", as it is with nearly every model"
    return (
        f"For {far}% of {instance.count} texts there is an attention that is very different (JSD above {FAR:g} of at "
        f"most 0.69) and gives the same answer{usual}.",
        sign,
    )


def trained(found: Any) -> Iterator[Told]:
    """The frozen adversary that moved attention farthest; an unfrozen one is another model and says nothing here."""
    frozen = [each for each in found.adversaries if each.kind == "frozen"]
    if not frozen:
        return
    best = max(frozen, key=lambda each: each.jsd)
    lost = round(100 * (found.accuracy - best.accuracy), 1) + 0.0
    sign = (int(lost >= 5) - int(lost < 2)) if best.jsd > FAR else 0
    cost = f"costs {lost:.1f} points of accuracy" if lost > 0 else "costs no accuracy"
    yield f"A trained attention that is as different as it can be (JSD {best.jsd:.2f}) {cost}.", sign


def decided(spread: Any, weak: float, strong: float) -> int:
    """1 at `strong` or above, −1 below `weak`; 0 between, and where the interval reaches over both."""
    mean = round(spread.mean, 2)
    if mean >= strong:
        return int(spread.low >= weak)
    return -int(spread.high < strong) if mean < weak else 0


def spanned(spread: Any) -> str:
    """The interval, of few texts, where it matters."""
    return f", {spread.low:.2f} to {spread.high:.2f} on {spread.count} texts" if 1 < spread.count < 50 else ""
