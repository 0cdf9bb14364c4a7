"""`measure_explanations` asks the questions of many metrics in few calls: each kept set is run once, and its answer
goes to all that asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from raison.core.errors import InputError, Unsupported
from raison.core.records import Encoding, Target
from raison.methods.kept_sets import kept_sets_share_prefixes
from raison.metrics.base import (
    Answers,
    KeptSets,
    Metric,
    MetricQuestions,
    Numbers,
    Subject,
    check_subject_of_metric,
    model_gives_probabilities,
)
from raison.models.protocol import Model, Question, Scored
from raison.models.runner.score_cache import Memory

__all__ = ["Numbers", "measure_explanations"]

Place = tuple[int, int]  # the numbers of a subject and of a metric
TextKey = tuple[object, ...]  # what tells one text and target from another


def measure_explanations(
    model: Model | None,
    subjects: Sequence[Subject],
    metrics: Sequence[Metric],
    removal: str | None = None,
) -> list[list[Numbers]]:
    """[subjects][metrics] numbers. Metrics run side by side: each round puts all their questions into one call.

    Absence means `removal`, or what the subjects say, who have to agree.
    """
    removal = common_removal_of_metrics(subjects, removal)
    open_metrics = OpenMetrics()
    for i, subject in enumerate(subjects):
        for j, metric in enumerate(metrics):
            check_subject_of_metric(metric, subject)
            questions = metric.ask(subject)
            open_metrics.start((i, j), questions)

    memory = Memory(limit=0)
    while open_metrics.asked:
        if model is None:
            raise Unsupported("These metrics ask the model: give one.")
        asked = open_metrics.take_questions()
        answers = answer_metrics_together(model, subjects, asked, removal=removal, memory=memory)
        for place, answer in answers.items():
            open_metrics.advance(place, answer)

    return open_metrics.table(len(subjects), len(metrics))


def common_removal_of_metrics(subjects: Sequence[Subject], removal: str | None) -> str | None:
    """What absence means for all subjects."""
    removals = {removal or subject.removal for subject in subjects}
    if len(removals) > 1:
        raise InputError(f"One evaluation has one removal, not {' and '.join(map(str, removals))}.")
    return next(iter(removals), None)


@dataclass
class OpenMetrics:
    """Metrics that are being computed: what each of them asks, and the numbers of those that are done."""

    running: dict[Place, MetricQuestions] = field(default_factory=dict)
    asked: dict[Place, KeptSets] = field(default_factory=dict)
    numbers: dict[Place, Numbers] = field(default_factory=dict)

    def start(self, place: Place, questions: MetricQuestions) -> None:
        """Run a metric up to its first question."""
        self.running[place] = questions
        self.advance(place, None)

    def advance(self, place: Place, answers: Answers | None) -> None:
        """Run a metric up to its next question, or to its end."""
        questions = self.running[place]
        try:
            if answers is None:
                asked = next(questions)
            else:
                asked = questions.send(answers)
            self.asked[place] = asked
        except StopIteration as end:
            self.numbers[place] = end.value
            del self.running[place]

    def table(self, subjects: int, metrics: int) -> list[list[Numbers]]:
        """[subjects][metrics] the numbers of all metrics, when all are done."""
        rows = []
        for subject in range(subjects):
            row = [self.numbers[subject, metric] for metric in range(metrics)]
            rows.append(row)
        return rows

    def take_questions(self) -> dict[Place, KeptSets]:
        """All open questions, which are no longer open."""
        asked, self.asked = self.asked, {}
        return asked


@dataclass
class TextSets:
    """All that is asked about one text and target: each set of visible tokens once."""

    encoding: Encoding
    target: Target
    sets: list[np.ndarray] = field(default_factory=list)  # [t] each
    row_of_set: dict[bytes, int] = field(default_factory=dict)

    def add(self, visible: np.ndarray) -> list[int]:
        """Rows of the sets [n t]; sets that show the model the same tokens have one row."""
        rows = []
        for tokens in visible:
            packed = np.packbits(tokens).tobytes()
            if packed not in self.row_of_set:
                self.row_of_set[packed] = len(self.sets)
                self.sets.append(tokens)
            rows.append(self.row_of_set[packed])
        return rows

    def question(self) -> Question:
        keep = np.stack(self.sets)
        return Question(self.encoding, self.target, keep)


def answer_metrics_together(
    model: Model,
    subjects: Sequence[Subject],
    asked: Mapping[Place, KeptSets],
    *,
    removal: str | None,
    memory: Memory,
) -> dict[Place, Answers]:
    """The answers to all questions, whose sets are run together."""
    texts: dict[TextKey, TextSets] = {}
    keys: dict[Place, TextKey] = {}
    rows: dict[Place, list[int]] = {}
    for place, question in asked.items():
        subject = subjects[place[0]]
        encoding = subject.explanation.encoding
        target = target_as_asked(subject, question)
        key = key_of_measured_text(encoding, target)
        if key not in texts:
            texts[key] = TextSets(encoding, target)
        keys[place] = key
        visible = visible_tokens_in_kept_sets(subject, question, target)
        rows[place] = texts[key].add(visible)

    questions = {key: text.question() for key, text in texts.items()}
    scored = score_in_few_calls(model, questions, removal=removal, memory=memory)

    answers = {}
    for place, question in asked.items():
        key = keys[place]
        answers[place] = metric_answers_from_scores(
            question,
            scored[key],
            rows=rows[place],
            target=texts[key].target,
        )
    return answers


def target_as_asked(subject: Subject, question: KeptSets) -> Target:
    """The subject's target in the unit that a metric asks for."""
    target = subject.explanation.target
    if question.output == "value" or not model_gives_probabilities(subject.model):
        return target
    return replace(target, output="log_prob")


def key_of_measured_text(encoding: Encoding, target: Target) -> TextKey:
    """What tells a text and target from others; the methods of one text have equal encodings of their own."""
    axis = (encoding.ids, encoding.segment, encoding.positions, encoding.fixed)
    contents = [values.tobytes() for values in axis]
    return (*contents, encoding.texts, target)


def visible_tokens_in_kept_sets(subject: Subject, question: KeptSets, target: Target) -> np.ndarray:
    """[n t] the tokens that the model sees in each kept set."""
    encoding = subject.explanation.encoding
    return target.visible(subject.units.keep(question.units), encoding)


def score_in_few_calls(
    model: Model,
    questions: Mapping[TextKey, Question],
    *,
    removal: str | None,
    memory: Memory,
) -> dict[TextKey, Scored]:
    """The model's scores in one call, or in two where some share prefixes of a causal model and some do not."""
    deletes = (removal or model.removals[0]) == "delete"
    may_share = model.shares_prefixes and deletes
    alone: list[TextKey] = []
    sharing: list[TextKey] = []
    for key, question in questions.items():
        group = sharing if may_share and kept_sets_share_prefixes(question) else alone
        group.append(key)

    scored: dict[TextKey, Scored] = {}
    for keys, shared in ((alone, None), (sharing, memory)):
        if not keys:
            continue
        together = [questions[key] for key in keys]
        results = model.score(together, removal=removal, memory=shared)
        scored.update(zip(keys, results, strict=True))
    return scored


def metric_answers_from_scores(
    question: KeptSets,
    scored: Scored,
    *,
    rows: list[int],
    target: Target,
) -> Answers:
    """The answers to one question, from the rows of a text's scores that hold its sets."""
    value = scored.value[rows].sum(-1)
    predicted = scored.predicted[rows]
    if question.output == "value" or target.output != "log_prob":
        return Answers(value, value, predicted)

    if (
        target.contrast is not None
    ):  # log odds of the two outcomes: the probability of the one among both
        value = -np.logaddexp(0.0, -value)
    return Answers(np.exp(value), value, predicted)
