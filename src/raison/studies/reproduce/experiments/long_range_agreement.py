"""Experiment: do rationales of long-range agreement have the antecedent, and no distractor? (P0)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import EvaluatedText, Evaluation
from raison.core.records import Encoding, Example
from raison.datasets.agreement_templates import fill_templates
from raison.datasets.open import open_dataset
from raison.metrics.statistics import mean_interval
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
)

__all__ = [
    "AgreementRow",
    "UsableExample",
    "UsableExamples",
    "find_antecedent_and_brackets",
    "long_range_agreement",
    "usable_agreements",
]

EXACT = "exact(evaluations=4000)"


@dataclass(frozen=True)
class AgreementRow(ResultRow):
    """The numbers of one example."""

    length: float = experiment_column(
        "tokens of the rationale, the previous one counted", higher=False
    )
    ratio: float | None = experiment_column(
        "length by that of the smallest rationale", higher=False
    )
    antecedent: float = experiment_column("the rationale has the antecedent", higher=True)
    no_distractor: float = experiment_column(
        "the rationale has nothing from the brackets", higher=True
    )
    reached: float = experiment_column("the rationale is enough", higher=True)


@dataclass(frozen=True)
class UsableExample:
    """An example whose answer the model gives, and where its parts are on the axis of tokens."""

    example: Example
    target: TargetInText
    antecedent: int
    distractor: frozenset[int]

    @property
    def relation(self) -> str:
        return str(self.example.meta["relation"])

    def evaluated_text(self) -> EvaluatedText:
        return EvaluatedText(self.example.id, self.example.text, target=self.target.target.text)

    def row(self, rationale: TargetRationale, smallest: int | None) -> AgreementRow:
        """The numbers of a rationale; `smallest` is the length of the smallest one, where that is known."""
        length = len(rationale.order)
        has_antecedent = self.antecedent in rationale.kept
        has_distractor = bool(self.distractor & rationale.kept)
        return AgreementRow(
            length=float(length),
            ratio=None if smallest is None else length / smallest,
            antecedent=float(has_antecedent),
            no_distractor=float(not has_distractor),
            reached=float(rationale.reached),
        )


@dataclass
class UsableExamples:
    """Examples that the model gets right, and of how many that were tried."""

    examples: list[UsableExample] = field(default_factory=list)
    tried: dict[str, int] = field(default_factory=dict)  # by relation
    right: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def targets(self) -> list[TargetInText]:
        return [usable.target for usable in self.examples]

    def add(self, usable: UsableExample) -> None:
        self.examples.append(usable)
        self.right[usable.relation] += 1

    def sentence(self) -> str:
        counts = []
        for relation, tried in self.tried.items():
            counts.append(f"{relation} {self.right[relation]} of {tried}")
        all_counts = "; ".join(counts)
        return f"Usable of the pairs that were tried, by relation: {all_counts}."


@experiment("agreement")
def long_range_agreement(trial: Trial) -> Evaluation:
    """Rationales of the last word of templates: length, ratio to the smallest, antecedent, no distractor.

    ratio is defined for the examples of a seeded subset (`exact_count`, 0: no such column) whose smallest rationale was
    proved by the setting `exact` within its budget.
    """
    usable = usable_agreements(trial)
    notes = [usable.sentence()]
    subset = drawn_subset_of_agreements(
        len(usable), setting_of_trial(trial, "exact_count", 40), trial.seed
    )
    smallest = smallest_lengths_of_rationales(trial, usable, subset)
    if subset:
        notes.append(
            f"The smallest rationale was proved for {len(smallest)} of {len(subset)} examples."
        )

    rows, costs = {}, {}
    for title, spec in trial.methods.items():
        found = find_rationales_of_targets(trial, title, spec, usable.targets)
        costs[title] = found.total_cost(len(usable))
        rows[title] = agreement_rows_of_method(usable, found.rationales, smallest)
    if "greedy" in rows:
        lengths = rationale_lengths_by_relation(usable.examples, rows["greedy"], trial.seed)
        notes.append(f"Greedy's length by relation: {lengths}.")

    keys = ["length", "antecedent", "no_distractor", "reached"]
    if subset:
        keys.append("ratio")
    columns = AgreementRow.chosen_columns(keys)
    evaluation = evaluation_of_rows(trial, columns, rows, data="analogies", notes=notes)
    texts = [example.evaluated_text() for example in usable.examples]
    return replace(evaluation, costs=costs, texts=tuple(texts))


def agreement_rows_of_method(
    usable: UsableExamples, rationales: Sequence[TargetRationale], smallest: Mapping[int, int]
) -> list[AgreementRow]:
    """The numbers of one method's rationales, example by example; `smallest` lengths by the number of the example."""
    rows = []
    pairs = zip(usable.examples, rationales, strict=True)
    for number, (example, rationale) in enumerate(pairs):
        rows.append(example.row(rationale, smallest.get(number)))
    return rows


def drawn_subset_of_agreements(count: int, size: int, seed: int) -> list[int]:
    """The numbers of some examples, drawn by the seed, in order."""
    drawn = np.random.default_rng(seed).permutation(count)[:size]
    return sorted(int(number) for number in drawn)


def smallest_lengths_of_rationales(
    trial: Trial, usable: UsableExamples, subset: Sequence[int]
) -> dict[int, int]:
    """Number of an example -> the length of its smallest rationale, where the search proved it."""
    targets = [usable.targets[number] for number in subset]
    found = find_rationales_of_targets(
        trial, "exact", setting_of_trial(trial, "exact", EXACT), targets
    )
    lengths = {}
    for number, rationale in zip(subset, found.rationales, strict=True):
        if rationale.optimal:
            lengths[number] = len(rationale.order)
    return lengths


def usable_agreements(trial: Trial) -> UsableExamples:
    """Examples that the model gets right with and without the brackets, relation by relation in turn.

    Of each relation pairs are tried in a seeded order, one from each at a time, until there are `trial.count`.
    """
    check_task_of_trial(trial, "causal", "a causal language model")
    by_relation = fill_templates(open_dataset("analogies", data=trial.data_dir).examples)
    waiting = {}
    for relation, examples in by_relation.items():
        waiting[relation] = shuffled_agreements(examples, trial.seed)
    usable = UsableExamples(tried=dict.fromkeys(waiting, 0), right=dict.fromkeys(waiting, 0))
    while waiting and len(usable) < trial.count:
        room = trial.count - len(usable)
        trial.step(f"{trial.run.name}: {len(usable)} of {trial.count} usable examples")
        wave: list[UsableExample] = []
        for relation in list(waiting):
            example = next_agreements_of_single_tokens(trial.model, waiting[relation])
            if example is None:
                del waiting[relation]
            else:
                wave.append(example)
                usable.tried[relation] += 1

        right = agreements_answered_rightly(trial.model, wave)
        for example in right[:room]:
            usable.add(example)
    if not len(usable):
        raise InputError(
            f"{trial.model.name} gives none of the answers, so there is nothing to explain."
        )
    return usable


def shuffled_agreements(examples: Sequence[Example], seed: int) -> Iterator[Example]:
    """The examples one by one, in an order that the seed draws."""
    order = np.random.default_rng(seed).permutation(len(examples))
    for number in order:
        yield examples[number]


def next_agreements_of_single_tokens(
    model: Model, examples: Iterator[Example]
) -> UsableExample | None:
    """The next example both of whose words are single tokens."""
    for example in examples:
        found = find_antecedent_and_brackets(model, example)
        if found is not None:
            return found
    return None


def find_antecedent_and_brackets(model: Model, example: Example) -> UsableExample | None:
    """Where things are in an example; None where one of its words has several tokens."""
    (encoding,) = model.encode([example])
    ((longer, target),) = model.resolve_targets(
        encoding, TargetSpec(target=example.target, output="log_prob")
    )
    word = example.gold[0]
    in_word = tokens_in_agreement_span(encoding, word.start, word.end)
    if len(target.ids) > 1 or len(in_word) > 1:
        return None

    same_word = np.flatnonzero(encoding.ids == encoding.ids[in_word[0]])
    start, end = example.meta["aside"]
    in_brackets = tokens_in_agreement_span(encoding, start, end)
    return UsableExample(
        example=example,
        target=TargetInText(longer, target),
        antecedent=int(same_word[-1]),
        distractor=frozenset(map(int, in_brackets)),
    )


def tokens_in_agreement_span(encoding: Encoding, start: int, end: int) -> np.ndarray:
    """The tokens that share a character with a span of the text."""
    return np.flatnonzero((encoding.start < end) & (encoding.end > start))


def agreements_answered_rightly(model: Model, wave: Sequence[UsableExample]) -> list[UsableExample]:
    """Those whose answer is the model's next word with the brackets, and without them."""
    without_brackets = []
    for usable in wave:
        without_brackets.append(Example(usable.example.meta["without"]))
    right = agreements_with_right_answer(model, wave, without_brackets)
    with_brackets = [usable.example for usable in right]
    return agreements_with_right_answer(model, right, with_brackets)


def agreements_with_right_answer(
    model: Model, wave: Sequence[UsableExample], examples: Sequence[Example]
) -> list[UsableExample]:
    """Those whose answer is the model's next word behind these texts."""
    if not wave:
        return []
    predictions = model.predict(model.encode(examples))
    pairs = zip(wave, predictions, strict=True)
    right = []
    for usable, prediction in pairs:
        if prediction.target.ids == usable.target.target.ids:
            right.append(usable)
    return right


def rationale_lengths_by_relation(
    examples: Sequence[UsableExample], rows: Sequence[AgreementRow], seed: int
) -> str:
    """Mean length with its interval for each relation, in words."""
    by_relation: dict[str, list[float]] = {}
    for example, row in zip(examples, rows, strict=True):
        by_relation.setdefault(example.relation, []).append(row.length)

    phrases = []
    for relation, lengths in by_relation.items():
        mean = mean_interval(np.array(lengths), seed=seed)
        count = len(lengths)
        interval = "1 example"
        if count > 1:
            interval = f"{mean.low:.1f} … {mean.high:.1f}, {count} examples"
        phrases.append(f"{relation} {mean.estimate:.1f} ({interval})")
    return "; ".join(phrases)
