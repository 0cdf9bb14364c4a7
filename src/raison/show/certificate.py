"""What the certificate of a rationale says, in words: is it enough, can something be spared, is it the smallest?

`diagnostics["certificate"]` is read as {"rule", "sufficient", "irreducible", "optimal", "lower_bound", "size",
"length", "context", "own", "status", "value", "full_value", "probability", "full_probability", "evaluations", "tokens",
"check_tokens"}; every part may be missing. page/rationale.js says the same in the browser; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from raison.core.records import Explanation
from raison.show.spans import given
from raison.show.wording import clean, share, short

__all__ = ["certificate", "chosen", "count", "effort", "kept", "stand", "verdict", "warnings"]

MANY = 12  # names of units in a line
LONGEST = 48  # characters of a name


def certificate(explanation: Explanation) -> Mapping[str, Any]:
    """The certificate of a rationale; empty where there is none, and then nothing else here applies."""
    found = explanation.diagnostics.get("certificate")
    return found if isinstance(found, Mapping) and explanation.selected is not None else {}


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
    found = certificate(explanation)
    bound, soft = found.get("lower_bound"), str(found.get("rule", "")).startswith("penalty")
    if not found.get("sufficient"):
        return ["not sufficient"]
    parts = ["of low cost (no threshold)" if soft else "sufficient (checked anew)"]
    tau = re.fullmatch(r"probability\(tau=([\d.]+)\)", str(found.get("rule", "")))
    if tau and found.get("full_probability") is not None:
        parts.append(f"enough from {share(float(tau[1]) * found['full_probability'])} on")
    if found.get("irreducible") is not None:
        parts.append("nothing can be spared" if found["irreducible"] else "something may be spared")
    if found.get("optimal"):
        parts.append("proved: none costs less" if soft else "proved: none is smaller")
    elif soft:
        parts.append("not proved to cost least")
    else:
        parts.append("not proved smallest" + (f": at least {bound} needed" if bound else ""))
    return parts


def effort(explanation: Explanation) -> list[str]:
    """What the model reads and says now, and what the search took."""
    found, parts = certificate(explanation), []
    if "length" in found and "context" in found:
        parts.append(f"the model reads {found['length']} of {count(found['context'], 'context token')}")
    if found.get("probability") is not None and not explanation.diagnostics.get("steps"):  # else the path says it
        whole = found.get("full_probability")
        said = "" if whole is None else f" ({share(whole)} from the whole context)"
        parts.append(f"probability {share(found['probability'])}{said}")
    work = [count(found["evaluations"], "evaluation")] if "evaluations" in found else []
    work += [count(found["tokens"], "token-forward")] if "tokens" in found else []
    work += [f"{found['check_tokens']} more to check"] if found.get("check_tokens") else []
    return parts + [", ".join(work)] * bool(work)


def warnings(explanation: Explanation) -> list[str]:
    """What a reader must know before believing the rationale."""
    found = certificate(explanation)
    status, rule, said = found.get("status"), clean(str(found.get("rule", "this rule"))), []
    if status == "impossible":
        said.append(f"Not even the whole context is sufficient by {rule}, and this search found no part that is.")
    elif status in ("budget", "interrupted"):
        why = "its budget was spent" if status == "budget" else "it was interrupted"
        said.append(f"The search ended because {why}: this is the best found, and a smaller rationale may exist.")
    if found and not found.get("sufficient") and status != "impossible":
        said.append(f"What is marked is not sufficient by {rule}: the prediction rests on more than this.")
    if found.get("own") is False:
        rival = "the contrast" if explanation.target.contrast is not None else "something else"
        said.append(f"From the whole context the model prefers {rival}: this target is not its own.")
    return said


def stand(passage: Mapping[str, Any]) -> str:
    """What a passage is to an answer."""
    if passage.get("selected"):
        also = ", and its words change without it" if passage.get("necessary") else ""
        return f"the answer rests on it{also}"
    return "the answer's words change without it" if passage.get("necessary") else "not needed"
