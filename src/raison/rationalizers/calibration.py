"""Calibration of the selector: where to draw the line between the margins of kept and of dropped tokens.

A generator can sample the asked share in training and still keep next to nothing when it has to decide, since every
token may be a little less likely than not. So behind each pruning block the line is moved to the quantile of the
margins that keeps the asked share, of tokens that earlier blocks kept, on training texts. The order of tokens is
the model's; the line is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from raison.rationalizers.config import pruning_levels
from raison.rationalizers.module import Rationalizer
from raison.rationalizers.selection import likeliest_token, tokens_by_text

__all__ = ["calibrate_selector"]

Batches = Callable[[], Iterable[dict[str, torch.Tensor]]]


@dataclass(frozen=True)
class Margins:
    """The real tokens of all texts, one behind the other."""

    margin: torch.Tensor  # [n]
    kept: torch.Tensor  # [n] by the pruning blocks before
    side: torch.Tensor  # [n] the text of a pair


@torch.inference_mode()
def calibrate_selector(model: Rationalizer, batches: Batches) -> None:
    """Set the offsets of the selector, block by block: those of later blocks depend on the earlier ones."""
    model.eval()
    settings, offsets = model.settings, model.selector.offsets
    with torch.no_grad():
        offsets.zero_()
    for number in range(settings.pruning):
        tokens = margins_behind(model, batches, number)
        for text, share in enumerate(settings.sparsity):
            of_text = tokens.side == text
            level = pruning_levels(share, settings.pruning)[number]
            wanted = round(level * int(of_text.sum()))
            line = line_between_margins(tokens.margin[of_text & tokens.kept], wanted)
            with torch.no_grad():
                offsets[number, text] = -line


def margins_behind(model: Rationalizer, batches: Batches, number: int) -> Margins:
    """The margins behind a pruning block."""
    margins, kept_before, sides = [], [], []
    for batch in batches():
        inputs, tokens = model.read(**batch)
        generated = model.generate(inputs, tokens, number + 1)  # nobody asks for an answer
        kept = tokens.real
        if number:
            kept = generated.masks[number - 1].bool()
        margin = generated.margins[number]
        side = torch.zeros_like(tokens.side)
        texts = [kept]
        if model.settings.for_pairs:
            side = tokens.side
            texts = tokens_by_text(kept, side)
        if model.settings.never_empty:
            # a text's likeliest token stays whatever the line is, so it counts first
            for text in texts:
                margin = margin.masked_fill(likeliest_token(margin, text), torch.inf)
        margins.append(margin[tokens.real])
        kept_before.append(kept[tokens.real])
        sides.append(side[tokens.real])
    return Margins(torch.cat(margins), torch.cat(kept_before), torch.cat(sides))


def line_between_margins(margins: torch.Tensor, wanted: int) -> float:
    """A number that about `wanted` of the margins lie above; equal margins fall on the side that comes nearer."""
    descending = margins.sort(descending=True).values
    finite = descending[torch.isfinite(descending)]
    if not len(finite):
        return 0.0
    above = wanted - (len(descending) - len(finite))  # of those that have a choice
    if above <= 0:  # as low as can be, so that few texts have nothing above it
        largest = float(finite[0])
        return largest + 1e-6 * max(1.0, abs(largest))
    if above >= len(finite):
        return float(finite[-1]) - 1.0
    last = float(finite[above - 1])
    following = float(finite[above])
    if last > following:
        return (last + following) / 2
    with_equals = int((finite >= last).sum())
    without_equals = int((finite > last).sum())
    step = 1e-6 * max(1.0, abs(last))
    if with_equals - above <= above - without_equals:
        return last - step
    return last + step
