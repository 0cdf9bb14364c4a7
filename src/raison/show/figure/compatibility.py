"""How a model behaves on parts of its context, as a picture of three panels."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from raison.show.colour_scale import HUES
from raison.show.compatibility_report import CompatibilityReport, subset_size_in_words
from raison.show.figure.canvas import FAINT, QUIET, empty_figure, hide_panel_frame
from raison.show.figure.savefig import save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_compatibility"]

WIDE, HIGH = 3.3, 2.7  # inches of a panel
HIGHEST_MARGIN = 1.4  # of the axis of repetition, over the highest point
LEAST_HEIGHT = 0.01  # of the highest point


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
    figure = empty_figure(WIDE * len(panels), HIGH, layout="constrained")
    for number, draw_panel in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), number)
        draw_panel(axes, report)
        hide_panel_frame(axes)
    return figure


def draw_subsets_panel(axes: Axes, report: CompatibilityReport) -> None:
    """Perplexity by the number of kept tokens."""
    subsets = report.subsets
    places = list(range(len(subsets)))
    lows = [subset.low for subset in subsets]
    highs = [subset.high for subset in subsets]
    perplexities = [subset.perplexity for subset in subsets]

    axes.fill_between(places, lows, highs, color=HUES[0], alpha=0.15, linewidth=0)
    axes.plot(places, perplexities, "o-", color=HUES[0], markersize=3, linewidth=1.4)
    axes.axhline(report.guess, color=QUIET, linestyle="--", linewidth=0.8)
    end = (places[-1], report.guess)
    axes.annotate("frequencies alone", end, ha="right", va="bottom", color=QUIET, fontsize="small")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(
        lambda value, _: f"{value:,.0f}"
    )  # powers would be typeset as formulas
    axes.set_xticks(places, [subset_size_in_words(subset) for subset in subsets])
    axes.set_xlabel("kept tokens")
    axes.set_title("perplexity", loc="left", fontsize="medium")


def draw_repetition_panel(axes: Axes, report: CompatibilityReport) -> None:
    """How likely the model finds a word after itself, alone and beside another, by its position."""
    positions = [repeated.position for repeated in report.repetition]
    alone = [repeated.alone for repeated in report.repetition]
    beside = [
        repeated.beside_another or 0.0 for repeated in report.repetition[1:]
    ]  # at the first there is no other

    axes.plot(positions, alone, color=HUES[0], label="alone", linewidth=1.4)
    axes.plot(positions[1:], beside, color=HUES[1], label="beside another word", linewidth=1.4)
    axes.set_ylim(0, HIGHEST_MARGIN * max(LEAST_HEIGHT, *alone, *beside))
    axes.set_xlabel("position of the word")
    axes.set_title("f(the same word again)", loc="left", fontsize="medium")
    axes.legend(frameon=False, fontsize="small")


def draw_truth_panel(axes: Axes, report: CompatibilityReport) -> None:
    """The probability of a token with another left out, against the one with it marginalised out."""
    for kind, colour in (("likeliest", HUES[0]), ("actual", HUES[1])):
        tokens = [token for token in report.truth if token.kind == kind]
        true = [token.true for token in tokens]
        masked = [token.masked for token in tokens]
        axes.plot(true, masked, "o", color=colour, markersize=3.5, label=kind)
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8, zorder=0)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("marginalised out")
    axes.set_ylabel("left out")
    axes.set_title("probability of a token", loc="left", fontsize="medium")
    axes.legend(frameon=False, fontsize="small", title="the fourth token", title_fontsize="small")
