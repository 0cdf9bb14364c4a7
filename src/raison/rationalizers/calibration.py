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
    settings = model.settings
    offsets = model.selector.offsets
    with torch.no_grad():
        offsets.zero_()
    for number in range(settings.pruning):
        tokens = margins_behind(model, batches, number)
        for text, share in enumerate(settings.sparsity):
            of_text = tokens.side == text
            words = int(of_text.sum())
            levels = pruning_levels(share, settings.pruning)
            wanted = round(levels[number] * words)
            may_be_kept = of_text & tokens.kept
            margins = tokens.margin[may_be_kept]
            line = line_between_margins(margins, wanted)
            with torch.no_grad():
                offsets[number, text] = -line


def margins_behind(model: Rationalizer, batches: Batches, number: int) -> Margins:
    """The margins behind a pruning block."""
    settings = model.settings
    margins, kept_before, sides = [], [], []
    for batch in batches():
        inputs, tokens = model.read(**batch)
        generated = model.generate(inputs, tokens, number + 1)  # nobody asks for an answer
        real = tokens.real
        kept = real
        if number:
            mask_before = generated.masks[number - 1]
            kept = mask_before.bool()
        margin = generated.margins[number]
        side = torch.zeros_like(tokens.side)
        texts = [kept]
        if settings.for_pairs:
            side = tokens.side
            texts = tokens_by_text(kept, side)
        if settings.never_empty:
            # a text's likeliest token stays whatever the line is, so it counts first
            for text in texts:
                likeliest = likeliest_token(margin, text)
                margin = margin.masked_fill(likeliest, torch.inf)
        margins.append(margin[real])
        kept_before.append(kept[real])
        sides.append(side[real])
    return Margins(
        margin=torch.cat(margins),
        kept=torch.cat(kept_before),
        side=torch.cat(sides),
    )


def line_between_margins(margins: torch.Tensor, wanted: int) -> float:
    """A number that about `wanted` of the margins lie above; equal margins fall on the side that comes nearer."""
    descending = margins.sort(descending=True).values
    is_finite = torch.isfinite(descending)
    finite = descending[is_finite]
    count = len(finite)
    if not count:
        return 0.0
    always_above = len(descending) - count
    above = wanted - always_above  # of those that have a choice
    if above <= 0:  # as low as can be, so that few texts have nothing above it
        largest = float(finite[0])
        return largest + small_step(largest)
    if above >= count:
        smallest = float(finite[-1])
        return smallest - 1.0
    last = float(finite[above - 1])
    following = float(finite[above])
    if last > following:
        return (last + following) / 2

    with_equals = int((finite >= last).sum())
    without_equals = int((finite > last).sum())
    too_many = with_equals - above
    too_few = above - without_equals
    if too_many <= too_few:
        return last - small_step(last)
    return last + small_step(last)


def small_step(number: float) -> float:
    """A millionth of a number, or of 1 where that is more."""
    size = max(1.0, abs(number))
    return 1e-6 * size
