"""The format of SQuAD: one JSON file of articles, paragraphs, questions, and answers by their first character.

Rajpurkar et al. 2016, SQuAD: 100,000+ Questions for Machine Comprehension of Text. The gold span is the first answer in
the context; all answers stand in `meta["answers"]`. Questions without an answer (version 2) have the label "".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from raison.core import limits
from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.jsonl import value_of, whole_text
from raison.datasets.rows import Broken, Row, Rows, each
from raison.datasets.spans import stated

__all__ = ["questions"]

Asked = tuple[str, str, Any]  # title of the article, its context, the record of the question


def questions(path: Path) -> Rows[Example]:
    """Examples of a file: the question, its context, and the answer as gold span."""
    read = whole_text(path)
    if isinstance(read, Broken):
        yield read
        return
    text = read.value
    try:
        whole = limits.from_json(text)
    except json.JSONDecodeError as error:
        yield Broken(str(path), error.lineno, f"it is not JSON ({error})")
        return
    if not isinstance(whole, dict) or "data" not in whole:
        yield Broken(str(path), 1, "it is neither SQuAD, nor a list of objects, nor an object in each line")
        return
    yield from each(asked(path, text, whole), example)


def asked(path: Path, text: str, whole: Any) -> Rows[Asked]:
    """The questions of a file with their contexts; `line` is where the id of the question stands."""
    place, line = 0, 1
    try:
        for article in value_of(whole, "data", list):
            for paragraph in value_of(article, "paragraphs", list):
                context = value_of(paragraph, "context", str)
                for question in value_of(paragraph, "qas", list):
                    found = text.find(json.dumps(str(question["id"]), ensure_ascii=False), place)
                    if found >= 0:  # an id that is written in another way (escapes) keeps the line before
                        line += text.count("\n", place, found)
                        place = found
                    yield Row(str(path), line, (str(article.get("title", "")), context, question))
    except InputError as error:
        yield Broken(str(path), line, str(error).rstrip("."))
    except (TypeError, KeyError, AttributeError):
        yield Broken(str(path), line, "it is not SQuAD: data, paragraphs and qas are lists of objects with ids")


def example(row: Row[Asked]) -> Example:
    title, context, record = row.value
    answers = value_of(record, "answers", list)
    spans = []
    for answer in answers:
        start, said = value_of(answer, "answer_start", int), value_of(answer, "text", str)
        spans.append(stated(context, start, start + len(said), said, "context"))
    return Example(
        value_of(record, "question", str),
        context,
        id=str(record["id"]),
        label=answers[0]["text"] if answers else "",
        gold=tuple(spans[:1]),
        meta={"title": title, "answers": [[span.start, span.end] for span in spans]},
    )
