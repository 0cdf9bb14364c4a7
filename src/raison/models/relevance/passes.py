"""One forward pass under rules, and the relevance that its backward passes bring.

Relevance rules are not linear (additions are rescaled), so each token of a target starts a pass of its own, with
relevance 1 at its logit, and the mean of the passes is told; a contrast is the difference of two passes. Gradient
rules are linear: one pass from the logits, times the tensor that the gradient belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from raison.core.records import Encoding, Target
from raison.models.attention.call import Call, running
from raison.models.protocol import Map, Trace
from raison.models.relevance.mode import Relevance, Rules
from raison.models.runner.answers import Columns, read
from raison.models.runner.batching import Chunk, Piece
from raison.models.runner.trace import aims, gradients, planned, stacked

if TYPE_CHECKING:
    from raison.models.runner.adapter import Adapter

__all__ = ["RELATES", "relate", "rescale"]

RELATES = frozenset({"relevance", "attention", "cuts"})


def relate(
    model: Adapter,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    want: frozenset[str],
    rules: Rules,
    embeddings: Sequence[torch.Tensor] | None = None,
    heads: np.ndarray | None = None,
) -> Iterator[tuple[int, Trace]]:
    """Yield (index, trace) with relevance of tokens, and of attention weights and between blocks where wanted."""
    if unknown := want - RELATES:
        raise ValueError(f"a trace under rules has no {', '.join(sorted(unknown))}")
    attends = frozenset({"attention_gradients"})  # what a row may cost: everything is kept
    for chunk, inputs, call, members in planned(model, encodings, targets, attends, embeddings, heads):
        call.record = frozenset({"embeddings", "attention", "crossing"})
        if max(map(len, members)) == 1:
            model.narrow(chunk, call)
        inputs = {**inputs, "output_hidden_states": "cuts" in want}
        mode = Relevance(rules, chunk.rows)
        with torch.enable_grad(), running(call), mode:
            output = call.view(**inputs)
        hidden = model.hidden_of(output) if inputs["output_hidden_states"] else []
        sources: dict[str, list[torch.Tensor]] = {"leaves": call.leaves}
        if "attention" in want:
            sources["maps"] = [mode.maps[number] for number in sorted(mode.maps)]
        if "cuts" in want:
            sources["cuts"] = [state for stream in hidden for state in stream]
            sources["crossing"] = [tensor for pair in call.crossing for tensor in pair]
        sources = {name: tensors for name, tensors in sources.items() if tensors}
        for chosen, aimed in aims(chunk, members, targets):
            columns = model.columns(output, aimed)
            active = torch.tensor([i is not None for i in chosen], device=columns.logits.device)
            mode.constants.zero_()
            found = {
                name: [tell(r, t, rules) for r, t in zip(part, sources[name], strict=True)]
                for name, part in relevance(columns, active, sources, rules).items()
            }
            logits = read(columns, ["logit"] * len(columns.ids), tensors=True)["value"].detach()
            value = read(columns, model.outputs_of(aimed), tensors=True)["value"].detach()
            for row, index in enumerate(chosen):
                if index is not None:
                    trace = told(aimed, row, call, found, [len(stream) for stream in hidden])
                    trace.value = float(value[row].sum())
                    trace.strange = tuple(sorted(mode.strange))
                    trace.logit, trace.constants = float(logits[row].sum()), float(mode.constants[row])
                    yield index, trace


def rescale(
    model: Adapter,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    rules: Rules,
    embeddings: Sequence[torch.Tensor],
) -> Iterator[tuple[int, Trace]]:
    """Yield (index, trace) with the contribution of each token to the change from a reference to the input.

    `embeddings` are pairs [2 t d] of word embeddings: the input's and the reference's. The value is read under the
    rules too, so that contributions add up to its change whatever it is; that change is told as the only cut.
    """
    inner = [pair[0] for pair in embeddings]
    for chunk, inputs, call, members in planned(model, encodings, targets, frozenset({"attention_gradients"}), inner):
        call.record = frozenset({"embeddings"})
        model.narrow(chunk, call)
        twice = lambda v: torch.cat([v, v]) if isinstance(v, torch.Tensor) else v  # noqa: E731
        inputs = {name: twice(value) for name, value in inputs.items()}
        numbers = [each[0] for each in members]
        others = stacked(chunk, [embeddings[i][1] for i in numbers])
        call.replace = [torch.cat(pair) for pair in zip(call.replace or [], others, strict=True)]  # type: ignore[arg-type]
        call.positions = None if call.positions is None else [twice(each) for each in call.positions]
        call.rows = twice(call.rows)
        both = Chunk(chunk.parts * 2, chunk.lengths, chunk.side, chunk.picked)
        mode = Relevance(rules)
        with torch.enable_grad(), running(call), mode:
            output = call.view(**inputs)
            value = read(model.columns(output, both), model.outputs_of(both), tensors=True)["value"].sum(-1)  # [2b]
        count = len(numbers)
        found = gradients(value[:count].sum(), {"leaves": call.leaves}, keep=False)["leaves"]
        changes = [leaf.detach()[:count] - leaf.detach()[count:] for leaf in call.leaves]
        shares = {"leaves": [g[:count] * change for g, change in zip(found, changes, strict=True)]}
        for row, index in enumerate(numbers):
            trace = told(chunk, row, call, shares, [])
            trace.value = float(value[row].detach())
            trace.cuts = [float((value[row] - value[count + row]).detach())]
            trace.strange = tuple(sorted(mode.strange))
            yield index, trace


def relevance(
    columns: Columns, active: torch.Tensor, sources: dict[str, list[torch.Tensor]], rules: Rules
) -> dict[str, list[torch.Tensor]]:
    """What the backward passes of the active rows bring to the sources."""
    mine = columns.logits.gather(-1, columns.ids[..., None])[..., 0][active]  # [b m]
    rival = None
    if columns.contrast is not None:
        rival = columns.logits.gather(-1, columns.contrast[..., None])[..., 0][active]
    if rules.gradients:
        return gradients((mine if rival is None else mine - rival).sum(), sources, keep=True)
    width = mine.shape[1]
    starts = [(1.0 / width, mine[:, k]) for k in range(width)]
    if rival is not None:
        starts += [(-1.0 / width, rival[:, k]) for k in range(width)]
    total: dict[str, list[torch.Tensor]] = {}
    for weight, start in starts:
        for name, found in gradients(start.sum(), sources, keep=True).items():
            old = total.get(name) or [torch.zeros_like(each) for each in found]
            total[name] = [a + weight * b for a, b in zip(old, found, strict=True)]
    return total


def tell(found: torch.Tensor, tensor: torch.Tensor, rules: Rules) -> torch.Tensor:
    """Relevance of a tensor from what its backward pass brought."""
    return found * tensor.detach() if rules.gradients else found


def span(chunk: Chunk, part: Piece, stream: int) -> slice:
    """Columns of a chunk in which the tokens of a part stand."""
    start = chunk.offset(part, stream)
    return slice(start, start + part.lengths[stream])


def told(chunk: Chunk, row: int, call: Call, found: dict[str, list[torch.Tensor]], depths: list[int]) -> Trace:
    """The trace of one row, on the axis of its encoding."""
    part = chunk.parts[row]
    spans = [span(chunk, part, stream) for stream in range(len(chunk.lengths))]
    trace = Trace(part.encoding, part.target, 0.0)  # type: ignore[arg-type]
    trace.relevance = torch.zeros(len(part.encoding), dtype=found["leaves"][0].dtype)
    for stream, tensor in enumerate(found["leaves"]):
        places = torch.from_numpy(part.index[stream][0])
        trace.relevance[places] = tensor[row, spans[stream]].sum(-1).cpu()
    kinds = [seen.kind for seen in call.maps]  # a family that bypasses the tap has none, and one kind only
    layers: dict[str, int] = {}
    for number, tensor in enumerate(found.get("maps", [])):
        kind = kinds[number] if kinds else "self"
        rows, cols = int(kind in ("decoder", "cross")), int(kind == "decoder")
        layers[kind] = layers.get(kind, -1) + 1
        cut = tensor[row, :, spans[rows], spans[cols]]
        ends = part.index[rows][0], part.index[cols][0]
        trace.maps.append(Map(kind, layers[kind], ends[0], ends[1], torch.empty(0), relevance=cut))
    if "cuts" in found:
        trace.cuts = cuts(row, found, depths)
    return trace


def cuts(row: int, found: dict[str, list[torch.Tensor]], depths: list[int]) -> list[float]:
    """Total relevance at each border between blocks, from the last to the first.

    In an encoder-decoder a border of the decoder is crossed also by what went over to the encoder behind it, and a
    border of the encoder leaves out what stayed with the decoder's own words.
    """
    sums = [float(tensor[row].sum()) for tensor in found["cuts"]]
    *source, own = [sums[sum(depths[:k]) : sum(depths[: k + 1])] for k in range(len(depths))]
    if not source:
        return own[::-1]
    crossed = [float(tensor[row].sum()) for tensor in found["crossing"]]
    over = [a + b for a, b in zip(crossed[::2], crossed[1::2], strict=True)]  # per layer
    behind = [sum(over[k:]) for k in range(len(over) + 1)]
    return [a + b for a, b in zip(own, behind, strict=True)][::-1] + [own[0] + each for each in source[0][::-1]]
