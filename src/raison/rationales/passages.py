"""A prompt over passages: each passage is a slot that may be removed, the question and the instruction stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from raison.core.errors import InputError
from raison.core.records import Example, Slot

__all__ = ["INSTRUCTION", "name_passages", "prompt_over_passages"]

INSTRUCTION = "Answer the question from the passages, in a few words."


def name_passages(passages: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """Passages by name; a plain list is numbered."""
    if isinstance(passages, str) or not isinstance(passages, (Mapping, Sequence)):
        raise InputError(
            "Pass the passages as a list of texts, or as a mapping from names to texts."
        )
    if not isinstance(passages, Mapping):
        passages = {str(number): text for number, text in enumerate(passages, start=1)}
    if not passages:
        raise InputError("An answer rests on passages: give at least one.")

    named = {}
    for name, text in passages.items():
        if not isinstance(text, str):
            raise InputError(
                f"The passage {str(name)!r} must be a string, not {type(text).__name__}."
            )
        if not text.strip():
            raise InputError(
                f"The passage {str(name)!r} is empty: give it some text or leave it out."
            )
        named[str(name)] = text.strip()
    return named


def prompt_over_passages(model: Any, question: str, passages: Mapping[str, str]) -> Example:
    """The question under the passages, in the model's own chat format where it has one; passages are slots."""
    if not isinstance(question, str) or not question.strip():
        raise InputError("The question is empty: ask something.")
    for name, text in {**passages, "question": question}.items():
        for special in model.codec.own.all_special_tokens:
            if special in text:
                raise InputError(
                    f"{name!r} holds {special!r}, which this model reads as a command: take it out."
                )

    body = "\n\n".join(passages.values())
    request = f"{INSTRUCTION}\n\n{body}\n\nQuestion: {question.strip()}"
    text = model.codec.chat(request)
    if text is None or request not in text:  # no chat format, or one that rewrites what it is given
        text = f"{request}\nAnswer:"

    slots = []
    cursor = text.index(request) + request.index(body, len(INSTRUCTION))
    for name, passage in passages.items():
        start = text.index(passage, cursor)
        cursor = start + len(passage)
        slots.append(Slot(name, start, cursor))
    return Example(text, slots=tuple(slots), meta={"question": question.strip()})
