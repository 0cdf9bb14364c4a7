"""The asked share of tokens, reached: where to draw the line between keeping and dropping.

A generator can sample the asked share in training and still keep next to nothing when it has to decide, since every
token may be a little less likely than not. So behind each pruning block the line is moved to the quantile of the
margins that keeps the asked share, of tokens that earlier blocks kept, on training texts. The order of tokens is
the model's; the line is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from raison.rationalizers.config import levels
from raison.rationalizers.module import Rationalizer
from raison.rationalizers.selection import likeliest, texts_of

__all__ = ["calibrate"]


@torch.inference_mode()
def calibrate(model: Rationalizer, batches: Callable[[], Iterable[dict[str, Any]]]) -> None:
    """Set the offsets of the head, block by block: those of later blocks depend on the earlier ones."""
    model.eval()
    frame, offsets = model.frame, model.head.offsets
    with torch.no_grad():
        offsets.zero_()
    pair = len(frame.sparsity) > 1
    for number in range(frame.pruning):
        margins, sides, before = [], [], []
        for batch in batches():
            inputs, tokens = model.read(**batch)
            found = model.generate(inputs, tokens, number + 1)  # nobody asks for an answer
            kept = found.masks[number - 1].bool() if number else tokens.real
            margin = found.margins[number]
            if frame.least_one:  # a text's likeliest token stays whatever the line is, so it counts first
                for part in texts_of(kept, tokens.side if pair else None):
                    margin = margin.masked_fill(likeliest(margin, part), torch.inf)
            margins.append(margin[tokens.real])
            before.append(kept[tokens.real])
            sides.append(tokens.side[tokens.real] if pair else torch.zeros_like(tokens.side[tokens.real]))
        margin, kept, side = torch.cat(margins), torch.cat(before), torch.cat(sides)
        for text, share in enumerate(frame.sparsity):
            inside = side == text
            wanted = round(levels(share, frame.pruning)[number] * int(inside.sum()))
            with torch.no_grad():
                offsets[number, text] = -line_at(margin[inside & kept], wanted)


def line_at(margins: torch.Tensor, wanted: int) -> float:
    """A number that about `wanted` of the margins lie above; equal margins fall on the side that comes nearer."""
    able = margins.sort(descending=True).values
    finite = able[torch.isfinite(able)]
    if not len(finite):
        return 0.0
    above = wanted - (len(able) - len(finite))  # of those that have a choice
    if above <= 0:  # as low as can be, so that few texts have nothing above it
        return float(finite[0]) + 1e-6 * max(1.0, abs(float(finite[0])))
    if above >= len(finite):
        return float(finite[-1]) - 1.0
    last, following = float(finite[above - 1]), float(finite[above])
    if last > following:
        return (last + following) / 2
    more, fewer = int((finite >= last).sum()), int((finite > last).sum())
    step = 1e-6 * max(1.0, abs(last))
    return last - step if more - above <= above - fewer else last + step
