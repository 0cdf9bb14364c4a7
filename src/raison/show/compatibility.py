"""How a model behaves on parts of its context: in the terminal, and as a picture of three panels."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raison.show.figure.canvas import FAINT, QUIET
from raison.show.figure.savefig import save_figure
from raison.show.scale import HUES
from raison.show.wording import clean

__all__ = ["draw_compatibility", "render_compatibility"]

WIDE, HIGH = 3.3, 2.7  # inches of a panel


def render_compatibility(found: Any, console: Console) -> None:
    """The verdict first, then the numbers that carry it."""
    console.print(Text(clean(found.verdict), style="bold" if found.trusted else "bold yellow"))
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    for name in ("kept tokens", "perplexity", "95 % interval", "places"):
        table.add_column(name, justify="right")
    for row in found.subsets:
        size = "all" if row["size"] is None else str(row["size"])
        between = f"{row['low']:,.1f} … {row['high']:,.1f}"
        table.add_row(size, f"{row['perplexity']:,.1f}", between, str(row["count"]))
    table.add_row("none", f"{found.guess:,.1f}", "frequencies alone", "")
    console.print()
    console.print(table)
    if found.repetition:
        first, last = found.repetition[0], found.repetition[-1]
        most = max(row["beside_another"] or 0.0 for row in found.repetition)
        console.print()
        console.print(
            f"a word after itself: {first['alone']:.3f} at the start, {last['alone']:.3f} alone at position "
            f"{last['position']}, {most:.3f} at most beside another word"
        )
    asked = [row for row in found.truth if row["kind"] == "likeliest"]
    if asked:
        apart = sum(abs(row["true"] - row["masked"]) for row in asked) / len(asked)
        covered = sum(row["covered"] for row in asked) / len(asked)
        console.print(
            f"a token left out against marginalised out: {apart:.3f} apart on average "
            f"({len(asked)} contexts; {covered:.0%} of the mass summed over)"
        )


def draw_compatibility(found: Any, path: str | os.PathLike[str]) -> None:
    """Perplexity by kept tokens, repetition by position, and masked against true probabilities."""

    def drawn() -> Any:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        panels = [on_subsets, *([repeating] if found.repetition else []), *([against_truth] if found.truth else [])]
        figure = Figure(figsize=(WIDE * len(panels), HIGH), layout="constrained")
        FigureCanvasAgg(figure)
        for number, panel in enumerate(panels, 1):
            axes = figure.add_subplot(1, len(panels), number)
            panel(axes, found)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
        return figure

    save_figure(drawn, path)


def on_subsets(axes: Any, found: Any) -> None:
    rows = found.subsets
    places = range(len(rows))
    axes.fill_between(
        places, [r["low"] for r in rows], [r["high"] for r in rows], color=HUES[0], alpha=0.15, linewidth=0
    )
    axes.plot(places, [r["perplexity"] for r in rows], "o-", color=HUES[0], markersize=3, linewidth=1.4)
    axes.axhline(found.guess, color=QUIET, linestyle="--", linewidth=0.8)
    axes.annotate(
        "frequencies alone", (len(rows) - 1, found.guess), ha="right", va="bottom", color=QUIET, fontsize="small"
    )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")  # powers would be typeset as formulas
    axes.set_xticks(list(places), ["all" if r["size"] is None else str(r["size"]) for r in rows])
    axes.set_xlabel("kept tokens")
    axes.set_title("perplexity", loc="left", fontsize="medium")


def repeating(axes: Any, found: Any) -> None:
    where = [row["position"] for row in found.repetition]
    axes.plot(where, [row["alone"] for row in found.repetition], color=HUES[0], label="alone", linewidth=1.4)
    beside = [row["beside_another"] for row in found.repetition[1:]]
    axes.plot(where[1:], beside, color=HUES[1], label="beside another word", linewidth=1.4)
    axes.set_ylim(0, 1.4 * max(0.01, *(row["alone"] for row in found.repetition), *beside))
    axes.set_xlabel("position of the word")
    axes.set_title("f(the same word again)", loc="left", fontsize="medium")
    axes.legend(frameon=False, fontsize="small")


def against_truth(axes: Any, found: Any) -> None:
    for kind, colour in (("likeliest", HUES[0]), ("actual", HUES[1])):
        rows = [row for row in found.truth if row["kind"] == kind]
        axes.plot([r["true"] for r in rows], [r["masked"] for r in rows], "o", color=colour, markersize=3.5, label=kind)
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8, zorder=0)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("marginalised out")
    axes.set_ylabel("left out")
    axes.set_title("probability of a token", loc="left", fontsize="medium")
    axes.legend(frameon=False, fontsize="small", title="the fourth token", title_fontsize="small")
