"""The questions of many metrics in few calls: every set of units is run once, whoever asks about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from raison.core.errors import InputError
from raison.core.records import Target
from raison.methods.perturbation import shares
from raison.metrics.base import AveragedF1, Kept, Metric, Said, Share, Subject, check_subject
from raison.models.protocol import Model, Question, Scored
from raison.models.runner.score_cache import Memory

__all__ = ["Numbers", "measure"]

Numbers = dict[str, "float | Share | AveragedF1 | np.ndarray"]


@dataclass
class Book:
    """What is asked about one text and target in one unit: each set once."""

    question: Question
    rows: dict[bytes, int] = field(default_factory=dict)
    keep: list[np.ndarray] = field(default_factory=list)  # [t] each

    def enter(self, keep: np.ndarray) -> list[int]:
        """Numbers of the sets [n t]; sets that show the model the same tokens are one."""
        found = []
        for row in keep:
            key = np.packbits(row).tobytes()
            if key not in self.rows:
                self.rows[key] = len(self.keep)
                self.keep.append(row)
            found.append(self.rows[key])
        return found


def measure(
    model: Model | None, subjects: Sequence[Subject], metrics: Sequence[Metric], removal: str | None = None
) -> list[list[Numbers]]:
    """[subjects][metrics] numbers. Metrics run side by side: each round puts all their questions into one call.

    Absence means `removal`, or what the subjects say, who have to agree.
    """
    told = {removal or subject.removal for subject in subjects}
    if len(told) > 1:
        raise InputError(f"One evaluation has one removal, not {' and '.join(map(str, told))}.")
    removal = next(iter(told), None)
    results: list[list[Numbers]] = [[{} for _ in metrics] for _ in subjects]
    running: dict[tuple[int, int], Any] = {}
    waiting: dict[tuple[int, int], Kept] = {}
    memories: dict[tuple, Memory] = {}

    def step(place: tuple[int, int], said: Said | None) -> None:
        try:
            waiting[place] = running[place].send(said)
        except StopIteration as stop:
            results[place[0]][place[1]] = stop.value
            del running[place]

    for i, subject in enumerate(subjects):
        for j, metric in enumerate(metrics):
            check_subject(metric, subject)
            running[i, j] = metric.ask(subject)
            step((i, j), None)
    while waiting:
        asked, waiting = waiting, {}
        answers = answered(
            model, {place: (subjects[place[0]], kept) for place, kept in asked.items()}, removal, memories
        )
        for place, said in answers.items():
            step(place, said)
    return results


def answered(
    model: Model | None,
    asked: dict[tuple[int, int], tuple[Subject, Kept]],
    removal: str | None,
    memories: dict[tuple, Memory],
) -> dict[tuple[int, int], Said]:
    """One call for all questions, or two where some share prefixes of a causal model and some do not."""
    assert model is not None
    books: dict[tuple, Book] = {}
    entries: dict[tuple[int, int], tuple[tuple, list[int]]] = {}
    for place, (subject, kept) in asked.items():
        encoding, target = subject.explanation.encoding, read_as(subject, kept.output)
        visible = (subject.units.keep(kept.units) | target.given(encoding)) & target.inputs(len(encoding))
        # the methods of one text have encodings of their own, which say the same
        axis = (encoding.ids, encoding.segment, encoding.positions, encoding.fixed)
        key = (*(each.tobytes() for each in axis), encoding.texts, target)
        book = books.setdefault(key, Book(Question(encoding, target, visible[:0])))
        entries[place] = key, book.enter(visible)
    questions = {
        key: Question(book.question.encoding, book.question.target, np.stack(book.keep)) for key, book in books.items()
    }
    scored: dict[tuple, Scored] = {}
    able = model.shares_prefixes and (removal or model.removals[0]) == "delete"
    for sharing in (False, True):
        members = [key for key, question in questions.items() if (able and shares(question)) == sharing]
        if members:
            memory = memories.setdefault((), Memory(limit=0)) if sharing else None
            found = model.score([questions[key] for key in members], removal=removal, memory=memory)
            scored.update(zip(members, found, strict=True))
    return {place: said(asked[place][1], scored[key], rows, key[-1]) for place, (key, rows) in entries.items()}


def read_as(subject: Subject, output: str) -> Target:
    """The target in the unit that a metric wants."""
    target = subject.explanation.target
    if output == "value" or subject.model is None or not subject.model.probable:
        return target
    return replace(target, output="log_prob")


def said(kept: Kept, scored: Scored, rows: list[int], target: Target) -> Said:
    value = scored.value[rows].sum(-1)
    if kept.output == "value" or target.output != "log_prob":
        return Said(value, value, scored.predicted[rows])
    if target.contrast is not None:  # log odds of the two outcomes: the probability of the one among both
        value = -np.logaddexp(0.0, -value)
    return Said(np.exp(value), value, scored.predicted[rows])
