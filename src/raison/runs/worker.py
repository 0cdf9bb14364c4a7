"""What a worker does: a shard from its plan to its file, chunk by chunk, the same bytes whoever does it and how often.

A text that can't be explained is recorded with the reason; nothing of a shard is kept before all of it is done.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from raison.api import load
from raison.core import progress
from raison.core.errors import InputError, RaisonError, out_of_memory
from raison.core.records import Explanation
from raison.engine import Request, run_methods, scores_again
from raison.methods.base import Method, check_needs
from raison.methods.failures import forget_failures
from raison.metrics.base import AveragedF1, Metric, Share, Subject
from raison.metrics.runner import measure
from raison.runs import lines
from raison.runs.identity import key_of, method_identity, model_identity
from raison.runs.plan import Header, Planned, header_of, shard_of
from raison.runs.spec import Means, RunSpec
from raison.runs.storage import Place
from raison.studies.evaluation_table import numbers_by_key
from raison.studies.method_lists import method_list, metric_list

__all__ = ["Careful", "Done", "Worker", "cost_name", "shard_name"]


# number of a chunk, place of a text (−1: all of it), how many texts, and how many of the shard are done before
Mark = Callable[[int, int, int, int], None]


@dataclass
class Careful:
    """What earlier tries of a shard have taught."""

    single: set[int] = field(default_factory=set)  # chunks whose texts are done one by one
    poison: dict[int, str] = field(default_factory=dict)  # place of a text -> why it is not tried again

    def to_dict(self) -> dict[str, Any]:
        return {"single": sorted(self.single), "poison": {str(k): v for k, v in self.poison.items()}}

    @classmethod
    def of(cls, given: dict[str, Any]) -> Careful:
        return cls(set(given["single"]), {int(k): v for k, v in given["poison"].items()})


@dataclass(frozen=True)
class Done:
    """A shard that is on the disk."""

    shard: int
    texts: int
    explanations: int
    failed: int
    tokens: int
    seconds: float  # CPU
    notices: tuple[str, ...] = ()


def shard_name(number: int) -> str:
    return f"shards/{number:06d}.jsonl"


def cost_name(number: int) -> str:
    return f"costs/{number:06d}.jsonl"


class Worker:
    """A model with everything that a run asks of it."""

    def __init__(self, place: Place, spec: RunSpec, means: Means, model: Any = None):
        self.place, self.spec = place, spec
        if model is None:
            model = load(spec.model, **means.opening)
        if getattr(model, "hf", None) is not None:
            settle(model.hf)
        self.model = model
        self.methods: list[Method] = method_list(spec.methods)
        self.metrics: list[Metric] = metric_list(spec.metrics) if spec.metrics else []
        for each in self.methods:
            check_needs(each, model)
        if spec.removal is not None and spec.removal not in model.removals:
            model.score([], removal=spec.removal)  # refuses with the sentence that names what works
        self.identity = model_identity(model)
        self.known = [method_identity(each) for each in self.methods]
        self.request = Request(
            target="all" if spec.target == "all" else None,
            units=spec.units,
            removal=spec.removal,
            seed=spec.seed,
            truncate=True,
        )
        self._header: Header | None = None

    @property
    def header(self) -> Header:
        if self._header is None:
            self._header = header_of(self.place)
        assert self._header is not None
        return self._header

    def work(self, number: int, careful: Careful, mark: Mark = lambda chunk, text, size, done: None) -> Done:
        """Do a shard and write it; `mark` is told what is about to be done."""
        clock = time.process_time()
        shard = shard_of(self.place, number)
        records: list[dict[str, Any]] = []
        costs: list[dict[str, Any]] = []
        notices: list[str] = []
        done = 0
        for chunk, places in enumerate(shard.chunks):
            texts = [(place, shard.texts[place]) for place in places]
            alone = chunk in careful.single or any(place in careful.poison for place in places)
            found = None
            if not alone:
                mark(chunk, -1, len(texts), done)
                found = self.together([text for _, text in texts], notices)
            if found is None:
                found = []
                for before, (place, text) in enumerate(texts, done):
                    mark(chunk, place, 1, before)
                    found += self.alone(text, careful.poison.get(place), notices)
            for record, cost in found:
                records.append(record)
                costs.append(cost)
            done += len(texts)
        self.place.put(cost_name(number), lines.packed(costs, [number]))
        self.place.put(shard_name(number), lines.packed(records, [number]))  # last: where it is, the shard is done
        failed = sum("failed" in record for record in records)
        made = sum(len(record.get("explanations", ())) for record in records)
        tokens = sum(text.tokens for text in shard.texts)
        spent = time.process_time() - clock
        return Done(number, len(shard.texts), made, failed, tokens, spent, tuple(notices))

    def together(self, texts: Sequence[Planned], notices: list[str]) -> list[tuple[dict, dict]] | None:
        """The records of some texts; None where one of them stands in the way, or memory does."""
        try:
            return self.explained(texts)
        except RaisonError:
            return None
        except Exception as error:
            if not out_of_memory(error):
                return None
        gc.collect()
        if len(texts) == 1:
            return None
        notices.append(f"{len(texts)} texts did not fit into memory together: half as many were taken.")
        half = len(texts) // 2
        parts = [self.together(part, notices) for part in (texts[:half], texts[half:])]
        return None if None in parts else [pair for part in parts for pair in part]  # type: ignore[union-attr]

    def alone(self, text: Planned, poison: str | None, notices: list[str]) -> list[tuple[dict, dict]]:
        """The records of one text; what goes wrong is recorded, after a second try where that could help."""
        reason, tries = poison or "", 2
        if poison is None:
            for number in (1, 2):
                try:
                    return self.explained([text])
                except InputError as error:
                    reason, tries = str(error), number
                    break  # the text is the reason: it will be so again
                except Exception as error:
                    gc.collect()
                    reason = "out of memory" if out_of_memory(error) else f"{type(error).__name__}: {error}"
        failed = {"reason": reason[:500], "tries": tries}
        return [
            (
                {**self.head(text, known, method), "failed": failed},
                {"key": key_of(self.identity, self.spec, known, text.example)},
            )
            for known, method in zip(self.known, self.methods, strict=True)
        ]

    def head(self, text: Planned, known: list[Any], method: Method) -> dict[str, Any]:
        example = text.example
        return {
            "key": key_of(self.identity, self.spec, known, example),
            "index": text.index,
            "example": example.to_dict(),
            "method": str(method.spec()),
        }

    def explained(self, texts: Sequence[Planned]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """(result, cost) of every text by every method, text by text."""
        examples = [replace(text.example, id=str(text.index)) for text in texts]
        by_method: list[dict[str, list[Explanation]]] = []
        forget_failures(self.model)
        with progress.silence():
            for run in run_methods(self.model, examples, self.methods, self.request):
                grouped: dict[str, list[Explanation]] = {example.id: [] for example in examples}
                for each in run.explanations:
                    grouped[each.encoding.id].append(each)
                by_method.append(grouped)
            numbers = self.measured(texts, by_method) if self.metrics else None
        records = []
        for text in texts:
            for number, (told, method) in enumerate(zip(self.known, self.methods, strict=True)):
                mine = by_method[number][str(text.index)]
                result, cost = packed_group(mine)
                result = {**self.head(text, told, method), **result}
                if numbers is not None:
                    result["numbers"] = [numbers[id(each)] for each in mine]
                records.append((result, {"key": result["key"], "cost": cost}))
        return records

    def measured(self, texts: Sequence[Planned], by_method: list[dict[str, list[Explanation]]]) -> dict[int, Any]:
        """Numbers of every explanation by its id()."""
        every, subjects = [], []
        cache: dict[Any, Any] = {}
        for method, grouped in zip(self.methods, by_method, strict=True):
            for text in texts:
                for each in grouped[str(text.index)]:
                    again = lambda other, m=method, e=each: scores_again(other, m, e, self.spec.seed)  # noqa: E731
                    every.append(each)
                    share = self.header.gold_share
                    given = (self.model, self.spec.removal, self.spec.seed, share, again, cache)
                    subjects.append(Subject(each, text.example, *given))
        found = measure(self.model, subjects, self.metrics, self.spec.removal)
        return {id(each): plain_numbers(numbers_by_key(row)) for each, row in zip(every, found, strict=True)}


def settle(hf: Any) -> None:
    """Put the weights into memory of their own: where they lie (in a mapped file, in Ray's store) decides which kernels
    run, and with them the last digits; so workers of all kinds give the same bytes."""
    for tensor in (*hf.parameters(), *hf.buffers()):
        tensor.data = tensor.data.clone()


def plain_numbers(numbers: dict[str, Any]) -> dict[str, Any]:
    """Numbers as JSON holds them: a share as its two parts, the F1 of averages as four, what is not defined as null."""
    made: dict[str, Any] = {}
    for key, value in numbers.items():
        if isinstance(value, Share):
            made[key] = [float(value.part), float(value.whole)]
        elif isinstance(value, AveragedF1):
            made[key] = [float(number) for number in value.sums]
        elif isinstance(value, np.ndarray):
            made[key] = {"curve": value.tolist()}
        else:
            made[key] = float(value) if np.isfinite(value) else None
    return made


def packed_group(found: Sequence[Explanation]) -> tuple[dict[str, Any], list[Any]]:
    """Explanations of one text: encodings once each, what they cost apart."""
    encodings: list[dict[str, Any]] = []
    made, costs = [], []
    for each in found:
        whole = each.to_dict()
        costs.append(whole.pop("cost"))
        whole.pop("model")  # of the whole run
        encoding = {**whole.pop("encoding"), "id": ""}
        if encoding not in encodings:
            encodings.append(encoding)
        made.append({**whole, "encoding": encodings.index(encoding)})
    return {"encodings": encodings, "explanations": made}, costs
