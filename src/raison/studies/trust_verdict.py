"""The verdict of the trust tests about one explanation, and the sentences that give its reasons.

`supported` needs three things: the order beats chance, other seeds give the same order, and removing what it puts
first agrees. The first is a permutation test at a level of 2 %, so an order that has nothing to do with the model
passes it in at most 2 % of texts. What is neither shown nor refuted is `inconclusive`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from raison.core.records import Explanation
from raison.core.spec import Spec

__all__ = ["VERDICTS", "trust_verdict"]

VERDICTS = ("supported", "unsteady", "like chance", "contradicted", "inconclusive")

BEATS_CHANCE = 0.02  # at most this share of random orders does as well
LIKE_CHANCE = 0.2  # from this share on an order is called like chance
WORSE_THAN_CHANCE = 0.95  # and from this share on worse than that
STEADY = 0.9  # smallest correlation of ranks between two seeds
FEWEST = 5  # units; 4 have 24 orders, and the best of 24 is no rare one
SAME = 1e-9  # differences of a value in 0..1 that are only rounding
NEAR = 0.01  # of two areas that are called equal

Numbers = Mapping[str, Mapping[str, float]]


def trust_verdict(
    explanation: Explanation, numbers: Numbers, stability: float | None
) -> tuple[str, list[str]]:
    """One of VERDICTS, and in words: the verdict, then what each test found."""
    verdict, reason = verdict_with_reason(explanation, numbers, stability)
    sentences = [f"{verdict.capitalize()}: {reason}"]
    if explanation_orders_units(explanation):
        sentences.append(trust_sentence_on_chance(explanation, numbers))
        if Spec.parse(explanation.method).name != "leave_one_out":
            sentences.append(trust_sentence_on_leave_one_out(explanation, numbers["deletion"]))
    sentences.append(trust_sentence_on_strongest_units(explanation, numbers))
    sentences.append(trust_sentence_on_seeds(stability))
    return verdict, sentences


def verdict_with_reason(
    explanation: Explanation, numbers: Numbers, stability: float | None
) -> tuple[str, str]:
    """The verdict and its reason."""
    units = f"{explanation.units.level}s"
    chance = numbers["order"]["chance"]
    if not explanation_orders_units(explanation):
        return "inconclusive", "it puts nothing in order, so there is nothing to trust or to doubt."
    if len(explanation.units) < FEWEST:
        return (
            "inconclusive",
            f"{len(explanation.units)} {units} are too few to tell an order from chance.",
        )
    if not trust_value_moves(numbers):
        return (
            "inconclusive",
            f"{name_of_trust_value(explanation)} stays the same, whatever is removed.",
        )
    if chance >= WORSE_THAN_CHANCE:
        return (
            "contradicted",
            f"{format_trust_percent(chance)} of random orders explain this prediction as well or better.",
        )
    if chance >= LIKE_CHANCE:
        return (
            "like chance",
            f"{format_trust_percent(chance)} of random orders explain this prediction as well.",
        )
    if stability is not None and stability < STEADY:
        return (
            "unsteady",
            f"other seeds put the {units} in another order. If the method draws samples, take more.",
        )
    if trust_refuted_by_removal(numbers):
        return "contradicted", (
            f"the {units} that it puts first matter less to the model than random {units}, alone or left out."
        )
    if chance <= BEATS_CHANCE:
        return "supported", (
            f"at most {format_trust_percent(chance)} of random orders explain this prediction as well, "
            "every seed gives this order, and removal agrees."
        )
    return "inconclusive", (
        f"{format_trust_percent(chance)} of random orders explain this prediction as well. "
        "That is too many to rely on it, and too few to reject it."
    )


def explanation_orders_units(explanation: Explanation) -> bool:
    """Whether some units are put before others."""
    if explanation.selected is not None:
        return bool(explanation.selected.any())
    return bool(np.ptp(explanation.scores))


def trust_value_moves(numbers: Numbers) -> bool:
    """Whether removing units changes the value at all."""
    order = numbers["order"]
    this = abs(order["this"] - order["random"])
    leave_one_out = abs(order["leave_one_out"] - order["random"])
    return this > SAME or leave_one_out > SAME


def trust_refuted_by_removal(numbers: Numbers) -> bool:
    """Whether random units of the same number matter more than the strongest ones, left out or alone."""
    without = numbers["comprehensiveness"]
    alone = numbers["sufficiency"]
    matters_less_left_out = without["this"] < without["random"] - SAME
    matters_less_alone = alone["this"] > alone["random"] + SAME
    return matters_less_left_out or matters_less_alone


def trust_sentence_on_chance(explanation: Explanation, numbers: Numbers) -> str:
    units = f"{explanation.units.level}s"
    removed = numbers["deletion"]["chance"]
    restored = numbers["insertion"]["chance"]
    return (
        f"Of random orders {format_trust_percent(removed)} do as well when {units} are taken away, "
        f"and {format_trust_percent(restored)} when they are put back."
    )


def trust_sentence_on_leave_one_out(explanation: Explanation, deletion: Mapping[str, float]) -> str:
    this = deletion["this"]
    leave_one_out = deletion["leave_one_out"]
    if abs(this - leave_one_out) < NEAR:
        return "Taking away in its order does as much as in that of leave-one-out."
    word = "more" if this < leave_one_out else "less"
    value = name_of_trust_value(explanation)
    return (
        f"Taking away in its order does {word} than in that of leave-one-out: {value} is {this:.3f} on the way, "
        f"against {leave_one_out:.3f}."
    )


def trust_sentence_on_strongest_units(explanation: Explanation, numbers: Numbers) -> str:
    alone = numbers["sufficiency"]
    without = numbers["comprehensiveness"]
    part = f"its strongest {explanation.units.level}s"
    them = "them"
    if explanation.selected is not None:
        part, them = "the rationale", "it"
    value = name_of_trust_value(explanation)
    value_alone = trust_change_in_words(alone["this"])
    random_alone = trust_change_in_words(alone["random"])
    value_without = trust_change_in_words(without["this"])
    random_without = trust_change_in_words(without["random"])
    return (
        f"With {part} alone {value} {value_alone} (random parts of the same size: {random_alone})."
        f" Without {them} it {value_without} (random: {random_without})."
    )


def trust_sentence_on_seeds(stability: float | None) -> str:
    if stability is None:
        return "It is the same with every seed."
    return f"Two runs with other seeds have ranks that correlate by {format_trust_correlation(stability)} or more."


def name_of_trust_value(explanation: Explanation) -> str:
    """What the numbers are about: a regression and a plain function have no probability."""
    if explanation.target.contrast:
        return "the preference over the contrast"
    if explanation.prediction is not None and explanation.prediction.value is not None:
        return "the value"
    return "the probability"


def trust_change_in_words(fall: float) -> str:
    """`falls by 0.104`, `rises by 0.104`."""
    size = f"{abs(fall):.3f}"
    if float(size) == 0:
        return "stays"
    return f"falls by {size}" if fall > 0 else f"rises by {size}"


def format_trust_percent(share: float) -> str:
    """Rounded up, so that `at most 2 %` is never less than what was found."""
    rounded_up = math.ceil(100 * share - 1e-9)
    return f"{rounded_up} %"


def format_trust_correlation(value: float) -> str:
    """To three digits, with a minus sign of typography, and none before a zero."""
    rounded = round(value, 3) + 0.0
    return f"{rounded:.3f}".replace("-", "−")
