"""Long-range agreement: does a rationale have the antecedent, and does it leave out what does not matter? (P0)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import Column, EvaluatedText, Evaluation
from raison.core.records import Example
from raison.datasets.agreement import fill_templates
from raison.datasets.open import open_dataset
from raison.metrics.statistics import mean_interval
from raison.models.protocol import Model, TargetSpec
from raison.studies.reproduce.experiment import Number, Trial, experiment, found
from raison.studies.reproduce.experiments.searched import Aim, Rationale, check_task, searched, setting, summed

__all__ = ["Usable", "agreement", "aimed", "usable_examples"]

COLUMNS = (
    Column("length", "tokens of the rationale, the previous one counted", False),
    Column("ratio", "length by that of the smallest rationale", False),
    Column("antecedent", "the rationale has the antecedent", True),
    Column("no_distractor", "the rationale has nothing from the brackets", True),
    Column("reached", "the rationale is enough", True),
)
EXACT = "exact(evaluations=4000)"


@dataclass(frozen=True)
class Usable:
    """An example whose answer the model gives, and where its parts are on the axis of tokens."""

    example: Example
    aim: Aim
    antecedent: int
    distractor: frozenset[int]

    def numbers(self, rationale: Rationale, smallest: int | None) -> dict[str, Number]:
        return {
            "length": float(len(rationale.order)),
            "ratio": None if smallest is None else len(rationale.order) / smallest,
            "antecedent": float(self.antecedent in rationale.kept),
            "no_distractor": float(not self.distractor & rationale.kept),
            "reached": float(rationale.reached),
        }


@experiment("agreement")
def agreement(trial: Trial) -> Evaluation:
    """Rationales of the last word of templates: length, ratio to the smallest, antecedent, no distractor.

    ratio is defined for the examples of a seeded subset (`exact_count`, 0: no such column) whose smallest rationale was
    proved by the setting `exact` within its budget.
    """
    usable, told = usable_examples(trial)
    chosen = np.random.default_rng(trial.seed).permutation(len(usable))[: setting(trial, "exact_count", 40)]
    subset = sorted(int(k) for k in chosen)
    exact = searched(trial, "exact", setting(trial, "exact", EXACT), [usable[k].aim for k in subset])[0]
    smallest = {k: len(one.order) for k, one in zip(subset, exact, strict=True) if one.optimal}
    numbers, costs, notes = {}, {}, [told]
    if subset:
        notes.append(f"The smallest rationale was proved for {len(smallest)} of {len(subset)} examples.")
    for title, spec in trial.methods.items():
        made, spent = searched(trial, title, spec, [each.aim for each in usable])
        both = enumerate(zip(usable, made, strict=True))
        numbers[title] = [each.numbers(one, smallest.get(k)) for k, (each, one) in both]
        costs[title] = summed(spent, len(usable))
    if "greedy" in numbers:
        notes.append(f"Greedy's length by relation: {lengths(usable, numbers['greedy'], trial.seed)}.")
    columns = [column for column in COLUMNS if subset or column.key != "ratio"]
    evaluation = found(trial, columns, numbers, data="analogies", about=notes)
    return replace(evaluation, costs=costs, texts=tuple(seen(each) for each in usable))


def usable_examples(trial: Trial) -> tuple[list[Usable], str]:
    """Examples that the model gets right with and without the brackets, relation by relation in turn, and an account.

    Of each relation pairs are tried in a seeded order, one from each at a time, until there are `trial.count`.
    """
    check_task(trial, "causal", "a causal language model")
    by_relation = fill_templates(open_dataset("analogies", data=trial.data_dir).examples)
    waiting = {relation: shuffled(examples, trial.seed) for relation, examples in by_relation.items()}
    tried, right = dict.fromkeys(waiting, 0), dict.fromkeys(waiting, 0)
    usable: list[Usable] = []
    while waiting and len(usable) < trial.count:
        trial.step(f"{trial.run.name}: {len(usable)} of {trial.count} usable examples")
        wave: list[Usable] = []
        for relation in list(waiting):
            one = next_single(trial.model, waiting[relation])
            if one is None:
                del waiting[relation]
            else:
                wave.append(one)
                tried[relation] += 1
        for each in answered(trial.model, wave)[: trial.count - len(usable)]:
            usable.append(each)
            right[each.example.meta["relation"]] += 1
    if not usable:
        raise InputError(f"{trial.model.name} gives none of the answers, so there is nothing to explain.")
    counts = "; ".join(f"{relation} {right[relation]} of {tried[relation]}" for relation in tried)
    return usable, f"Usable of the pairs that were tried, by relation: {counts}."


def shuffled(examples: Sequence[Example], seed: int) -> Iterator[Example]:
    order = np.random.default_rng(seed).permutation(len(examples))
    return iter([examples[k] for k in order])


def next_single(model: Model, examples: Iterator[Example]) -> Usable | None:
    """The next example both of whose words are single tokens."""
    for example in examples:
        if (one := aimed(model, example)) is not None:
            return one
    return None


def aimed(model: Model, example: Example) -> Usable | None:
    """Where things are in an example; None where one of its words has several tokens."""
    (encoding,) = model.encode([example])
    ((longer, target),) = model.resolve_targets(encoding, TargetSpec(target=example.target, output="log_prob"))
    span, (start, end) = example.gold[0], example.meta["aside"]
    inside = np.flatnonzero((encoding.start < span.end) & (encoding.end > span.start))
    if len(target.ids) > 1 or len(inside) > 1:
        return None
    same = np.flatnonzero(encoding.ids == encoding.ids[inside[0]])
    brackets = np.flatnonzero((encoding.start < end) & (encoding.end > start))
    return Usable(example, Aim(longer, target), int(same[-1]), frozenset(map(int, brackets)))


def answered(model: Model, wave: Sequence[Usable]) -> list[Usable]:
    """Those whose answer is the model's next word with the brackets, and without them."""
    for text in ("without", "with"):
        examples = [Example(each.example.meta["without"]) if text == "without" else each.example for each in wave]
        said = model.predict(model.encode(examples)) if examples else []
        wave = [each for each, one in zip(wave, said, strict=True) if one.target.ids == each.aim.target.ids]
    return list(wave)


def lengths(usable: Sequence[Usable], rows: Sequence[dict[str, Number]], seed: int) -> str:
    """Mean length with its interval for each relation, in words."""
    by_relation: dict[str, list[float]] = {}
    for each, row in zip(usable, rows, strict=True):
        by_relation.setdefault(each.example.meta["relation"], []).append(float(row["length"]))  # type: ignore[arg-type]
    told = []
    for relation, values in by_relation.items():
        mean = mean_interval(np.array(values), seed=seed)
        sure = f"{mean.low:.1f} … {mean.high:.1f}, {len(values)} examples" if len(values) > 1 else "1 example"
        told.append(f"{relation} {mean.estimate:.1f} ({sure})")
    return "; ".join(told)


def seen(each: Usable) -> EvaluatedText:
    return EvaluatedText(each.example.id, each.example.text, target=each.aim.target.text)
