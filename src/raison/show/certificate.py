"""What the certificate of a rationale says, in words: is it enough, can something be spared, is it the smallest?

page/rationale.js says the same in the browser; a test compares them.
"""

from __future__ import annotations

import re

import numpy as np

from raison.core.findings import Certificate, PassageFinding
from raison.core.records import Explanation
from raison.show.spans import given
from raison.show.wording import clean, share, short

__all__ = [
    "certificate_of", "chosen", "count", "effort", "is_rationale", "kept", "stand", "verdict", "warnings",
]  # fmt: skip

MANY = 12  # names of units in a line
LONGEST = 48  # characters of a name


def is_rationale(explanation: Explanation) -> bool:
    """Whether a search selected the units, with a certificate."""
    return explanation.certificate is not None and explanation.selected is not None


def certificate_of(explanation: Explanation) -> Certificate:
    """The certificate of a rationale."""
    if explanation.certificate is None:
        raise ValueError("only a rationale has a certificate")
    return explanation.certificate


def chosen(explanation: Explanation) -> list[int]:
    """The units of the rationale in the order they were chosen, or else in reading order."""
    selected = explanation.selected if explanation.selected is not None else np.zeros(0, bool)
    order = [] if explanation.order is None else [int(u) for u in explanation.order if selected[u]]
    return order + [u for u in np.flatnonzero(selected).tolist() if u not in order]


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def kept(explanation: Explanation) -> list[str]:
    """Names of the given tokens, which are kept besides the rationale."""
    return [short(explanation.encoding.tokens[t], LONGEST) for t in np.flatnonzero(given(explanation))]


def verdict(explanation: Explanation) -> list[str]:
    """What was proved about the rationale."""
    certificate = certificate_of(explanation)
    if not certificate.sufficient:
        return ["not sufficient"]
    soft = certificate.rule.startswith("penalty")
    parts = ["of low cost (no threshold)" if soft else "sufficient (checked anew)"]

    tau = re.fullmatch(r"probability\(tau=([\d.]+)\)", certificate.rule)
    if tau and certificate.full_probability is not None:
        parts.append(f"enough from {share(float(tau[1]) * certificate.full_probability)} on")
    if certificate.irreducible is not None:
        parts.append("nothing can be spared" if certificate.irreducible else "something may be spared")
    parts.append(verdict_on_size(certificate, soft=soft))
    return parts


def verdict_on_size(certificate: Certificate, *, soft: bool) -> str:
    """Whether something better was ruled out; `soft`: the rule is a cost without a threshold."""
    if certificate.optimal:
        return "proved: none costs less" if soft else "proved: none is smaller"
    if soft:
        return "not proved to cost least"
    if certificate.lower_bound:
        return f"not proved smallest: at least {certificate.lower_bound} needed"
    return "not proved smallest"


def effort(explanation: Explanation) -> list[str]:
    """What the model reads and says now, and what the search took."""
    certificate = certificate_of(explanation)
    parts = []
    if certificate.kept_tokens is not None and certificate.context_tokens is not None:
        context = count(certificate.context_tokens, "context token")
        parts.append(f"the model reads {certificate.kept_tokens} of {context}")
    if certificate.probability is not None and not explanation.steps:  # else the path says it
        whole = ""
        if certificate.full_probability is not None:
            whole = f" ({share(certificate.full_probability)} from the whole context)"
        parts.append(f"probability {share(certificate.probability)}{whole}")
    work = []
    if certificate.evaluations is not None:
        work.append(count(certificate.evaluations, "evaluation"))
    if certificate.search_tokens is not None:
        work.append(count(certificate.search_tokens, "token-forward"))
    if certificate.check_tokens:
        work.append(f"{certificate.check_tokens} more to check")
    if work:
        parts.append(", ".join(work))
    return parts


def warnings(explanation: Explanation) -> list[str]:
    """What a reader must know before believing the rationale."""
    certificate = certificate_of(explanation)
    rule = clean(certificate.rule)
    sentences = []
    if certificate.status == "impossible":
        sentences.append(f"Not even the whole context is sufficient by {rule}, and this search found no part that is.")
    elif certificate.status in ("budget", "interrupted"):
        why = "its budget was spent" if certificate.status == "budget" else "it was interrupted"
        sentences.append(f"The search ended because {why}: this is the best found, and a smaller rationale may exist.")
    if not certificate.sufficient and certificate.status != "impossible":
        sentences.append(f"What is marked is not sufficient by {rule}: the prediction rests on more than this.")
    if certificate.is_prediction is False:
        rival = "the contrast" if explanation.target.contrast is not None else "something else"
        sentences.append(f"From the whole context the model prefers {rival}: this target is not its own.")
    return sentences


def stand(passage: PassageFinding) -> str:
    """What a passage is to an answer."""
    if passage.selected and passage.necessary:
        return "the answer rests on it, and its words change without it"
    if passage.selected:
        return "the answer rests on it"
    return "the answer's words change without it" if passage.necessary else "not needed"
