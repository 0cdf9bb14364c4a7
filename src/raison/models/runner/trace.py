"""One forward pass, watched, and as many backward passes as there are targets.

Texts of equal length run together; targets that share a text share its forward pass. What was recorded is
cut apart again, so that a trace is about one example and one target, on the axis of its encoding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from raison.core.errors import Unsupported
from raison.core.records import Encoding, Target
from raison.models.attention.call import Call, running
from raison.models.attention.hook import Softmaxes
from raison.models.attention.products import Products
from raison.models.attention.residual_writes import Writes
from raison.models.protocol import Map, Trace
from raison.models.runner import meter, pass_cache
from raison.models.runner.answers import Columns, read
from raison.models.runner.batching import Chunk, Piece, chunks, pieces

if TYPE_CHECKING:
    from raison.models.runner.adapter import Adapter

__all__ = ["WANTS", "record"]

WANTS = frozenset({"gradients", "attention", "attention_gradients", "hidden", "hidden_gradients", "readout", "writes"})


def record(
    model: Adapter,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    want: frozenset[str],
    embeddings: Sequence[torch.Tensor] | None = None,
    heads: np.ndarray | None = None,
) -> Iterator[tuple[int, Trace]]:
    """Yield (index, trace) for each pair of encoding and target; `want` is a subset of WANTS."""
    if unknown := want - WANTS:
        raise ValueError(f"a trace has no {', '.join(sorted(unknown))}")
    groups, plan = rows_to_run(encodings, targets, embeddings is not None)
    keeper = pass_cache.current()
    if keeper is not None and embeddings is None and heads is None:
        passes, plan = keeper.recalled(plan, want)
        while passes:  # not held here any longer than it is needed
            yield from traced(model, passes.pop(0), groups, targets, want)
    for chunk, inputs, call in batches(model, plan, groups, want, embeddings, heads):
        if all(len(groups[part.owner]) == 1 for part in chunk.parts):  # else every target has rows of its own
            model.narrow(chunk, call)
        yield from traced(model, watched(model, chunk, inputs, call, want), groups, targets, want)


def planned(
    model: Adapter,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    want: frozenset[str],
    embeddings: Sequence[torch.Tensor] | None = None,
    heads: np.ndarray | None = None,
) -> Iterator[tuple[Chunk, dict[str, Any], Call, list[list[int]]]]:
    """Forward passes that cover all texts: a chunk, its arguments, its call, and the targets of each of its rows."""
    groups, plan = rows_to_run(encodings, targets, embeddings is not None)
    for chunk, inputs, call in batches(model, plan, groups, want, embeddings, heads):
        yield chunk, inputs, call, [groups[part.owner] for part in chunk.parts]


def rows_to_run(
    encodings: Sequence[Encoding], targets: Sequence[Target], moved: bool
) -> tuple[list[list[int]], list[Piece]]:
    """Which pairs share a row of a forward pass, and one piece for each such group."""
    members: dict[int, list[int]] = {}
    for number, encoding in enumerate(encodings):
        members.setdefault(number if moved else id(encoding), []).append(number)  # moved: even equal texts differ
    groups = list(members.values())
    plan: list[Piece] = []
    for number, group in enumerate(groups):
        encoding = encodings[group[0]]
        # the target that sees most decides how much of the text runs
        widest = max((targets[i] for i in group), key=lambda t: max(t.positions, default=0))
        plan += pieces(number, encoding, widest, np.ones((1, len(encoding)), bool), False)
    return groups, plan


def batches(
    model: Adapter,
    plan: list[Piece],
    groups: list[list[int]],
    want: frozenset[str],
    embeddings: Sequence[torch.Tensor] | None = None,
    heads: np.ndarray | None = None,
) -> Iterator[tuple[Chunk, dict[str, Any], Call]]:
    """Forward passes that cover all rows of a plan: a chunk, its arguments, and its call."""
    view = model.view  # once for all: looking whether the weights have moved costs as much as a small batch
    for chunk in chunks(plan, model.layout, row_bytes(model, want)):
        inputs, call = model.tensors(chunk, "mask")
        call.view = view
        call.heads = None if heads is None else torch.from_numpy(np.asarray(heads, dtype=np.float64))
        if embeddings is not None:
            call.replace = stacked(chunk, [embeddings[groups[part.owner][0]] for part in chunk.parts])
        yield chunk, inputs, call


@dataclass
class Pass:
    """A forward pass with its graph, and what was seen in it."""

    chunk: Chunk
    call: Call
    output: Any
    hidden: list[list[torch.Tensor]]  # per stream, per layer [b t d]
    writes: Writes | None


def watched(model: Adapter, chunk: Chunk, inputs: dict[str, Any], call: Call, want: frozenset[str]) -> Pass:
    """Run a chunk and see what is wanted of it."""
    attends = want & {"attention", "attention_gradients", "writes"}
    call.record = frozenset({"embeddings", model.map_source} if attends else {"embeddings"})
    deep = bool(want & {"hidden", "hidden_gradients", "readout"})
    if deep:
        inputs = {**inputs, "output_hidden_states": True}
    writes = Writes() if "writes" in want else None
    graph = bool(want & {"gradients", "attention_gradients", "hidden_gradients", "readout"})
    output = forward(model, inputs, call, writes, graph)
    if len(call.leaves) != len(chunk.lengths):
        raise RuntimeError(f"{len(call.leaves)} word tables for {len(chunk.lengths)} streams of tokens")
    for leaf, length in zip(call.leaves, chunk.lengths, strict=True):
        if leaf.shape[:2] != (len(chunk.parts), length):  # some embed [t b], and rows would be taken for texts
            raise RuntimeError(f"word embeddings of the shape {tuple(leaf.shape)}, not [texts tokens width]")
    if writes is not None and not (writes.writes and all(write.complete for write in writes.writes.values())):
        raise Unsupported(
            f"What each token's attention adds to the states of {model.name} can't be followed: choose a method that "
            "needs attention weights or gradients only, such as gae."
        )
    return Pass(chunk, call, output, model.hidden_of(output) if deep else [], writes)


@dataclass
class Recorded:
    """What a batch brought: tensors in its own layout, with gradients of the round's targets."""

    value: torch.Tensor  # [b m]
    leaves: list[torch.Tensor]  # per stream [b t d] word embeddings
    maps: list[Any]
    hidden: list[list[torch.Tensor]]  # per stream, per layer [b t d]
    slopes: dict[str, list[torch.Tensor]]  # gradients of leaves, maps, hidden
    readout: torch.Tensor | None  # [b t]
    writes: Writes | None = None


def traced(
    model: Adapter, run: Pass, groups: list[list[int]], targets: Sequence[Target], want: frozenset[str]
) -> Iterator[tuple[int, Trace]]:
    """The traces of a pass: round k asks for every row's k-th target."""
    call, hidden = run.call, run.hidden
    sources: dict[str, list[torch.Tensor]] = {}
    if "gradients" in want:
        sources["leaves"] = call.leaves
    if "attention_gradients" in want:
        sources["maps"] = [seen.weights for seen in call.maps]
    if "hidden_gradients" in want:
        sources["hidden"] = [state for stream in hidden for state in stream]
    members = [groups[part.owner] for part in run.chunk.parts]
    rounds = max(map(len, members))
    for number, (chosen, aimed) in enumerate(aims(run.chunk, members, targets)):
        columns = model.columns(run.output, aimed)
        value = read(columns, model.outputs_of(aimed), tensors=True)["value"]
        active = torch.tensor([i is not None for i in chosen], device=value.device)
        more = number < rounds - 1 or "readout" in want
        slopes = gradients(value[active].sum(), sources, keep=more)
        rows = readout(model, columns, aimed, hidden, active) if "readout" in want else None
        found = Recorded(value, call.leaves, call.maps, hidden, slopes, rows, run.writes)
        for row, index in enumerate(chosen):
            if index is not None:
                yield index, sliced(aimed, row, found, want, model.generates)


def aims(chunk: Chunk, members: list[list[int]], targets: Sequence[Target]) -> Iterator[tuple[list[int | None], Chunk]]:
    """Round k: the number of every row's k-th target (None where it has fewer), and the chunk that aims at them."""
    for number in range(max(map(len, members))):
        chosen = [row[number] if number < len(row) else None for row in members]
        # a row without a target in this round keeps its first one, whose answer is not used
        wanted = [targets[row[0] if i is None else i] for i, row in zip(chosen, members, strict=True)]
        yield chosen, retargeted(chunk, wanted)


def forward(
    model: Adapter, inputs: dict[str, Any], call: Call, watch: Products | None = None, graph: bool = True
) -> Any:
    """The forward pass, with its graph unless nobody goes back, maps and leaves recorded in the call."""
    softmaxes = Softmaxes(call) if "softmaxes" in call.record else nullcontext()
    with torch.set_grad_enabled(graph), running(call), softmaxes, watch or nullcontext():
        return call.view(**inputs)


def retargeted(chunk: Chunk, targets: list[Target]) -> Chunk:
    """The same rows with other targets."""
    parts = [
        Piece(p.owner, p.which, p.encoding, target, p.index, p.visible)
        for p, target in zip(chunk.parts, targets, strict=True)
    ]
    return Chunk(parts, chunk.lengths, chunk.side, chunk.picked)


def stacked(chunk: Chunk, embeddings: list[torch.Tensor]) -> list[torch.Tensor | None]:
    """Per stream [b L d]: given word embeddings [t d] in the layout of a chunk."""
    result: list[torch.Tensor | None] = []
    for stream, length in enumerate(chunk.lengths):
        rows = []
        for part, given in zip(chunk.parts, embeddings, strict=True):
            own = given[part.index[stream][0]]
            start = chunk.offset(part, stream)
            rows.append(torch.nn.functional.pad(own, (0, 0, start, length - start - len(own))))
        result.append(torch.stack(rows))
    return result


def gradients(total: torch.Tensor, sources: dict[str, list[torch.Tensor]], keep: bool) -> dict[str, list[torch.Tensor]]:
    """By autograd.grad, never .backward: the user's .grad is not ours. What was not used gets zeros."""
    flat = [tensor for tensors in sources.values() for tensor in tensors]
    if not flat:
        return {}
    asked = [tensor for tensor in flat if tensor.requires_grad]  # rules may have made constants of some
    if asked:
        meter.count(backwards=len(asked[0]))
    slopes = iter(torch.autograd.grad(total, asked, retain_graph=keep, allow_unused=True))
    found = [next(slopes) if tensor.requires_grad else None for tensor in flat]
    filled = iter([torch.zeros_like(t) if g is None else g for t, g in zip(flat, found, strict=True)])
    return {name: [next(filled) for _ in tensors] for name, tensors in sources.items()}


def readout(
    model: Adapter, columns: Columns, chunk: Chunk, hidden: list[list[torch.Tensor]], active: torch.Tensor
) -> torch.Tensor:
    """[b L] shares of the rows from which the answer is read.

    Token targets name their rows. A label does not: its rows are those of the last hidden state on which its
    logit depends, which tells [CLS], mean and last-token pooling apart without a table of models.
    """
    rows = model.rows_of(chunk)
    last = hidden[-1][-1]
    if rows is not None:
        shares = torch.full(rows.shape, 1.0 / rows.shape[1], dtype=last.dtype, device=last.device)
        return torch.zeros(last.shape[:2], dtype=last.dtype, device=last.device).scatter_add(
            1, rows.to(last.device), shares
        )
    logit = columns.logits.gather(-1, columns.ids[..., None])[active].sum()
    ((slope,),) = gradients(logit, {"last": [last]}, keep=True).values()
    size = slope.norm(dim=-1)
    return size / size.sum(-1, keepdim=True).clamp_min(torch.finfo(size.dtype).tiny)


def sliced(chunk: Chunk, row: int, found: Recorded, want: frozenset[str], written: bool) -> Trace:
    """The part of a batch that belongs to one row, on the axis of its encoding; a target that is `written` token by
    token has maps of what stands before it, however far the row goes on for other targets."""
    part = chunk.parts[row]
    size = len(part.encoding)
    spans = []
    for stream in range(len(chunk.lengths)):
        start = chunk.offset(part, stream)
        spans.append(slice(start, start + part.lengths[stream]))

    def on_axis(tensors: list[torch.Tensor]) -> torch.Tensor:
        result = torch.zeros(size, tensors[0].shape[-1], dtype=tensors[0].dtype, device=tensors[0].device)
        for stream, tensor in enumerate(tensors):
            place = torch.from_numpy(part.index[stream][0]).to(result.device)
            result[place] = tensor[row, spans[stream]].detach().to(result.device)
        return result

    trace = Trace(part.encoding, part.target, float(found.value[row].detach().sum()), on_axis(found.leaves))  # type: ignore[arg-type]
    if "gradients" in want:
        trace.gradient = on_axis(found.slopes["leaves"])
    if want & {"hidden", "hidden_gradients"}:
        # source and prefix have blocks of their own; where their numbers differ the shorter stack stays at its end
        depth = max(map(len, found.hidden))
        trace.hidden = [on_axis([stream[min(k, len(stream) - 1)] for stream in found.hidden]) for k in range(depth)]
        slopes = iter(found.slopes.get("hidden", []))
        by_stream = [[next(slopes) for _ in stream] for stream in found.hidden] if "hidden" in found.slopes else []
        trace.hidden_gradient = (
            [on_axis([stream[min(k, len(stream) - 1)] for stream in by_stream]) for k in range(depth)]
            if by_stream
            else []
        )
    if want & {"attention", "attention_gradients", "writes"}:
        trace.maps = maps(part, row, spans, found, max(part.target.positions) if written else size)  # type: ignore[union-attr]
    if found.writes is not None:
        every = [found.writes.writes[number] for number in sorted(found.writes.writes)]
        for write, seen in zip(every, trace.maps, strict=True):
            start, before = (
                spans[int(seen.kind in ("decoder", "cross"))].start,
                spans[int(seen.kind == "decoder")].start,
            )
            rows, cols = slice(start, start + len(seen.rows)), slice(before, before + len(seen.cols))
            trace.writes.append(write.cut(row, rows, cols))
    if found.readout is not None:
        trace.readout = sliced_readout(chunk, row, found.readout)
    return trace


def sliced_readout(chunk: Chunk, row: int, found: torch.Tensor) -> np.ndarray:
    """[t] of [b L]: the readout of one row on the axis of its encoding (it is the last stream that answers)."""
    part, last = chunk.parts[row], len(chunk.lengths) - 1
    start = chunk.offset(part, last)
    shares = np.zeros(len(part.encoding))
    shares[part.index[last][0]] = found[row, start : start + part.lengths[last]].detach().cpu().double().numpy()
    return shares


def maps(part: Piece, row: int, spans: list[slice], found: Recorded, end: int) -> list[Map]:
    """The attention maps of one row among the tokens before `end`: cross-attention goes from the prefix (stream 1) to
    the source (stream 0)."""
    result: list[Map] = []
    counts: dict[str, int] = {}
    for number, seen in enumerate(found.maps):
        rows, cols = int(seen.kind in ("decoder", "cross")), int(seen.kind == "decoder")
        places = [part.index[stream][0] for stream in (rows, cols)]
        before = [int((place < end).sum()) for place in places]  # places rise
        ranges = [slice(spans[s].start, spans[s].start + n) for s, n in zip((rows, cols), before, strict=True)]
        cut = (row, slice(None), ranges[0], ranges[1])
        layer = counts[seen.kind] = counts.get(seen.kind, -1) + 1
        slope = found.slopes["maps"][number][cut] if "maps" in found.slopes else None
        result.append(
            Map(
                seen.kind,
                layer,
                places[0][: before[0]],
                places[1][: before[1]],
                seen.weights[cut].detach(),
                slope,
                block=seen.block,
            )
        )
    return result


def row_bytes(model: Adapter, want: frozenset[str]) -> Any:
    """Memory of a traced row: every layer is kept, twice where gradients are wanted."""
    layers = getattr(model.hf.config, "num_hidden_layers", 12) or 12
    factor = layers * (2 if "attention_gradients" in want else 1)
    return lambda lengths, columns: factor * model.row_bytes(lengths, columns)
