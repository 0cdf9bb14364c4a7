"""Example, what a user gives: a text or a pair, its human rationale, and the slots of a prompt template."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from string import Formatter
from typing import Any

from raison.core.errors import InputError
from raison.core.json_record import JsonObject, Record, json_field, records_field

__all__ = ["Example", "Slot", "Span"]


@dataclass(frozen=True, eq=False)
class Span(Record):
    """A half-open range of characters in one segment of an example."""

    start: int
    end: int
    segment: str = ""  # empty: the first segment

    def validate(self) -> None:
        if not 0 <= self.start < self.end:
            raise InputError(f"A span must have 0 <= start < end, not {self.start}..{self.end}.")


@dataclass(frozen=True, eq=False)
class Slot(Record):
    """A named part of a prompt template that may be removed as one unit; the template around it may not."""

    name: str
    start: int
    end: int

    def validate(self) -> None:
        if not 0 <= self.start < self.end:
            raise InputError(f"The slot {self.name!r} is empty: give it some text or leave it out.")


@dataclass(frozen=True, eq=False)
class Example(Record):
    """One input: a text (or a pair), what to explain, and what people said about it."""

    text: str
    pair: str | None = None  # second sentence, or the context of a question
    id: str = ""
    target: Any = None  # a label, an answer, a continuation; None: what the model predicts
    label: Any = None  # the gold label
    gold: tuple[Span, ...] = records_field("Span", default=())  # human rationale
    slots: tuple[Slot, ...] = records_field("Slot", default=())  # named parts of a prompt
    meta: JsonObject = json_field()

    def validate(self) -> None:
        check_example_text("text", self.text)
        if self.pair is not None:
            check_example_text("pair", self.pair)
        check_finite_in_example("target", self.target)
        check_finite_in_example("label", self.label)
        self.check_slots()

    def check_slots(self) -> None:
        """Refuse slots that overlap, are empty or lie outside of the text."""
        ordered = sorted(self.slots, key=lambda slot: slot.start)
        for left, right in pairwise(ordered):
            if right.start < left.end:
                names = f"{left.name!r} and {right.name!r}"
                raise InputError(
                    f"The slots {names} overlap: give every slot its own part of the prompt."
                )
        if ordered and ordered[-1].end > len(self.text):
            raise InputError(f"The slot {ordered[-1].name!r} ends behind the text.")
        for slot in ordered:
            content = self.text[slot.start : slot.end]
            if not content.strip():
                raise InputError(
                    f"The slot {slot.name!r} is empty: give it some text or leave it out."
                )

    @classmethod
    def from_template(cls, template: str, /, **parts: str) -> Example:
        """Fill `{name}` slots of a prompt; each slot is a unit, the template itself can't be removed."""
        text = ""
        slots = []
        try:
            pieces = list(Formatter().parse(template))
        except ValueError as error:
            raise InputError(
                f"The template can't be read ({error}): write slots as {{name}}."
            ) from None
        for literal, name, form, conversion in pieces:
            text += literal
            if name is None:
                continue
            if form or conversion:
                raise InputError(
                    f"The template formats {{{name}}}: write slots as {{name}}, and braces as {{{{ }}}}."
                )
            if name not in parts:
                raise InputError(f"The template names {{{name}}}, but no such part was given.")
            part = parts[name]
            if not isinstance(part, str):
                raise InputError(f"The part {name!r} must be a string, not {type(part).__name__}.")
            start = len(text)
            text += part
            slots.append(Slot(name, start, len(text)))

        used = {slot.name for slot in slots}
        unused = sorted(set(parts) - used)
        if unused:
            raise InputError(f"The template has no slot for {', '.join(unused)}.")
        return cls(text, slots=tuple(slots))


def check_example_text(name: str, text: object) -> None:
    """Refuse a text of an example that is no string, or has nothing but white space."""
    if not isinstance(text, str):
        raise InputError(f"The {name} of an example must be a string, not {type(text).__name__}.")
    if not text.strip():
        raise InputError(f"The {name} is empty: give at least one word.")


def check_finite_in_example(name: str, value: object) -> None:
    """Refuse a target or label that is NaN or infinite."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(
            f"The {name} of an example is {value}, which is no number: give one, or none."
        )
