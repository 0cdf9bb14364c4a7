"""The compatibility report as a picture: panels of subset perplexity, repetition, and truth."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from raison.show.colour_scale import METHOD_HUES
from raison.show.compatibility_report import CompatibilityReport, subset_size_in_words
from raison.show.figure.canvas import FAINT, QUIET, empty_figure, hide_panel_frame_in_picture
from raison.show.figure.savefig import save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_compatibility"]

WIDE, HIGH = 3.3, 2.7  # inches of a panel
HIGHEST_MARGIN = 1.4  # of the axis of repetition, over the highest point
LEAST_HEIGHT = 0.01  # of the highest point
LINE_WIDTH, MARKER_SIZE = 1.4, 3  # points


def draw_compatibility(report: CompatibilityReport, path: str | os.PathLike[str]) -> None:
    """Write perplexity by kept tokens, repetition by position, and masked against true probabilities."""
    save_figure(lambda: compatibility_figure(report), path)


def compatibility_figure(report: CompatibilityReport) -> Figure:
    """The panels for which there are numbers, side by side."""
    panels = [draw_subsets_panel]
    if report.repetition:
        panels.append(draw_repetition_panel)
    if report.truth:
        panels.append(draw_truth_panel)
    count = len(panels)
    width = WIDE * count
    figure = empty_figure(width, HIGH, layout="constrained")
    for number, draw_panel in enumerate(panels, start=1):
        axes = figure.add_subplot(1, count, number)
        draw_panel(axes, report)
        hide_panel_frame_in_picture(axes)
    return figure


def draw_subsets_panel(axes: Axes, report: CompatibilityReport) -> None:
    """Perplexity by the number of kept tokens."""
    sizes = []
    perplexities = []
    lows = []
    highs = []
    for subset in report.subsets:
        size = subset_size_in_words(subset)
        sizes.append(size)
        perplexities.append(subset.perplexity)
        lows.append(subset.low)
        highs.append(subset.high)
    places = list(range(len(sizes)))

    colour = METHOD_HUES[0]
    axes.fill_between(places, lows, highs, color=colour, alpha=0.15, linewidth=0)
    axes.plot(
        places, perplexities, "o-", color=colour, markersize=MARKER_SIZE, linewidth=LINE_WIDTH
    )
    axes.axhline(report.guess, color=QUIET, linestyle="--", linewidth=0.8)
    end = (places[-1], report.guess)
    axes.annotate("frequencies alone", end, ha="right", va="bottom", color=QUIET, fontsize="small")
    axes.set_yscale("log")
    # powers would be typeset as formulas
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xticks(places, sizes)
    axes.set_xlabel("kept tokens")
    axes.set_title("perplexity", loc="left", fontsize="medium")


def draw_repetition_panel(axes: Axes, report: CompatibilityReport) -> None:
    """How likely the model finds a word after itself, alone and beside another, by its position."""
    positions = []
    alone = []
    beside = []
    for repeated in report.repetition:
        positions.append(repeated.position)
        alone.append(repeated.alone)
        beside.append(repeated.beside_another or 0.0)
    del beside[0]  # at the first position there is no other word

    axes.plot(positions, alone, color=METHOD_HUES[0], label="alone", linewidth=LINE_WIDTH)
    axes.plot(
        positions[1:],
        beside,
        color=METHOD_HUES[1],
        label="beside another word",
        linewidth=LINE_WIDTH,
    )
    highest = max(LEAST_HEIGHT, *alone, *beside)
    axes.set_ylim(0, HIGHEST_MARGIN * highest)
    axes.set_xlabel("position of the word")
    axes.set_title("f(the same word again)", loc="left", fontsize="medium")
    axes.legend(frameon=False, fontsize="small")


def draw_truth_panel(axes: Axes, report: CompatibilityReport) -> None:
    """The probability of a token with another left out, against the one with it marginalised out."""
    kinds = ("likeliest", "actual")
    for kind, colour in zip(kinds, METHOD_HUES[:2], strict=True):
        true = []
        masked = []
        for token in report.truth:
            if token.kind == kind:
                true.append(token.true)
                masked.append(token.masked)
        axes.plot(true, masked, "o", color=colour, markersize=3.5, label=kind)

    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8, zorder=0)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("marginalised out")
    axes.set_ylabel("left out")
    axes.set_title("probability of a token", loc="left", fontsize="medium")
    axes.legend(frameon=False, fontsize="small", title="the fourth token", title_fontsize="small")
