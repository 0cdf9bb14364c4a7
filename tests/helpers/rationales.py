"""Rationales made by hand: tokens with the space before them, a search step by step, a matrix, a grounded answer."""

from __future__ import annotations

import math

import numpy as np

from raison.core.findings import Certificate, Grounding, PassageFinding, SearchStep
from raison.core.records import Encoding, Explanation, Target
from raison.core.text_splitting import split_words
from raison.core.units import group_tokens

COURT = "The Supreme Court on Tuesday rejected a challenge to the"


def encode_spaced_words(*texts, names=("text",), start=(), fixed=()):
    """Every word is a token with the space before it; segments in `start` begin with a special token."""
    rows = []
    for segment, text in enumerate(texts):
        rows += [("<s>", segment, -1, -1, True)] * (segment in start)
        for a, b in split_words(text):
            a -= a > 0 and text[a - 1] == " "
            rows.append(
                (
                    text[a:b],
                    segment,
                    a,
                    b,
                    any(low <= a < high for low, high in fixed) and segment == 0,
                )
            )
    tokens, segment, first, last, kept = zip(*rows, strict=True)
    size = np.arange(len(rows))
    return Encoding(size, tokens, names, texts, segment, first, last, size, kept)


def rationale(encoding, target, chosen, level="token", grounding=None, likely=True, **claims):
    """A rationale that was found by adding `chosen`, names of units, one by one."""
    units = group_tokens(encoding, level, target.free(encoding))
    order = [units.names.index(name) if isinstance(name, str) else name for name in chosen]
    selected = np.isin(np.arange(len(units)), order)
    steps = []
    for size in range(len(order) + 1):
        probability = 0.5 * (size + 1) / (len(order) + 1)
        others = [u for u in range(len(units)) if u not in order[:size]][:2]
        steps.append(
            {
                "action": "add" if size else "start",
                "added": order[size - 1 : size] if size else [],
                "removed": [],
                "size": size,
                "value": math.log(probability),
                "sufficient": size == len(order),
                "candidates": [[u, math.log(probability / 2)] for u in [order[size - 1], *others]]
                if size
                else [],
                **({"probability": probability} if likely else {}),
            }
        )
    certificate = {
        "rule": "argmax",
        "sufficient": True,
        "irreducible": True,
        "optimal": False,
        "lower_bound": 2,
        "size": len(order),
        "kept_tokens": len(order) + 1,
        "context_tokens": int(target.scope(len(encoding)).sum()),
        "is_prediction": True,
        "status": "complete",
        "value": math.log(0.5),
        "full_value": math.log(0.8),
        "evaluations": 120,
        "search_tokens": 560,
        "check_tokens": 0,
        **({"probability": 0.5, "full_probability": 0.8} if likely else {}),
        **claims,
    }
    return Explanation(
        encoding,
        units,
        target,
        np.where(selected, 1.25 + np.arange(len(units)), 0),
        "refined",
        "tiny",
        "delete",
        selected,
        np.array(order, dtype=int),
        certificate=Certificate(**certificate),
        steps=tuple(SearchStep(**step) for step in steps),
        grounding=grounding,
    )


def court_rationale(**changes):
    encoding = encode_spaced_words(COURT)
    target = Target("token", (7,), (len(encoding),), " constitution", "log_prob")
    return rationale(encoding, target, ["Court", "challenge", "The"], **changes)


def rationale_of_many_steps():
    encoding = encode_spaced_words(" ".join(f"w{i}" for i in range(60)))
    return rationale(encoding, Target("token", (1,), (60,), " x", "log_prob"), list(range(50)))


def rationales_of_tokens(text="A cat sat on the mat", start=(), **changes):
    """One rationale for each token but the first; the rationale of number p is the first token, for p > 2 also the
    second."""
    encoding = encode_spaced_words(text, start=start)
    first = 1 + len(start)
    found = []
    for p in range(first, len(encoding)):
        target = Target("token", (p,), (p,), encoding.tokens[p], "log_prob")
        chosen = list(range(min(int(target.free(encoding).sum()), 1 + (p > 2))))
        found.append(rationale(encoding, target, chosen, **(changes.get(f"p{p}", {}))))
    return found


PASSAGES = {
    "a.txt": "The tower is old. It was built by Ada Lund. It is red.",
    "b.txt": "Tickets are cheap. " + "Nothing of this is about builders at all. " * 8,
    "c</script>.txt": "Ada Lund was born in Oslo.",
}


def grounded_rationale(**changes):
    prompt, passages = "Read this.\n\n", []
    for name, text in PASSAGES.items():
        end = len(prompt) + len(text.rstrip())
        selected, necessary = name != "b.txt", name[0] == "c"
        passages.append(
            PassageFinding(name, len(prompt), end, selected=selected, necessary=necessary)
        )
        prompt += text.rstrip() + "\n\n"
    ends = [(0, passages[0].start), (len(prompt), len(prompt) + 99)]
    encoding = encode_spaced_words(prompt + "Where was the builder born?", fixed=ends)
    grounding = Grounding(
        question="Where was the builder born?",
        answer="Oslo",
        needs_context=True,
        statement="The answer rests on a.txt and c.txt.",
        passages=tuple(passages),
    )
    target = Target("token", (1,), (len(encoding),), " Oslo", "log_prob")
    chosen = ["It was built by Ada Lund.", "Ada Lund was born in Oslo."]
    return rationale(encoding, target, chosen, "sentence", grounding, **changes)
