"""What an answer over passages rests on: which passages, which sentences, and which of them change the answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raison.core.findings import Certificate, Grounding, PassageFinding
from raison.core.records import Explanation, Units
from raison.core.registry import rules
from raison.core.units import group_tokens
from raison.models.protocol import Model, Question, Scored
from raison.models.runner.score_cache import Memory
from raison.rationales.sufficient import Rule

__all__ = ["UNTRIED", "find_grounding"]

UNTRIED = "It was interrupted when the search was over: which passages change the answer by themselves was not tried."


def find_grounding(model: Model, rationale: Explanation, question: str) -> Grounding:
    """Which passages and sentences the answer rests on, and which change it when they alone are removed."""
    explanation, certificate = rationale, rationale.certificate
    if certificate is None:
        raise ValueError("only a rationale has a grounding")
    encoding, target, units = explanation.encoding, explanation.target, explanation.units
    slots = group_tokens(encoding, "slot", target.free(encoding))
    kept = tokens_of_rationale(explanation)
    selected = [bool(kept[slots.of == number].any()) for number in range(len(slots))]

    # a sentence outside the passages that the answer rests on can't be what it rests on
    sentences = []
    for unit in range(len(units)):
        slot = slots.of[units.of == unit][0]
        if selected[slot]:
            sentences.append(unit)

    parts = [(slots, number) for number in range(len(slots))]
    parts += [(units, unit) for unit in sentences]
    keep = np.ones((1 + len(parts), len(encoding)), bool)
    for row, (grouping, number) in enumerate(parts, start=1):
        keep[row, grouping.of == number] = False
    rule: Rule = rules.build(certificate.rule)
    changes = answer_changes(model, Question(encoding, target, keep), rule, explanation.removal)

    passages = passages_of(slots, selected, changes[: len(slots)])
    needed = tuple(
        unit for unit, change in zip(sentences, changes[len(slots) :], strict=True) if change
    )
    return Grounding(
        question=question,
        answer=target.text.strip(),
        needs_context=bool(selected_units(explanation)),
        statement=statement(explanation, certificate, passages),
        passages=passages,
        necessary_units=needed,
    )


def tokens_of_rationale(explanation: Explanation) -> np.ndarray:
    units = np.zeros(len(explanation.units), bool)
    units[selected_units(explanation)] = True
    return explanation.units.keep(units)


def selected_units(explanation: Explanation) -> list[int]:
    if explanation.selected is None:
        return []
    return [int(unit) for unit in np.flatnonzero(explanation.selected)]


def passages_of(
    slots: Units, selected: Sequence[bool], changes: Sequence[bool]
) -> tuple[PassageFinding, ...]:
    passages = []
    for number, name in enumerate(slots.names):
        _, start, end = slots.spans[number]
        passages.append(
            PassageFinding(
                name, start, end, selected=selected[number], necessary=bool(changes[number])
            )
        )
    return tuple(passages)


def answer_changes(model: Model, question: Question, rule: Rule, removal: str | None) -> list[bool]:
    """Whether each part, removed from the whole context, takes the answer away; the first row keeps all."""
    (scored,) = model.score([question], removal=removal, memory=Memory())
    full = Scored(scored.value[:1], scored.rank[:1], scored.margin[:1], scored.predicted[:1])
    enough = rule.enough(scored, full)
    return [not each for each in enough[1:]]


def statement(
    explanation: Explanation, certificate: Certificate, passages: Sequence[PassageFinding]
) -> str:
    """The finding in one sentence."""
    # else a rule is kept, not the words
    exact_words = certificate.rule == "argmax" and bool(certificate.is_prediction)
    if certificate.status == "impossible":
        return "The whole context is not enough for this answer, and this search found no part of it that is."
    size = len(selected_units(explanation))
    if not size and exact_words:
        return "The answer needs no context at all: the model gives it to the bare question."
    if not size:
        return f"By {certificate.rule}, the answer needs no context at all."

    rests = listed([passage.name for passage in passages if passage.selected], last="and")
    level = explanation.units.level + ("s" if size > 1 else "")
    sentence = f"By {certificate.rule}, the answer rests on {rests} ({size} {level}): that alone is enough."
    if exact_words:
        sentence = f"The answer rests on {rests} ({size} {level}): that alone gives it."

    needed = [passage.name for passage in passages if passage.necessary]
    if needed:
        consequence = "its words change" if exact_words else "the rest is not enough"
        return f"{sentence} Without {listed(needed, last='or')} {consequence}."
    if certificate.rule.startswith("penalty"):
        return sentence  # nothing is indispensable where there is no threshold
    rest = " and the answer stays" if exact_words else ""
    return f"{sentence} No single passage is indispensable: any one can go{rest}."


def listed(names: Sequence[str], *, last: str) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} {last} {names[-1]}"
