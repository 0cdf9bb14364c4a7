"""What a task is: its texts as tokens on one axis, its targets, and the columns of outcomes that a model gives
whole texts.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
import torch

from raison.core.records import Encoding, Example, Target
from raison.core.text_splitting import stripped_span
from raison.models.codec import Codec, Pieces
from raison.models.loaded_model import LoadedModel
from raison.models.protocol import Prediction, TargetSpec
from raison.models.runner.answers import Columns
from raison.models.runner.batching import AskedTargets, Chunk
from raison.models.runner.output_format import OutputFormat
from raison.models.runner.pass_cache import current_cache
from raison.models.runner.recorded_pass import record_pass
from raison.models.runner.runner import Prepared, Runner

__all__ = ["Task", "axis_of", "columns_at_rows", "columns_of_targets", "outcomes_of_texts"]


class Task(OutputFormat):
    """The meaning of one model's texts and outcomes. It runs nothing itself: it asks the runner that it is given."""

    name: ClassVar[str]

    def __init__(self, loaded: LoadedModel):
        self.loaded = loaded

    def with_model(self, loaded: LoadedModel) -> Task:
        """The same task of another model."""
        other = copy.copy(self)
        other.loaded = loaded
        return other

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes, for models that have some."""
        names: dict[int, str] = self.loaded.setting("id2label")
        return tuple(str(names[number]) for number in sorted(names))

    @property
    def problem(self) -> str:
        """What a classifier decides: single_label | multi_label | regression."""
        return ""

    @property
    def probable(self) -> bool:
        """Outcomes have probabilities."""
        return True

    @abstractmethod
    def encode(self, example: Example, *, truncate: bool) -> Encoding:
        """The axis of one example."""

    @abstractmethod
    def predict(self, runner: Runner, encodings: Sequence[Encoding]) -> list[Prediction]:
        """What the model says about each whole text."""

    @abstractmethod
    def resolve_targets(
        self, runner: Runner, encoding: Encoding, target_spec: TargetSpec
    ) -> list[tuple[Encoding, Target]]:
        """The targets that are asked for, each with the encoding it belongs to."""

    def predicted_target(
        self, runner: Runner, encoding: Encoding, target_spec: TargetSpec
    ) -> Target:
        """What the model predicts, asked only if it has not been."""
        prediction = target_spec.prediction or self.predict(runner, [encoding])[0]
        return prediction.target


# -- where outcomes stand ------------------------------------------------------------------------------------


def columns_of_targets(logits: torch.Tensor, asked: AskedTargets) -> Columns:
    """The outcomes [b m v] of each of the targets, with its own and its contrast's number."""
    ids = torch.from_numpy(asked.ids).to(logits.device)
    if asked.contrasts is None:
        return Columns(logits, ids)
    return Columns(logits, ids, torch.from_numpy(asked.contrasts).to(logits.device))


def columns_at_rows(logits: torch.Tensor, asked: AskedTargets, *, picked: bool) -> Columns:
    """Outcomes of targets that are read at rows of the text: tokens of a vocabulary, or tags, of logits [b t v].

    `picked`: the logits are of these rows only.
    """
    if not picked:
        rows = torch.from_numpy(asked.rows).to(logits.device)
        logits = logits.gather(1, rows[..., None].expand(-1, -1, logits.shape[-1]))
    return columns_of_targets(logits, asked)


# -- from an example to the axis of tokens that everything else talks about ----------------------------------


def axis_of(
    loaded: LoadedModel,
    example: Example,
    names: tuple[str, ...],
    *,
    truncate: bool,
    from_start: bool = False,
) -> Encoding:
    """Tokenize an example, cut it to the model's limit if asked, and lay it out on one axis.

    Special tokens and what surrounds template slots are fixed.
    """
    pieces = loaded.codec(example.text, example.pair)
    surplus = loaded.surplus(len(pieces.ids), truncate=truncate)
    if surplus:
        pieces = pieces.without_surplus(surplus, from_start=from_start)
    texts = (example.text,) if example.pair is None else (example.text, example.pair)
    fixed = pieces.special.copy()
    if example.slots:
        fixed |= tokens_outside_slots(pieces, example)
    return Encoding(
        ids=pieces.ids,
        tokens=names_of_tokens(pieces, texts, loaded.codec),
        segments=names,
        texts=texts,
        segment=pieces.segment,
        start=pieces.start,
        end=pieces.end,
        positions=np.arange(len(pieces.ids)),
        fixed=fixed,
        types=pieces.types,
        slots=example.slots,
        truncated=surplus,
        id=example.id,
    )


def names_of_tokens(pieces: Pieces, texts: tuple[str, ...], codec: Codec) -> tuple[str, ...]:
    """What a person reads: the characters of each token, or the name of one that has none."""
    names = []
    for token, start, end, segment in zip(
        pieces.ids, pieces.start, pieces.end, pieces.segment, strict=True
    ):
        inside = start >= 0 and end > start
        names.append(texts[segment][start:end] if inside else codec.name(int(token)))
    return tuple(names)


def tokens_outside_slots(pieces: Pieces, example: Example) -> np.ndarray:
    """[t] tokens of a prompt template: they touch no slot (a token that does goes with the slot)."""
    result = np.ones(len(pieces.ids), bool)
    for token, (start, end) in enumerate(zip(pieces.start, pieces.end, strict=True)):
        if start < 0 or pieces.segment[token] != 0:
            continue
        core = stripped_span(example.text, int(start), int(end))
        if core:
            touches = [slot.start < core[1] and core[0] < slot.end for slot in example.slots]
            result[token] = not any(touches)
    return result


# -- what a model says about whole texts ---------------------------------------------------------------------


def outcomes_of_texts(
    runner: Runner, encodings: Sequence[Encoding], targets: Sequence[Target | None] = ()
) -> list[torch.Tensor]:
    """[m v] logits of the outcomes of each whole text, without those that padding would have."""
    results = [torch.empty(0)] * len(encodings)
    axis = runner.task.token_axis
    for chunk, columns in columns_of_whole_texts(runner, encodings, targets):
        logits = columns.logits.detach()
        last = len(chunk.lengths) - 1
        for row, part in enumerate(chunk.parts):
            own = logits[row]
            if axis is not None:
                own = own.narrow(axis, chunk.offset(part, last), part.lengths[last])
            results[part.owner] = own.cpu().double()
    return results


@torch.inference_mode(False)
@torch.enable_grad()
def columns_of_whole_texts(
    runner: Runner, encodings: Sequence[Encoding], targets: Sequence[Target | None]
) -> Iterator[tuple[Chunk, Columns]]:
    """Where the outcomes stand after forward passes, which are cached where a trace will want the same ones."""
    cache = current_cache.get()
    if cache is None:
        for prepared in runner.prepare_whole_texts(encodings, targets):
            yield prepared.chunk, columns_without_graph(runner, prepared)
        return

    cost = runner.cost_of_traced_row(cache.want)
    for prepared in runner.prepare_whole_texts(encodings, targets, row_bytes=cost):
        chunk = prepared.chunk
        size = chunk.rows * cost(chunk.lengths, 1)
        if not cache.has_room(chunk, size, runner.budget):
            yield chunk, columns_without_graph(runner, prepared)
            continue
        runner.read_only_target_rows(prepared)
        recorded = record_pass(runner, prepared, cache.want)
        cache.add(recorded, size)
        yield chunk, runner.columns(recorded.output, chunk)


@torch.inference_mode()
def columns_without_graph(runner: Runner, prepared: Prepared) -> Columns:
    """Where the outcomes stand after a forward pass that nobody looks into."""
    runner.read_only_target_rows(prepared)
    return runner.columns(runner.forward(prepared), prepared.chunk)
