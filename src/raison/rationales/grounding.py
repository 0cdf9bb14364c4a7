"""Answers over passages: the prompt that asks for one, and which passages and sentences the answer rests on.

Each passage is a slot of the prompt that may be removed; the question and the instruction stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

import numpy as np

from raison.core.errors import InputError
from raison.core.findings import Certificate, Grounding, PassageFinding
from raison.core.records import Example, Explanation, Slot, Units
from raison.core.registry import rules
from raison.core.units import group_tokens
from raison.models.codec import Codec
from raison.models.protocol import Model, Question, Scored
from raison.models.runner.score_cache import Memory
from raison.rationales.sufficient import Rule

__all__ = ["INSTRUCTION", "UNTRIED", "find_grounding", "name_passages", "prompt_over_passages"]

INSTRUCTION = "Answer the question from the passages, in a few words."

UNTRIED = "It was interrupted when the search was over: which passages change the answer by themselves was not tried."


def name_passages(passages: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """Passages by name; a plain list is numbered."""
    if isinstance(passages, str) or not isinstance(passages, (Mapping, Sequence)):
        raise InputError(
            "Pass the passages as a list of texts, or as a mapping from names to texts."
        )
    if not isinstance(passages, Mapping):
        numbered = enumerate(passages, start=1)
        passages = {str(number): text for number, text in numbered}
    if not passages:
        raise InputError("An answer rests on passages: give at least one.")

    named = {}
    for name, text in passages.items():
        known_as = str(name)
        if not isinstance(text, str):
            kind = type(text).__name__
            raise InputError(f"The passage {known_as!r} must be a string, not {kind}.")
        stripped = text.strip()
        if not stripped:
            raise InputError(
                f"The passage {known_as!r} is empty: give it some text or leave it out."
            )
        named[known_as] = stripped
    return named


class ModelWithCodec(Protocol):
    """A model whose tokenizer may have a chat format."""

    codec: Codec


def prompt_over_passages(model: Model, question: str, passages: Mapping[str, str]) -> Example:
    """The question under the passages, in the model's own chat format where it has one; passages are slots."""
    if not isinstance(question, str) or not question.strip():
        raise InputError("The question is empty: ask something.")
    codec = cast("ModelWithCodec", model).codec
    special_tokens = codec.own.all_special_tokens
    texts = {**passages, "question": question}
    for name, text in texts.items():
        for special in special_tokens:
            if special in text:
                raise InputError(
                    f"{name!r} holds {special!r}, which this model reads as a command: take it out."
                )

    asked = question.strip()
    body = "\n\n".join(passages.values())
    request = f"{INSTRUCTION}\n\n{body}\n\nQuestion: {asked}"
    text = f"{request}\nAnswer:"
    chat = codec.chat(request)
    if chat is not None and request in chat:  # some formats rewrite what they are given
        text = chat

    slots = []
    start_of_request = text.index(request)
    start_of_body = request.index(body, len(INSTRUCTION))
    cursor = start_of_request + start_of_body
    for name, passage in passages.items():
        start = text.index(passage, cursor)
        cursor = start + len(passage)
        slot = Slot(name, start, cursor)
        slots.append(slot)
    return Example(text, slots=tuple(slots), meta={"question": asked})


def find_grounding(model: Model, rationale: Explanation, question: str) -> Grounding:
    """Which passages and sentences the answer rests on, and which change it when they alone are removed."""
    certificate = rationale.certificate
    if certificate is None:
        raise ValueError("only a rationale has a grounding")
    encoding = rationale.encoding
    target = rationale.target
    units = rationale.units
    removable = target.free(encoding)
    slots = group_tokens(encoding, "slot", removable)
    slot_count = len(slots)
    kept = tokens_of_rationale(rationale)
    selected = []
    for number in range(slot_count):
        in_slot = slots.of == number
        kept_of_slot = kept[in_slot]
        selected.append(bool(kept_of_slot.any()))

    # a sentence outside the passages that the answer rests on can't be what it rests on
    sentences = []
    for unit in range(len(units)):
        slots_of_unit = slots.of[units.of == unit]
        slot = slots_of_unit[0]
        if selected[slot]:
            sentences.append(unit)

    parts = [(slots, number) for number in range(slot_count)]
    parts += [(units, unit) for unit in sentences]
    row_count = 1 + len(parts)
    keep = np.ones((row_count, len(encoding)), bool)
    for row, (grouping, number) in enumerate(parts, start=1):
        removed = grouping.of == number
        keep[row, removed] = False
    rule: Rule = rules.build(certificate.rule)
    question_of_parts = Question(encoding, target, keep)
    changes = answer_changes(model, question_of_parts, rule, rationale.removal)

    changes_by_slots = changes[:slot_count]
    changes_by_sentences = changes[slot_count:]
    passages = findings_of_passages(slots, selected, changes_by_slots)
    needed = []
    for unit, change in zip(sentences, changes_by_sentences, strict=True):
        if change:
            needed.append(unit)
    in_rationale = units_that_answer_rests_on(rationale)
    return Grounding(
        question=question,
        answer=target.text.strip(),
        needs_context=bool(in_rationale),
        statement=statement_of_grounding(rationale, certificate, passages),
        passages=passages,
        necessary_units=tuple(needed),
    )


def tokens_of_rationale(explanation: Explanation) -> np.ndarray:
    """[t] the tokens that are kept when nothing but the rationale is."""
    count = len(explanation.units)
    in_rationale = np.zeros(count, bool)
    in_rationale[units_that_answer_rests_on(explanation)] = True
    return explanation.units.keep(in_rationale)


def units_that_answer_rests_on(explanation: Explanation) -> list[int]:
    """The units of the rationale."""
    if explanation.selected is None:
        return []
    units: list[int] = np.flatnonzero(explanation.selected).tolist()
    return units


def findings_of_passages(
    slots: Units, selected: Sequence[bool], changes: Sequence[bool]
) -> tuple[PassageFinding, ...]:
    passages = []
    for number, name in enumerate(slots.names):
        _, start, end = slots.spans[number]
        finding = PassageFinding(
            name, start, end, selected=selected[number], necessary=bool(changes[number])
        )
        passages.append(finding)
    return tuple(passages)


def answer_changes(model: Model, question: Question, rule: Rule, removal: str | None) -> list[bool]:
    """Whether each part, removed from the whole context, takes the answer away; the first row keeps all."""
    (scored,) = model.score([question], removal=removal, memory=Memory())
    full = Scored(
        value=scored.value[:1],
        rank=scored.rank[:1],
        margin=scored.margin[:1],
        predicted=scored.predicted[:1],
    )
    enough = rule.enough(scored, full)
    enough_of_parts = enough[1:]
    return [not each for each in enough_of_parts]


def statement_of_grounding(
    explanation: Explanation, certificate: Certificate, passages: Sequence[PassageFinding]
) -> str:
    """The finding in one sentence."""
    # else a rule is kept, not the words
    rule = certificate.rule
    exact_words = rule == "argmax" and bool(certificate.is_prediction)
    if certificate.status == "impossible":
        return "The whole context is not enough for this answer, and this search found no part of it that is."
    in_rationale = units_that_answer_rests_on(explanation)
    size = len(in_rationale)
    if not size and exact_words:
        return "The answer needs no context at all: the model gives it to the bare question."
    if not size:
        return f"By {rule}, the answer needs no context at all."

    selected = [passage.name for passage in passages if passage.selected]
    rests = passage_names_in_words(selected, last="and")
    level = explanation.units.level
    if size > 1:
        level += "s"
    support = f"{rests} ({size} {level})"
    sentence = f"By {rule}, the answer rests on {support}: that alone is enough."
    if exact_words:
        sentence = f"The answer rests on {support}: that alone gives it."

    needed = [passage.name for passage in passages if passage.necessary]
    if needed:
        names = passage_names_in_words(needed, last="or")
        if exact_words:
            return f"{sentence} Without {names} its words change."
        return f"{sentence} Without {names} the rest is not enough."
    if rule.startswith("penalty"):
        return sentence  # nothing is indispensable where there is no threshold
    sentence = f"{sentence} No single passage is indispensable: any one can go"
    if exact_words:
        sentence = f"{sentence} and the answer stays"
    return f"{sentence}."


def passage_names_in_words(names: Sequence[str], *, last: str) -> str:
    *others, final = names
    if not others:
        return final
    all_but_last = ", ".join(others)
    return f"{all_but_last} {last} {final}"
