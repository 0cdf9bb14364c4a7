"""The format of SQuAD: one JSON file of articles, paragraphs, questions, and answers by their first character.

Rajpurkar et al. 2016, SQuAD: 100,000+ Questions for Machine Comprehension of Text. The gold span is the first answer in
the context; all answers stand in `meta["answers"]`. Questions without an answer (version 2) have the label "".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from raison.core import limits
from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.character_spans import checked_span
from raison.datasets.dataset_rows import Broken, Row, Rows, broken_row, map_rows
from raison.datasets.json_files import Json, read_json_text, required_json_field

__all__ = ["read_squad"]


@dataclass(frozen=True)
class Question:
    """A question of a file, and where it stands."""

    title: str  # of the article
    context: str
    record: Json


def read_squad(path: Path) -> Rows[Example]:
    """Examples of a file: the question, its context, and the answer as gold span."""
    row = read_json_text(path)
    if isinstance(row, Broken):
        yield row
        return

    try:
        content = limits.read_json_text(row.value)
    except json.JSONDecodeError as error:
        yield Broken(str(path), error.lineno, f"it is not JSON ({error})")
        return
    if not isinstance(content, dict) or "data" not in content:
        yield Broken(
            str(path), 1, "it is neither SQuAD, nor a list of objects, nor an object in each line"
        )
        return

    yield from map_rows(questions_of_file(path, row.value, content), question_example)


class LineFinder:
    """Finds the line at which the id of a question stands, going on from the question before."""

    def __init__(self, text: str):
        self.text = text
        self.place = 0
        self.line = 1

    def line_of(self, id: object) -> int:
        """The line of an id; one that is written in another way (escapes) keeps the line before."""
        written = json.dumps(str(id), ensure_ascii=False)
        place = self.text.find(written, self.place)
        if place >= 0:
            self.line += self.text.count("\n", self.place, place)
            self.place = place
        return self.line


def questions_of_file(path: Path, text: str, content: Json) -> Rows[Question]:
    """The questions of a file with their contexts; `line` is where the id of the question stands."""
    lines = LineFinder(text)
    try:
        for article in required_json_field(content, "data", list):
            for paragraph in required_json_field(article, "paragraphs", list):
                context = required_json_field(paragraph, "context", str)
                for record in required_json_field(paragraph, "qas", list):
                    line = lines.line_of(record["id"])
                    title = str(article.get("title", ""))
                    yield Row(str(path), line, Question(title, context, record))
    except InputError as error:
        yield broken_row(str(path), lines.line, error)
    except (TypeError, KeyError, AttributeError):
        yield Broken(
            str(path),
            lines.line,
            "it is not SQuAD: data, paragraphs and qas are lists of objects with ids",
        )


def question_example(row: Row[Question]) -> Example:
    """The example of a question."""
    question = row.value
    record = question.record
    answers = required_json_field(record, "answers", list)

    spans = []
    for answer in answers:
        start = required_json_field(answer, "answer_start", int)
        text = required_json_field(answer, "text", str)
        span = checked_span(
            question.context,
            start,
            start + len(text),
            stated=text,
            segment="context",
        )
        spans.append(span)

    return Example(
        required_json_field(record, "question", str),
        question.context,
        id=str(record["id"]),
        label=answers[0]["text"] if answers else "",
        gold=tuple(spans[:1]),
        meta={"title": question.title, "answers": [[span.start, span.end] for span in spans]},
    )
