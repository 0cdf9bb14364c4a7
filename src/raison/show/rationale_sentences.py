"""What is said about a rationale and its certificate: units, proof, search effort, warnings, roles of passages."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from raison.core.findings import Certificate, PassageFinding
from raison.core.records import Explanation
from raison.show.text_formats import (
    STRAIGHT,
    Quotes,
    clean_text,
    count_with_noun,
    probability_in_percent,
    short_name,
)
from raison.show.text_pieces import given_tokens

__all__ = [
    "MOST_UNIT_NAMES",
    "RationaleInWords",
    "certificate_in_words",
    "certificate_of",
    "is_rationale",
    "passage_role_in_answer",
    "rationale_in_words",
    "rationale_units_in_order",
    "rationale_warnings",
    "search_effort_in_words",
]

MOST_UNIT_NAMES = 12  # of units in a line
MOST_GIVEN = 3  # given tokens that are named
LONGEST_NAME = 48  # characters
# why a search ended before it was done
ENDED_EARLY = {"budget": "its budget was spent", "interrupted": "it was interrupted"}


def is_rationale(explanation: Explanation) -> bool:
    """Whether a search selected the units, with a certificate."""
    return explanation.certificate is not None and explanation.selected is not None


def certificate_of(explanation: Explanation) -> Certificate:
    """The certificate of a rationale."""
    if explanation.certificate is None:
        raise ValueError("only a rationale has a certificate")
    return explanation.certificate


def rationale_units_in_order(explanation: Explanation) -> list[int]:
    """The units of the rationale in the order they were chosen; others that were selected follow in reading order."""
    if explanation.selected is None:
        return []
    order = [] if explanation.order is None else explanation.order.tolist()
    units = [unit for unit in order if explanation.selected[unit]]
    with_order = set(units)
    for unit in np.flatnonzero(explanation.selected).tolist():
        if unit not in with_order:
            units.append(unit)
    return units


@dataclass(frozen=True)
class RationaleInWords:
    """What was selected: `3 of 9 tokens`, the names, and what must be there besides."""

    size: str
    names: list[str]  # in the order chosen; dots stand for the rest of many
    besides: str  # `, and the given "the"`, or that nothing is needed


def rationale_in_words(
    explanation: Explanation, *, dots: str = "…", quotes: Quotes = STRAIGHT
) -> RationaleInWords:
    """How much was selected of how much, and what, in the order chosen."""
    units = rationale_units_in_order(explanation)
    names = []
    for unit in units[:MOST_UNIT_NAMES]:
        names.append(short_name(explanation.units.names[unit], LONGEST_NAME, dots))
    if len(units) > MOST_UNIT_NAMES:
        names.append(dots)

    left, right = quotes
    given_names = [f"{left}{name}{right}" for name in names_of_given_tokens(explanation)]
    besides = ""
    if 0 < len(given_names) <= MOST_GIVEN:
        conjunction = ", and" if names else ": only"
        besides = f"{conjunction} the given {', '.join(given_names)}"
    elif not names and certificate_of(explanation).sufficient:
        besides = ": nothing of it is needed"
    all_units = count_with_noun(len(explanation.units), explanation.units.level)
    return RationaleInWords(f"{len(units)} of {all_units}", names, besides)


def names_of_given_tokens(explanation: Explanation) -> list[str]:
    """Names of the given tokens, which are kept besides the rationale."""
    tokens = explanation.encoding.tokens
    places = np.flatnonzero(given_tokens(explanation))
    return [short_name(tokens[place], LONGEST_NAME) for place in places]


# -- what was proved ----------------------------------------------------------------------------------------


def certificate_in_words(explanation: Explanation) -> list[str]:
    """What was proved about the rationale, the most important first."""
    certificate = certificate_of(explanation)
    if not certificate.sufficient:
        return ["not sufficient"]

    by_cost = certificate.rule.startswith("penalty")  # a cost has no threshold
    parts = ["of low cost (no threshold)" if by_cost else "sufficient (checked anew)"]
    threshold = certificate_threshold(certificate)
    if threshold is not None:
        parts.append(f"enough from {probability_in_percent(threshold)} on")
    if certificate.irreducible:
        parts.append("nothing can be spared")
    elif certificate.irreducible is not None:
        parts.append("something may be spared")
    if by_cost:
        parts.append(proof_of_least_cost(certificate))
    else:
        parts.append(proof_of_least_size(certificate))
    return parts


def certificate_threshold(certificate: Certificate) -> float | None:
    """The probability from which a set is enough, where the rule is a share of the probability of the whole context."""
    share_of_whole = re.fullmatch(r"probability\(tau=([\d.]+)\)", certificate.rule)
    if share_of_whole is None or certificate.full_probability is None:
        return None
    return float(share_of_whole[1]) * certificate.full_probability


def proof_of_least_cost(certificate: Certificate) -> str:
    """Whether a cheaper rationale was ruled out."""
    if certificate.optimal:
        return "proved: none costs less"
    return "not proved to cost least"


def proof_of_least_size(certificate: Certificate) -> str:
    """Whether a smaller rationale was ruled out."""
    if certificate.optimal:
        return "proved: none is smaller"
    if certificate.lower_bound:
        return f"not proved smallest: at least {certificate.lower_bound} needed"
    return "not proved smallest"


# -- what it took -------------------------------------------------------------------------------------------


def search_effort_in_words(explanation: Explanation) -> list[str]:
    """What the model reads and says now, and what the search took."""
    certificate = certificate_of(explanation)
    parts = []
    if certificate.kept_tokens is not None and certificate.context_tokens is not None:
        context = count_with_noun(certificate.context_tokens, "context token")
        parts.append(f"the model reads {certificate.kept_tokens} of {context}")
    if certificate.probability is not None and not explanation.steps:  # else the path says it
        probability = probability_in_percent(certificate.probability)
        parts.append(f"probability {probability}{probability_from_whole_context(certificate)}")
    work = search_work_in_words(certificate)
    if work:
        parts.append(", ".join(work))
    return parts


def probability_from_whole_context(certificate: Certificate) -> str:
    """`(98.7 % from the whole context)`, or nothing."""
    if certificate.full_probability is None:
        return ""
    return f" ({probability_in_percent(certificate.full_probability)} from the whole context)"


def search_work_in_words(certificate: Certificate) -> list[str]:
    """Evaluations and tokens that the search took."""
    work = []
    if certificate.evaluations is not None:
        work.append(count_with_noun(certificate.evaluations, "evaluation"))
    if certificate.search_tokens is not None:
        work.append(count_with_noun(certificate.search_tokens, "token-forward"))
    if certificate.check_tokens:
        work.append(f"{certificate.check_tokens} more to check")
    return work


# -- what a reader must know --------------------------------------------------------------------------------


def rationale_warnings(explanation: Explanation) -> list[str]:
    """What a reader must know before believing the rationale."""
    certificate = certificate_of(explanation)
    rule = clean_text(certificate.rule)
    sentences = []
    if certificate.status == "impossible":
        sentences.append(
            f"Not even the whole context is sufficient by {rule}, and this search found no part that is."
        )
    elif certificate.status in ENDED_EARLY:
        reason = ENDED_EARLY[certificate.status]
        sentences.append(
            f"The search ended because {reason}: this is the best found, and a smaller rationale may exist."
        )
    if not certificate.sufficient and certificate.status != "impossible":
        sentences.append(
            f"What is marked is not sufficient by {rule}: the prediction rests on more than this."
        )
    if certificate.is_prediction is False:
        rival = "something else"
        if explanation.target.contrast is not None:
            rival = "the contrast"
        sentences.append(
            f"From the whole context the model prefers {rival}: this target is not its own."
        )
    return sentences


def passage_role_in_answer(passage: PassageFinding) -> str:
    """What a passage is to an answer."""
    if passage.selected and passage.necessary:
        return "the answer rests on it, and its words change without it"
    if passage.selected:
        return "the answer rests on it"
    if passage.necessary:
        return "the answer's words change without it"
    return "not needed"
