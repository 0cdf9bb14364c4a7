"""Experiment: two unrelated sentences in one translation; how often a rationale crosses into the other (P0, Table
3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import EvaluatedText, Evaluation
from raison.core.records import Example
from raison.datasets.open import open_dataset
from raison.metrics.alignment import (
    Crossover,
    count_crossovers_of_target,
    crossover_rates_of_rationales,
)
from raison.metrics.base import Share
from raison.models.protocol import Model, TargetSpec
from raison.studies.reproduce.experiment import (
    ResultRow,
    Trial,
    check_task_of_trial,
    evaluation_of_rows,
    experiment,
    experiment_column,
    setting_of_trial,
)
from raison.studies.reproduce.target_rationales import (
    TargetInText,
    TargetRationale,
    find_rationales_of_targets,
    target_is_own_token,
    token_targets,
)

__all__ = [
    "DistractorRow",
    "JoinedSentences",
    "distractor_sentences",
    "ids_of_written_translation",
    "join_sentences",
]


@dataclass(frozen=True)
class DistractorRow(ResultRow):
    """The numbers of one pair of sentences."""

    mean_source: Share = experiment_column(
        "source tokens of the other sentence in a rationale", higher=False, pooled=True
    )
    mean_target: Share = experiment_column(
        "target tokens of the other sentence, for targets behind the boundary",
        higher=False,
        pooled=True,
    )
    rate_source: Share = experiment_column(
        "rationales with such source tokens", higher=False, pooled=True
    )
    rate_target: Share = experiment_column(
        "rationales with such target tokens, behind the boundary", higher=False, pooled=True
    )
    length: Share = experiment_column(
        "tokens of a rationale, the previous one counted", higher=False, pooled=True
    )


@dataclass(frozen=True)
class JoinedSentences:
    """Two sentences and the model's translations of each, one after the other; some of their tokens are explained."""

    example: Example
    targets: tuple[TargetInText, ...]
    source_break: int  # first source token of the second sentence
    target_break: int  # first written token of the second translation, counted from 0
    own_tokens: int  # that are the model's first choice here
    tokens: int  # of both translations

    def crossover(self, target: TargetInText, rationale: TargetRationale) -> Crossover:
        """What of a rationale lies on the wrong side; special tokens of the source belong to neither."""
        encoding = target.encoding
        sources = int((encoding.segment == 0).sum())
        source_words = set()
        for token in rationale.kept:
            if token < sources and encoding.start[token] >= 0:
                source_words.add(token)
        written = set()
        for token in rationale.kept:
            if token >= sources:
                written.add(token - sources)
        return count_crossovers_of_target(
            source_words,
            written,
            index=target.target.positions[0] - sources - 1,
            source_break=self.source_break,
            target_break=self.target_break,
        )

    def row(self, rationales: Sequence[TargetRationale]) -> DistractorRow:
        crossovers = []
        for pair in zip(self.targets, rationales, strict=True):
            crossovers.append(self.crossover(*pair))
        tokens = sum(len(rationale.order) for rationale in rationales)
        return DistractorRow(
            **crossover_rates_of_rationales(crossovers), length=Share(tokens, len(rationales))
        )


@experiment("distractors")
def distractor_sentences(trial: Trial) -> Evaluation:
    """Crossovers in rationales of translations of two sentences that have nothing to do with each other.

    Pairs are drawn from the data set by the seed. What is explained are tokens of the model's own translations of
    either sentence alone, put one after the other, as far as they are its first choice there too; of each pair at most
    the setting `targets` (0: all), drawn from both halves alike.
    """
    check_task_of_trial(trial, "seq2seq", "an encoder-decoder")
    pairs = drawn_pairs_of_sentences(trial)
    targets: list[TargetInText] = []
    for pair in pairs:
        targets += pair.targets
    if not targets:
        raise InputError(
            f"{trial.model.name} would write nothing of these joined translations: pass another model."
        )

    rows, costs = {}, {}
    for title, spec in trial.methods.items():
        found = find_rationales_of_targets(trial, title, spec, targets)
        rationales = found.by_text([len(pair.targets) for pair in pairs])
        rows_of_method = []
        for pair, each in zip(pairs, rationales, strict=True):
            rows_of_method.append(pair.row(each))
        rows[title] = rows_of_method
        costs[title] = found.total_cost(len(targets))

    own = sum(pair.own_tokens for pair in pairs)
    tokens = sum(pair.tokens for pair in pairs)
    note = (
        f"{own} of {tokens} tokens ({own / tokens:.0%}) of the joined translations are the model's first choice; "
        f"{len(targets)} of them are explained."
    )
    evaluation = evaluation_of_rows(
        trial, DistractorRow.columns(), rows, data=trial.run.data, notes=[note]
    )
    examples = [pair.example for pair in pairs]
    texts = []
    for example in examples:
        texts.append(EvaluatedText(example.id, example.text, target=str(example.target)))
    return replace(evaluation, costs=costs, texts=tuple(texts))


def drawn_pairs_of_sentences(trial: Trial) -> list[JoinedSentences]:
    """Pairs of sentences, drawn from the data set by the seed."""
    examples = open_dataset(trial.run.data, split=trial.run.split, data=trial.data_dir).examples
    rng = np.random.default_rng(trial.seed)
    order = rng.permutation(len(examples))
    if len(examples) < 2 * trial.count:
        raise InputError(
            f"{trial.count} pairs need {2 * trial.count} sentences, and {trial.run.data} has {len(examples)}."
        )
    most = setting_of_trial(trial, "targets", 6)
    pairs = []
    for number in range(trial.count):
        trial.step(f"{trial.run.name}: pair {number} of {trial.count}")
        first = examples[int(order[2 * number])]
        second = examples[int(order[2 * number + 1])]
        pairs.append(join_sentences(trial.model, first, second, most, rng))
    return pairs


def join_sentences(
    model: Model, first: Example, second: Example, most: int, rng: np.random.Generator
) -> JoinedSentences:
    """Both sentences as one text, and what of their translations is to be explained."""
    texts = [first.text.strip(), second.text.strip()]
    first_written, second_written = (
        ids_of_written_translation(model, Example(text)) for text in texts
    )
    example = Example(" ".join(texts), id=f"{first.id}+{second.id}")
    (encoding,) = model.encode([example])
    ids = [*first_written, *second_written]
    ((longer, target),) = model.resolve_targets(encoding, TargetSpec(target=ids, output="log_prob"))

    is_own = target_is_own_token(model, longer, target)
    own: list[int] = np.flatnonzero(is_own).tolist()
    halves = (
        [number for number in own if number < len(first_written)],
        [number for number in own if number >= len(first_written)],
    )
    drawn: list[int] = []
    for half in halves:
        drawn += sample_sentences_in_order(half, most // 2 if most else len(half), rng)

    tokens = token_targets(target, longer)
    behind_first = (encoding.segment == 0) & (encoding.end > len(texts[0]))
    targets = []
    for number in drawn:
        targets.append(TargetInText(longer, tokens[number]))
    return JoinedSentences(
        example=replace(example, target=target.text),
        targets=tuple(targets),
        source_break=int(np.flatnonzero(behind_first)[0]),
        target_break=len(first_written),
        own_tokens=len(own),
        tokens=len(ids),
    )


def ids_of_written_translation(model: Model, example: Example) -> list[int]:
    """The tokens that the model writes for a text."""
    (encoding,) = model.encode([example])
    ((_, target),) = model.resolve_targets(encoding)
    return list(target.ids)


def sample_sentences_in_order(
    items: Sequence[int], most: int, rng: np.random.Generator
) -> list[int]:
    """At most so many of them, in order."""
    if len(items) <= most:
        return list(items)
    drawn = rng.permutation(len(items))[:most]
    return sorted(items[int(place)] for place in drawn)
