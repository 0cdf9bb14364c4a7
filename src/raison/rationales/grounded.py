"""Answers over passages: a prompt whose passages may be removed, and what the found rationale says about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from raison.core.errors import InputError
from raison.core.records import Example, Explanation, Slot
from raison.core.units import group
from raison.models.protocol import Model, Question, Scored
from raison.models.runner.score_cache import Memory
from raison.rationales.sufficient import Rule, rule_of

__all__ = ["UNTRIED", "grounding", "named", "prompt"]

INSTRUCTION = "Answer the question from the passages, in a few words."
UNTRIED = "It was interrupted when the search was over: which passages change the answer by themselves was not tried."


def named(passages: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """Passages by name; a plain list is numbered."""
    if isinstance(passages, str) or not isinstance(passages, (Mapping, Sequence)):
        raise InputError("Pass the passages as a list of texts, or as a mapping from names to texts.")
    pairs = passages.items() if isinstance(passages, Mapping) else enumerate(passages, 1)
    found = {str(name): text for name, text in pairs}
    if not found:
        raise InputError("An answer rests on passages: give at least one.")
    for name, text in found.items():
        if not isinstance(text, str):
            raise InputError(f"The passage {name!r} must be a string, not {type(text).__name__}.")
        if not text.strip():
            raise InputError(f"The passage {name!r} is empty: give it some text or leave it out.")
    return {name: text.strip() for name, text in found.items()}


def prompt(model: Any, question: str, passages: Mapping[str, str]) -> Example:
    """The question under the passages, in the model's own chat format where it has one; passages are slots."""
    if not isinstance(question, str) or not question.strip():
        raise InputError("The question is empty: ask something.")
    for name, text in {**passages, "question": question}.items():
        for special in model.codec.own.all_special_tokens:
            if special in text:
                raise InputError(f"{name!r} holds {special!r}, which this model reads as a command: take it out.")
    body = "\n\n".join(passages.values())
    asked = f"{INSTRUCTION}\n\n{body}\n\nQuestion: {question.strip()}"
    text = model.codec.chat(asked)
    if text is None or asked not in text:  # no chat format, or one that rewrites what it is given
        text = f"{asked}\nAnswer:"
    slots, cursor = [], text.index(asked) + asked.index(body, len(INSTRUCTION))
    for name, passage in passages.items():
        start = text.index(passage, cursor)
        cursor = start + len(passage)
        slots.append(Slot(name, start, cursor))
    return Example(text, slots=tuple(slots), meta={"question": question.strip()})


def grounding(model: Model, explanation: Explanation, question: str) -> dict[str, Any]:
    """Which passages and sentences the answer rests on, and which change it when they alone are removed."""
    encoding, target = explanation.encoding, explanation.target
    free = target.free(encoding)
    slots = group(encoding, "slot", free)
    rule = rule_of(explanation.diagnostics["certificate"]["rule"])
    assert rule is not None and explanation.selected is not None
    kept = explanation.units.keep(explanation.selected)
    rests = [bool(kept[slots.of == number].any()) for number in range(len(slots))]
    # a sentence outside the passages that the answer rests on can't be what it rests on
    sentences = [u for u in range(len(explanation.units)) if rests[slots.of[explanation.units.of == u][0]]]
    keep = np.ones((1 + len(slots) + len(sentences), len(encoding)), bool)
    for number in range(len(slots)):
        keep[1 + number, slots.of == number] = False
    for row, unit in enumerate(sentences):
        keep[1 + len(slots) + row, explanation.units.of == unit] = False
    changes = changed(model, Question(encoding, target, keep), rule, explanation.removal)
    passages = [
        {
            "name": slots.names[number],
            "start": slots.spans[number][1],
            "end": slots.spans[number][2],
            "selected": rests[number],
            "necessary": bool(changes[number]),
        }
        for number in range(len(slots))
    ]
    needed = [int(unit) for row, unit in enumerate(sentences) if changes[len(slots) + row]]
    found = {
        "question": question,
        "answer": target.text.strip(),
        "needs_context": bool(explanation.selected.any()),
        "passages": passages,
        "necessary_units": needed,
    }
    return found | {"statement": statement(found, explanation)}


def changed(model: Model, question: Question, rule: Rule, removal: str | None) -> np.ndarray:
    """[n − 1] whether each part, removed from the whole context, takes the answer away; the first row keeps all."""
    (scored,) = model.score([question], removal=removal, memory=Memory())
    full = Scored(scored.value[:1], scored.rank[:1], scored.margin[:1], scored.predicted[:1])
    return ~rule.enough(scored, full)[1:]


def statement(found: dict[str, Any], explanation: Explanation) -> str:
    """The finding in one sentence."""
    certificate = explanation.diagnostics["certificate"]
    said = certificate["rule"] == "argmax" and certificate["own"]  # else a rule is kept, not the very words
    by = "" if said else f"By {certificate['rule']}, "
    if certificate["status"] == "impossible":
        return "The whole context is not enough for this answer, and this search found no part of it that is."
    if not found["needs_context"]:
        if said:
            return "The answer needs no context at all: the model gives it to the bare question."
        return f"{by}the answer needs no context at all."
    chosen = int(explanation.selected.sum())  # type: ignore[union-attr]
    rests = [passage["name"] for passage in found["passages"] if passage["selected"]]
    needed = [passage["name"] for passage in found["passages"] if passage["necessary"]]
    level = explanation.units.level + ("s" if chosen > 1 else "")
    verb = "gives it" if said else "is enough"
    sentence = f"{by}{'T' if said else 't'}he answer rests on {listed(rests)} ({chosen} {level}): that alone {verb}."
    if needed:
        return sentence + f" Without {listed(needed, 'or')} {'its words change' if said else 'the rest is not enough'}."
    if certificate["rule"].startswith("penalty"):
        return sentence  # nothing is indispensable where there is no threshold
    return sentence + f" No single passage is indispensable: any one can go{' and the answer stays' if said else ''}."


def listed(names: list[str], last: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
