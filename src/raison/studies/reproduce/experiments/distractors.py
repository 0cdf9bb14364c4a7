"""Two unrelated sentences translated as one: how often does a rationale look into the other one? (P0, Table 3)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import Column, EvaluatedText, Evaluation
from raison.core.records import Example
from raison.datasets.open import open_dataset
from raison.metrics.alignment import Crossover, crossover, crossover_rates
from raison.metrics.base import Share
from raison.models.protocol import Model, TargetSpec
from raison.studies.reproduce.experiment import Number, Trial, experiment, found
from raison.studies.reproduce.experiments.lambada import own_tokens, pieces_of
from raison.studies.reproduce.experiments.searched import Aim, Rationale, check_task, searched, setting, summed

__all__ = ["Joined", "distractors", "joined"]

COLUMNS = (
    Column("mean_source", "source tokens of the other sentence in a rationale", False, True),
    Column("mean_target", "target tokens of the other sentence, for targets behind the boundary", False, True),
    Column("rate_source", "rationales with such source tokens", False, True),
    Column("rate_target", "rationales with such target tokens, behind the boundary", False, True),
    Column("length", "tokens of a rationale, the previous one counted", False, True),
)


@dataclass(frozen=True)
class Joined:
    """Two sentences and the model's translations of each, one after the other; some of their tokens are explained."""

    example: Example
    aims: tuple[Aim, ...]
    source_break: int  # first source token of the second sentence
    target_break: int  # first written token of the second translation, counted from 0
    own: tuple[int, int]  # tokens that are the model's first choice here, of all

    def crossed(self, aim: Aim, rationale: Rationale) -> Crossover:
        """What of a rationale lies on the wrong side; special tokens of the source belong to neither."""
        sources = int((aim.encoding.segment == 0).sum())
        words = {t for t in rationale.kept if t < sources and aim.encoding.start[t] >= 0}
        written = {t - sources for t in rationale.kept if t >= sources}
        index = aim.target.positions[0] - sources - 1
        breaks = {"source_break": self.source_break, "target_break": self.target_break}
        return crossover(words, written, index=index, **breaks)

    def numbers(self, rationales: Sequence[Rationale]) -> dict[str, Number]:
        both = list(zip(self.aims, rationales, strict=True))
        length = Share(sum(len(each.order) for each in rationales), len(rationales))
        return {**crossover_rates([self.crossed(*pair) for pair in both]), "length": length}


@experiment("distractors")
def distractors(trial: Trial) -> Evaluation:
    """Crossovers in rationales of translations of two sentences that have nothing to do with each other.

    Pairs are drawn from the data set by the seed. What is explained are tokens of the model's own translations of
    either sentence alone, put one after the other, as far as they are its first choice there too; of each pair at most
    the setting `targets` (0: all), drawn from both halves alike.
    """
    check_task(trial, "seq2seq", "an encoder-decoder")
    read = open_dataset(trial.run.data, split=trial.run.split, data=trial.data_dir).examples
    rng = np.random.default_rng(trial.seed)
    numbers_of = rng.permutation(len(read))
    if len(read) < 2 * trial.count:
        raise InputError(f"{trial.count} pairs need {2 * trial.count} sentences, and {trial.run.data} has {len(read)}.")
    most = setting(trial, "targets", 6)
    pairs = []
    for k in range(trial.count):
        trial.step(f"{trial.run.name}: pair {k} of {trial.count}")
        first, second = (read[int(numbers_of[2 * k + side])] for side in (0, 1))
        pairs.append(joined(trial.model, first, second, most, rng))
    aims = [aim for pair in pairs for aim in pair.aims]
    if not aims:
        raise InputError(f"{trial.model.name} would write nothing of these joined translations: pass another model.")
    numbers, costs = {}, {}
    for title, spec in trial.methods.items():
        made, spent = searched(trial, title, spec, aims)
        rest = iter(made)
        numbers[title] = [pair.numbers([next(rest) for _ in pair.aims]) for pair in pairs]
        costs[title] = summed(spent, len(aims))
    own, every = (sum(pair.own[k] for pair in pairs) for k in (0, 1))
    told = (
        f"{own} of {every} tokens ({own / every:.0%}) of the joined translations are the model's first choice; "
        f"{len(aims)} of them are explained."
    )
    evaluation = found(trial, COLUMNS, numbers, data=trial.run.data, about=[told])
    seen = tuple(EvaluatedText(pair.example.id, pair.example.text, target=str(pair.example.target)) for pair in pairs)
    return replace(evaluation, costs=costs, texts=seen)


def joined(model: Model, first: Example, second: Example, most: int, rng: np.random.Generator) -> Joined:
    """Both sentences as one text, and what of their translations is to be explained."""
    texts = [first.text.strip(), second.text.strip()]
    written = [written_for(model, Example(text)) for text in texts]
    example = Example(" ".join(texts), id=f"{first.id}+{second.id}")
    (encoding,) = model.encode([example])
    ids = [*written[0], *written[1]]
    ((longer, target),) = model.resolve_targets(encoding, TargetSpec(target=ids, output="log_prob"))
    behind = (encoding.segment == 0) & (encoding.end > len(texts[0]))
    own = np.flatnonzero(own_tokens(model, longer, target))
    pieces = pieces_of(target, longer)
    halves = [[int(i) for i in own if (i >= len(written[0])) == later] for later in (False, True)]
    drawn = [i for half in halves for i in sample(half, most // 2 if most else len(half), rng)]
    aims = tuple(Aim(longer, pieces[i]) for i in drawn)
    kept = replace(example, target=target.text)
    return Joined(kept, aims, int(np.flatnonzero(behind)[0]), len(written[0]), (len(own), len(ids)))


def written_for(model: Model, example: Example) -> list[int]:
    """The tokens that the model writes for a text."""
    (encoding,) = model.encode([example])
    ((_, target),) = model.resolve_targets(encoding)
    return list(target.ids)


def sample(items: Sequence[int], most: int, rng: np.random.Generator) -> list[int]:
    """At most so many of them, in order."""
    if len(items) <= most:
        return list(items)
    return sorted(items[int(k)] for k in rng.permutation(len(items))[:most])
