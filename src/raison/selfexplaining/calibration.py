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

from raison.selfexplaining.frame import levels
from raison.selfexplaining.rationalizer import Rationalizer

__all__ = ["calibrate"]


@torch.inference_mode()
def calibrate(model: Rationalizer, batches: Callable[[], Iterable[dict[str, Any]]]) -> None:
    """Set the offsets of the head, block by block: those of later blocks depend on the earlier ones."""
    model.eval()
    frame, offsets = model.frame, model.head.offsets
    with torch.no_grad():
        offsets.zero_()
    for number in range(frame.pruning):
        margins, sides, before, every = [], [], [], []
        for batch in batches():
            told = model(**batch)
            assert told.masks is not None and told.margins is not None
            real = told.real
            kept = told.masks[number - 1].bool() if number else real
            margins.append(told.margins[number][real])
            before.append(kept[real])
            sides.append(told.side[real] if len(frame.sparsity) > 1 else torch.zeros_like(told.side[real]))
            every.append(real.sum())
        margin, kept, side = torch.cat(margins), torch.cat(before), torch.cat(sides)
        for text, share in enumerate(frame.sparsity):
            inside = side == text
            wanted = round(levels(share, frame.pruning)[number] * int(inside.sum()))
            able = margin[inside & kept].sort(descending=True).values
            if not len(able):
                continue
            place = min(max(wanted, 1), len(able))
            last = able[place - 1]
            following = able[place] if place < len(able) else last - 1.0
            with torch.no_grad():
                offsets[number, text] = -(last + following) / 2
