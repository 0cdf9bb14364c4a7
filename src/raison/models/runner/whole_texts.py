"""What a model says about whole texts, for its predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from raison.core.records import Encoding, Target
from raison.models.runner.answers import Columns
from raison.models.runner.batching import Chunk, Piece, pieces_of_whole_texts
from raison.models.runner.pass_cache import current_cache
from raison.models.runner.recorded_pass import record_pass
from raison.models.runner.runner import Runner

__all__ = ["outcomes_of"]


def outcomes_of(
    runner: Runner, encodings: Sequence[Encoding], targets: Sequence[Target | None] = ()
) -> list[torch.Tensor]:
    """[m v] logits of the outcomes of each whole text, without those that padding would have."""
    results = [torch.empty(0)] * len(encodings)
    axis = runner.task.token_axis
    for chunk, columns in columns_of_whole_texts(runner, pieces_of_whole_texts(encodings, targets)):
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
    runner: Runner, plan: Sequence[Piece]
) -> Iterator[tuple[Chunk, Columns]]:
    """Where the outcomes stand after forward passes, which are cached where a trace will want the same ones."""
    cache = current_cache()
    cost = runner.row_cost if cache is None else runner.cost_of_traced_row(cache.want)
    for prepared in runner.prepare(plan, row_bytes=cost):
        chunk = prepared.chunk
        runner.read_only_target_rows(prepared)
        size = chunk.rows * cost(chunk.lengths, 1)
        if cache is not None and cache.has_room(chunk, size, runner.budget):
            recorded = record_pass(runner, prepared, cache.want)
            cache.add(recorded, size)
            yield chunk, runner.columns(recorded.output, chunk)
        else:
            with torch.inference_mode():
                columns = runner.columns(runner.forward(prepared), chunk)
            yield chunk, columns
