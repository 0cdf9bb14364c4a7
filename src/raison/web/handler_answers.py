"""What the handlers answer: records whose JSON the page reads, statements on heads, and the Python snippet that
gives the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from raison.core.json_record import JsonObject, Record
from raison.core.records import Encoding, Explanation
from raison.show.html.answer_words import words_of_heads, words_of_removal
from raison.show.html.page_data import page_data
from raison.studies.trust import Trust
from raison.studies.what_if import AnswerWithoutUnits, HeadsOfAnswer

__all__ = [
    "ExplanationAnswer",
    "HeadsAnswer",
    "PredictionAnswer",
    "RemovalAnswer",
    "TrustAnswer",
    "python_snippet",
]

WIDTH = 100  # characters of a call that stands in one line


@dataclass(frozen=True, eq=False)
class PredictionAnswer(Record):
    """What a model says about a text, and how it cuts the text into tokens."""

    encoding: Encoding
    text: str  # the predicted outcome
    value: float | None  # None: of a translation nobody has asked it
    kind: str  # label | tag | span | token | text
    top: tuple[tuple[str, float], ...]  # the best outcomes with their values
    probable: bool  # values are probabilities


@dataclass(frozen=True, eq=False)
class ExplanationAnswer(Record):
    """Explanations, and the Python that gives the same; the page draws them in the words that go with them."""

    explanations: tuple[Explanation, ...]
    python: tuple[str, ...]

    def to_dict(self) -> JsonObject:
        return {**page_data(self.explanations), "python": list(self.python)}


@dataclass(frozen=True, eq=False)
class TrustAnswer(Record):
    """How far an explanation by a method can be trusted."""

    trust: Trust
    method: str


@dataclass(frozen=True, eq=False)
class RemovalAnswer(Record):
    """What a model says when some units are removed, with the words in which the page says it."""

    answer: AnswerWithoutUnits

    def to_dict(self) -> JsonObject:
        return {**self.answer.to_dict(), "words": asdict(words_of_removal(self.answer))}


@dataclass(frozen=True, eq=False)
class HeadsAnswer(Record):
    """All heads, the explanation, and the same without some of them."""

    heads: HeadsOfAnswer
    explanation: Explanation
    without_heads: Explanation | None = None
    off: tuple[tuple[int, int], ...] = ()  # the heads without which it was made

    def to_dict(self) -> JsonObject:
        heads = self.heads.to_dict()
        heads["words"] = [[asdict(head) for head in row] for row in words_of_heads(self.heads)]
        if self.without_heads is None:
            return {"heads": heads, "statement": "", **page_data([self.explanation])}
        beside = replace(
            self.without_heads,
            encoding=self.explanation.encoding,
            method=f"{self.without_heads.method} without {name_heads_in_answer(self.off)}",
        )
        statement = statement_of_heads_off_in_answer(self.without_heads, len(self.off))
        return {
            "heads": heads,
            "statement": statement,
            **page_data([self.explanation, beside], together=True),
        }


def name_heads_in_answer(off: Sequence[tuple[int, int]]) -> str:
    """`head 3.0`, `heads 3.0, 4.1`: rows of the grid and heads."""
    names = ", ".join(f"{row}.{head}" for row, head in off)
    if len(off) == 1:
        return f"head {names}"
    return f"heads {names}"


def statement_of_heads_off_in_answer(without_heads: Explanation, count: int) -> str:
    """How far the value of the target moves when heads are switched off."""
    heads = "this head" if count == 1 else f"these {count} heads"
    before = without_heads.diagnostics["value_before"]
    after = without_heads.diagnostics["value_without_heads"]
    return f"With {heads} off: {before:.4g} → {after:.4g}"


def python_snippet(
    verb: str, model: str, positional: tuple[object, ...], keywords: Mapping[str, object]
) -> str:
    """A request as Python to paste, which gives the same result; keywords that are None stand nowhere."""
    arguments = [repr(value) for value in positional]
    for key, value in keywords.items():
        if value is not None:
            arguments.append(f"{key}={value!r}")
    in_one_line = ", ".join(arguments)
    call = f"raison.{verb}(model, {in_one_line})"
    if len(call) > WIDTH:
        lines = "".join(f"    {argument},\n" for argument in ("model", *arguments))
        call = f"raison.{verb}(\n{lines})"
    return f"import raison\n\nmodel = raison.load({model!r})\nresult = {call}\n"
