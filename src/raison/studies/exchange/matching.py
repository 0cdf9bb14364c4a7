"""Matching explanations from elsewhere with the texts they are about, and an external method for each that is named."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.loading import LoadedData
from raison.methods.base import Method
from raison.studies.evaluation_data import DataRequest, examples_with_ids, read_evaluation_data
from raison.studies.exchange.external_explanation import ExternalExplanation
from raison.studies.exchange.external_method import ExternalMethod
from raison.studies.exchange.read_explanations import read_explanations

__all__ = ["ExternalMethods", "read_external_methods"]


@dataclass(frozen=True)
class ExternalMethods:
    """Explanations of a file, as methods over the texts that they are about."""

    methods: list[Method]
    texts: LoadedData
    notes: list[str]  # what a reader must know


def read_external_methods(path: str | os.PathLike[str], request: DataRequest) -> ExternalMethods:
    """The texts of explanations that were made elsewhere, and a method for each that they name."""
    if request.data is None:
        data = LoadedData(Path(path).name, "", "text", (), [])
        known = KnownTexts([])
    else:
        data = read_evaluation_data(replace(request, limit=None))
        known = KnownTexts(examples_with_ids(data.examples), data.name)

    by_method: dict[str, dict[str, ExternalExplanation]] = {}
    examples: dict[str, Example] = {}
    for explanation in read_explanations(path, known.by_id):
        of_method = by_method.setdefault(explanation.method, {})
        example = known.find(explanation, place=len(of_method))
        if example.id in of_method:
            raise InputError(
                f"{explanation.method} explains {example.id!r} twice: give every explanation the id of a text of its "
                "own."
            )
        of_method[example.id] = explanation
        examples.setdefault(example.id, example)

    explained = list(examples.values())[: request.limit]
    check_matching_texts(by_method, explained)
    methods: list[Method] = []
    for title, of_method in by_method.items():
        methods.append(ExternalMethod(of_method, title))
    notes = []
    if request.data is not None and len(examples) < len(known.examples):
        notes.append(
            f"there are explanations of {len(examples)} of the {len(known.examples)} texts"
        )
    return ExternalMethods(methods, replace(data, examples=explained), notes)


def check_matching_texts(
    by_method: Mapping[str, Mapping[str, ExternalExplanation]], examples: Sequence[Example]
) -> None:
    """Refuse a method that does not explain all texts."""
    for title, of_method in by_method.items():
        for example in examples:
            if example.id not in of_method:
                raise InputError(
                    f"{title} has no explanation of {example.id!r}: give every method the same texts."
                )


@dataclass
class KnownTexts:
    """The texts that explanations from elsewhere may be about."""

    examples: list[Example]
    # the name of the data; empty: there is none, and the explanations bring their texts
    data: str = ""
    by_id: dict[str, Example] = field(init=False)
    by_text: dict[str, Example] = field(init=False)

    def __post_init__(self) -> None:
        self.by_id = {example.id: example for example in self.examples}
        self.by_text = {
            example.text: example for example in reversed(self.examples)
        }  # the first of equal ones

    def find(self, explanation: ExternalExplanation, *, place: int) -> Example:
        """The example of an explanation: that of its id, else of its text, else of its place in the order."""
        if explanation.text is None:
            return self.find_without_text(explanation.id, place)
        return self.find_by_text(explanation, explanation.text)

    def find_without_text(self, name: str, place: int) -> Example:
        if not name and self.data and place < len(self.examples):
            return self.examples[place]
        if name not in self.by_id:
            which = f"of {name!r}" if name else f"number {place + 1}"
            why = f"{self.data} has no such text" if self.data else "no data is named that has it"
            raise InputError(
                f"The explanation {which} has no text, and {why}: name the data that was explained."
            )
        return self.by_id[name]

    def find_by_text(self, explanation: ExternalExplanation, text: str) -> Example:
        named = self.by_id.get(explanation.id)
        if named is not None and named.text == text:
            return named
        if named is not None:
            raise InputError(
                f"The explanation of {explanation.id!r} is about {text[:40]!r}, but that text is {named.text[:40]!r}: "
                "give it the id of its own text."
            )
        brings_its_own = explanation.id and not self.data
        if text in self.by_text and not brings_its_own:
            return self.by_text[text]
        if self.data:
            raise InputError(
                f"{self.data} has no text {text[:40]!r}: name the data set that was explained, or none."
            )
        return self.add(
            Example(text, id=explanation.id or str(len(self.examples)), label=explanation.target)
        )

    def add(self, example: Example) -> Example:
        """Remember a text that an explanation brings."""
        self.examples.append(example)
        self.by_id[example.id] = example
        self.by_text.setdefault(example.text, example)
        return example
