"""One forward pass of several texts, watched for traces, and the gradients that go back through it.

Texts of equal length run together; targets that share a text share its forward pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from raison.core.errors import Unsupported
from raison.core.records import Encoding, Target
from raison.models.attention.call import Call
from raison.models.attention.residual_writes import Writes
from raison.models.runner import meter
from raison.models.runner.batching import Chunk, Piece, pieces_of_whole_texts
from raison.models.runner.output_format import Output
from raison.models.runner.runner import Prepared, Runner

__all__ = [
    "RecordedPass", "Round", "TracePlan", "by_stream", "gradients", "in_layout", "plan_traces",
    "prepare_traces", "record_pass", "rounds",
]  # fmt: skip

READS_ATTENTION = frozenset({"attention", "attention_gradients", "writes"})
READS_HIDDEN = frozenset({"hidden", "hidden_gradients", "readout"})
NEEDS_GRAPH = frozenset({"gradients", "attention_gradients", "hidden_gradients", "readout"})


# -- which texts run, for which pairs of text and target -----------------------------------------------------


@dataclass(frozen=True)
class TracePlan:
    """The texts that run, and which pairs of a text and a target each of them serves."""

    pairs: list[list[int]]  # by owner of a piece: numbers of the pairs
    pieces: list[Piece]

    def pairs_of(self, chunk: Chunk) -> list[list[int]]:
        """The numbers of the pairs that each row of a chunk serves."""
        return [self.pairs[part.owner] for part in chunk.parts]


def plan_traces(
    encodings: Sequence[Encoding], targets: Sequence[Target], *, moved: bool = False
) -> TracePlan:
    """One row for each text; one for each pair where embeddings are `moved`, so that even equal texts differ."""
    members: dict[int, list[int]] = {}
    for number, encoding in enumerate(encodings):
        text = number if moved else id(encoding)
        members.setdefault(text, []).append(number)
    pairs = list(members.values())

    widest: list[Target | None] = []
    for numbers in pairs:
        # the target that sees most decides how much of the text runs
        widest.append(
            max(
                (targets[number] for number in numbers),
                key=lambda target: max(target.positions, default=0),
            )
        )
    texts = [encodings[numbers[0]] for numbers in pairs]
    return TracePlan(pairs, pieces_of_whole_texts(texts, widest))


def prepare_traces(
    runner: Runner,
    plan: TracePlan,
    want: frozenset[str],
    *,
    embeddings: Sequence[torch.Tensor] | None = None,
    heads: np.ndarray | None = None,
) -> Iterator[Prepared]:
    """Forward passes that cover all texts of a plan."""
    for prepared in runner.prepare(
        plan.pieces, row_bytes=runner.cost_of_traced_row(want), heads=heads
    ):
        if embeddings is not None:
            chunk = prepared.chunk
            given = [embeddings[numbers[0]] for numbers in plan.pairs_of(chunk)]
            prepared.call.replace = list(in_layout(chunk, given))
        yield prepared


def in_layout(chunk: Chunk, embeddings: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Per stream [b L d]: given word embeddings [t d] in the layout of a chunk."""
    streams = []
    for stream, length in enumerate(chunk.lengths):
        rows = []
        for part, given in zip(chunk.parts, embeddings, strict=True):
            own = given[part.index[stream][0]]
            span = chunk.span(part, stream)
            rows.append(torch.nn.functional.pad(own, (0, 0, span.start, length - span.stop)))
        streams.append(torch.stack(rows))
    return streams


# -- the pass ------------------------------------------------------------------------------------------------


@dataclass
class RecordedPass:
    """A forward pass with its graph, and what was seen in it."""

    chunk: Chunk
    call: Call
    output: Output
    hidden: list[list[torch.Tensor]] = field(default_factory=list)  # per stream, per layer [b t d]
    writes: Writes | None = None


def record_pass(runner: Runner, prepared: Prepared, want: frozenset[str]) -> RecordedPass:
    """Run a chunk and see what is wanted of it."""
    chunk, call = prepared.chunk, prepared.call
    record = {"embeddings"}
    if want & READS_ATTENTION:
        record.add(runner.map_source)
    call.record = frozenset(record)
    deep = bool(want & READS_HIDDEN)
    writes = Writes() if "writes" in want else None

    output = runner.forward(prepared, graph=bool(want & NEEDS_GRAPH), hidden=deep, watch=writes)
    check_embeddings(chunk, call)
    if writes is not None and not writes.complete:
        raise Unsupported(
            f"What each token's attention adds to the states of {runner.loaded.name} can't be followed: choose a "
            "method that needs attention weights or gradients only, such as gae."
        )
    hidden = runner.task.hidden_states(output) if deep else []
    return RecordedPass(chunk, call, output, hidden, writes)


def check_embeddings(chunk: Chunk, call: Call) -> None:
    """Raise where the recorded word embeddings are not those of the texts; the probe then offers no traces."""
    if len(call.leaves) != len(chunk.lengths):
        raise RuntimeError(
            f"{len(call.leaves)} word tables for {len(chunk.lengths)} streams of tokens"
        )
    for leaf, length in zip(call.leaves, chunk.lengths, strict=True):
        if leaf.shape[:2] != (
            len(chunk.parts),
            length,
        ):  # some embed [t b], and rows would be taken for texts
            raise RuntimeError(
                f"word embeddings of the shape {tuple(leaf.shape)}, not [texts tokens width]"
            )


# -- going back ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Round:
    """One target for every row of a pass."""

    pairs: list[
        int | None
    ]  # [b] the pair that a row serves in this round; None where it has no more
    chunk: Chunk  # the same rows with the targets of the round

    @property
    def rows(self) -> list[tuple[int, int]]:
        """Each row that serves a pair, and the number of the pair."""
        return [(row, pair) for row, pair in enumerate(self.pairs) if pair is not None]

    def active(self, device: torch.device) -> torch.Tensor:
        """[b] True for rows that serve a pair."""
        return torch.tensor([pair is not None for pair in self.pairs], device=device)


def rounds(chunk: Chunk, pairs: list[list[int]], targets: Sequence[Target]) -> Iterator[Round]:
    """Round k asks for every row's k-th target."""
    for number in range(max(map(len, pairs))):
        served = [row[number] if number < len(row) else None for row in pairs]
        parts = []
        for part, pair, row in zip(chunk.parts, served, pairs, strict=True):
            # a row without a target in this round keeps its first one, whose answer is not used
            target = targets[row[0] if pair is None else pair]
            parts.append(replace(part, target=target))
        yield Round(served, replace(chunk, parts=parts))


def gradients(
    total: torch.Tensor, sources: dict[str, list[torch.Tensor]], *, keep_graph: bool
) -> dict[str, list[torch.Tensor]]:
    """By autograd.grad, never .backward: the user's .grad is not ours. What was not used gets zeros."""
    tensors = [tensor for group in sources.values() for tensor in group]
    if not tensors:
        return {}
    asked = [
        tensor for tensor in tensors if tensor.requires_grad
    ]  # rules may have made constants of some
    if asked:
        meter.count(backwards=len(asked[0]))
    slopes = torch.autograd.grad(total, asked, retain_graph=keep_graph, allow_unused=True)

    slope_of = dict(zip(map(id, asked), slopes, strict=True))
    found: dict[str, list[torch.Tensor]] = {}
    for name, group in sources.items():
        found[name] = []
        for tensor in group:
            slope = slope_of.get(id(tensor))
            found[name].append(torch.zeros_like(tensor) if slope is None else slope)
    return found


def by_stream(
    tensors: list[torch.Tensor], hidden: list[list[torch.Tensor]]
) -> list[list[torch.Tensor]]:
    """A flat list of what belongs to hidden states, in their own order: per stream, per layer."""
    if not tensors:
        return []
    streams = []
    start = 0
    for stream in hidden:
        streams.append(tensors[start : start + len(stream)])
        start += len(stream)
    return streams
