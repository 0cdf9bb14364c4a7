"""A worker of a run: does a shard from its plan to its file, chunk by chunk, the same bytes whoever does it.

A text that can't be explained is recorded with the reason; nothing of a shard is kept before all of it is done.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from raison.api import load
from raison.core import progress
from raison.core.errors import InputError, RaisonError, out_of_memory
from raison.core.json_record import JsonObject
from raison.core.records import Explanation
from raison.engine import Request, method_scores_again, run_methods
from raison.methods.base import Method, check_needs_of_method
from raison.methods.failures import forget_failures
from raison.metrics.base import Metric, Subject
from raison.metrics.metric_runner import measure_explanations
from raison.models.protocol import Model
from raison.runs import checked_lines
from raison.runs.executor import Careful, ReportPosition, ShardDone, WorkPosition
from raison.runs.identity import (
    key_of_work,
    method_identity,
    model_identity,
    transformers_model_to_identify,
)
from raison.runs.plan import PlannedText, planned_header, shard_of
from raison.runs.result_records import (
    Failure,
    ResultRecord,
    StoredNumbers,
    pack_explanations,
    stored_numbers,
)
from raison.runs.run_spec import Means, RunSpec
from raison.runs.storage import Place
from raison.studies.method_lists import method_list, metric_list

__all__ = ["Worker", "cost_file_of_shard", "shard_file"]

TRIES = 2  # of a text that fails for another reason than itself
LONGEST_REASON = 500  # characters


def shard_file(number: int) -> str:
    """Where the results of a shard lie in a run."""
    return f"shards/{number:06d}.jsonl"


def cost_file_of_shard(number: int) -> str:
    """Where the cost of a shard lies in a run."""
    return f"costs/{number:06d}.jsonl"


@dataclass(frozen=True)
class ShardResult:
    """A text by one method, and what that cost, which is kept in another file."""

    record: ResultRecord
    costs: list[JsonObject] | None  # of each explanation; None: it failed

    def cost_to_json(self) -> JsonObject:
        key: JsonObject = {"key": self.record.key}
        return key if self.costs is None else {**key, "cost": self.costs}


class Worker:
    """A model with everything that a run asks of it."""

    def __init__(self, place: Place, spec: RunSpec, means: Means, model: Model | None = None):
        self.place = place
        self.spec = spec
        self.model: Model = load(spec.model, **means.load_options) if model is None else model
        transformer = transformers_model_to_identify(self.model)
        if transformer is not None:
            move_weights_to_worker_memory(transformer)
        self.methods: list[Method] = method_list(spec.methods)
        self.metrics: list[Metric] = metric_list(spec.metrics) if spec.metrics else []
        for method in self.methods:
            check_needs_of_method(method, self.model)
        if spec.removal is not None and spec.removal not in self.model.removals:
            self.model.score(
                [], removal=spec.removal
            )  # refuses with the sentence that names what works

        self.identity = model_identity(self.model)
        self.method_identities = [method_identity(method) for method in self.methods]
        self.method_names = [str(method.spec()) for method in self.methods]
        self.request = Request(
            target="all" if spec.target == "all" else None,
            units=spec.units,
            removal=spec.removal,
            seed=spec.seed,
            truncate=True,
        )

    @cached_property
    def gold_share(self) -> float | None:
        """How long a rationale is in this corpus; read when it is needed, since the worker also makes the plan."""
        return planned_header(self.place).gold_share

    def work(
        self, number: int, careful: Careful, report_position: ReportPosition = lambda position: None
    ) -> ShardDone:
        """Do a shard and write it; `report_position` is told what is about to be done."""
        clock = time.process_time()
        shard = shard_of(self.place, number)
        notices: list[str] = []
        results: list[ShardResult] = []
        done = 0
        for chunk, places in enumerate(shard.chunks):
            texts = [shard.texts[place] for place in places]
            together = None
            if not careful.asks_for_single_texts(chunk, places):
                report_position(WorkPosition(chunk, -1, len(texts), done))
                together = self.explain_together(texts, notices)
            if together is not None:
                results += together
            else:
                for offset, (place, text) in enumerate(zip(places, texts, strict=True)):
                    report_position(WorkPosition(chunk, place, 1, done + offset))
                    results += self.explain_alone(text, careful.poison.get(place))
            done += len(texts)

        self.write(number, results)
        return ShardDone(
            shard=number,
            texts=len(shard.texts),
            explanations=sum(len(result.record.explanations) for result in results),
            failed=sum(result.record.failure is not None for result in results),
            tokens=sum(text.tokens for text in shard.texts),
            seconds=time.process_time() - clock,
            notices=tuple(notices),
        )

    def write(self, number: int, results: Sequence[ShardResult]) -> None:
        """Write the files of a shard; the records come last: where they are, the shard is done."""
        costs = [result.cost_to_json() for result in results]
        records = [result.record.to_json() for result in results]
        self.place.put(cost_file_of_shard(number), checked_lines.pack_lines(costs, [number]))
        self.place.put(shard_file(number), checked_lines.pack_lines(records, [number]))

    # -- from texts to records ------------------------------------------------------------------------------

    def explain_together(
        self, texts: Sequence[PlannedText], notices: list[str]
    ) -> list[ShardResult] | None:
        """The results of some texts; None where one of them stands in the way, or memory does."""
        try:
            return self.explain(texts)
        except RaisonError:
            return None
        except Exception as error:
            if not out_of_memory(error):
                return None
        gc.collect()
        if len(texts) == 1:
            return None

        notices.append(
            f"{len(texts)} texts did not fit into memory together: half as many were taken."
        )
        half = len(texts) // 2
        first = self.explain_together(texts[:half], notices)
        second = self.explain_together(texts[half:], notices)
        return None if first is None or second is None else first + second

    def explain_alone(self, text: PlannedText, poison: str | None) -> list[ShardResult]:
        """The results of one text; what goes wrong is recorded, after a second try where that could help."""
        if poison is not None:
            return self.failed(text, Failure(poison[:LONGEST_REASON], TRIES))
        reason = ""
        for number in range(1, TRIES + 1):
            try:
                return self.explain([text])
            except InputError as error:  # the text is the reason: it will be so again
                return self.failed(text, Failure(str(error)[:LONGEST_REASON], number))
            except Exception as error:
                gc.collect()
                reason = (
                    "out of memory" if out_of_memory(error) else f"{type(error).__name__}: {error}"
                )
        return self.failed(text, Failure(reason[:LONGEST_REASON], TRIES))

    def failed(self, text: PlannedText, failure: Failure) -> list[ShardResult]:
        """What is recorded of a text that can't be explained."""
        heads = self.heads(text)
        return [ShardResult(replace(head, failure=failure), costs=None) for head in heads]

    def heads(self, text: PlannedText) -> Iterator[ResultRecord]:
        """The records of a text, method by method, without what the methods say."""
        for name, identity in zip(self.method_names, self.method_identities, strict=True):
            yield ResultRecord(
                key=key_of_work(self.identity, self.spec, identity, text.example),
                index=text.index,
                example=text.example,
                method=name,
            )

    def explain(self, texts: Sequence[PlannedText]) -> list[ShardResult]:
        """The results of every text by every method, text by text."""
        examples = [replace(text.example, id=str(text.index)) for text in texts]
        by_method: list[dict[str, list[Explanation]]] = []
        forget_failures(self.model)
        with progress.silence():
            for run in run_methods(self.model, examples, self.methods, self.request):
                by_text: dict[str, list[Explanation]] = {example.id: [] for example in examples}
                for explanation in run.explanations:
                    by_text[explanation.encoding.id].append(explanation)
                by_method.append(by_text)
            numbers = self.measure(texts, by_method) if self.metrics else None

        results = []
        for text in texts:
            for head, of_texts in zip(self.heads(text), by_method, strict=True):
                explanations = of_texts[str(text.index)]
                packed = pack_explanations(explanations)
                record = replace(
                    head, encodings=tuple(packed.encodings), explanations=tuple(packed.explanations)
                )
                if numbers is not None:
                    record = replace(
                        record, numbers=tuple(numbers[id(each)] for each in explanations)
                    )
                results.append(ShardResult(record, packed.costs))
        return results

    def measure(
        self, texts: Sequence[PlannedText], by_method: Sequence[dict[str, list[Explanation]]]
    ) -> dict[int, StoredNumbers]:
        """Numbers of every explanation by its id()."""
        cache: dict[object, object] = {}
        subjects = []
        for method, by_text in zip(self.methods, by_method, strict=True):
            for text in texts:
                for explanation in by_text[str(text.index)]:
                    subjects.append(self.subject(method, text, explanation, cache))
        measured = measure_explanations(self.model, subjects, self.metrics, self.spec.removal)

        numbers = {}
        for subject, row in zip(subjects, measured, strict=True):
            numbers[id(subject.explanation)] = stored_numbers(row)
        return numbers

    def subject(
        self,
        method: Method,
        text: PlannedText,
        explanation: Explanation,
        cache: dict[object, object],
    ) -> Subject:
        """What metrics are told about an explanation."""
        return Subject(
            explanation=explanation,
            example=text.example,
            model=self.model,
            removal=self.spec.removal,
            seed=self.spec.seed,
            gold_share=self.gold_share,
            again=lambda other: method_scores_again(other, method, explanation, self.spec.seed),
            cache=cache,
        )


def move_weights_to_worker_memory(transformer: torch.nn.Module) -> None:
    """Put the weights into memory of their own: where they lie (in a mapped file, in Ray's store) decides which kernels
    run, and with them the last digits; so workers of all kinds give the same bytes."""
    for tensor in (*transformer.parameters(), *transformer.buffers()):
        tensor.data = tensor.data.clone()
