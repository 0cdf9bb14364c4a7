"""The matrix of rationales as a picture (P0, Figure 1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from raison.show.figure.canvas import ALARM, FAINT, HATCH, INK, KEPT, MARGIN, QUIET, SMALL, TEXT, Ruler, canvas
from raison.show.matrix import ALARMS, CHOSEN, GIVEN, SPARED, Matrix, facts, signs
from raison.show.wording import clean, short

__all__ = ["grid"]

CELL, LARGEST = 0.23, 40.0  # inches of a cell, and of the whole matrix
LINKED = "linked by people"
MEANINGS = ((CHOSEN, "in the rationale"), (GIVEN, "given"), (SPARED, "not needed"))


def grid(matrix: Matrix) -> Any:
    """Filled cells are rationales, hatched ones are given, dots are not needed; frames are links that people made."""
    ruler = Ruler()
    cell = min(CELL, LARGEST / max(1, len(matrix.columns), len(matrix.rows)))
    size = min(SMALL, max(4.0, cell * 72 * 0.6))
    every = max(1, round(size / 72 * 1.1 / cell))  # labels that would overlap are left out
    alarms = [signs(row) for row in matrix.rows]
    names = [short(row.target.text, 24) for row in matrix.rows]
    labels = [name + "".join(f" {ALARMS[alarm][0]}" for alarm in on) for name, on in zip(names, alarms, strict=True)]
    heads = [short(column.name, 18) for column in matrix.columns]
    edges = np.cumsum([0] + [a.segment != b.segment for a, b in zip(matrix.columns, matrix.columns[1:], strict=False)])
    across = [cell * (place + 0.6 * edge) for place, edge in enumerate(edges)]
    left = MARGIN + max(ruler(label, size) for label in labels) + 0.1
    head = max(ruler(name, size) for name in heads)
    title = f"{len(matrix.rows)} rationales of one text"
    said = " · ".join([clean(matrix.rows[0].model), *facts(matrix)])
    legend = [(state, meaning) for state, meaning in MEANINGS if (matrix.cells == state).any()]
    occurring = [alarm for alarm in ALARMS if any(alarm in on for on in alarms)]
    key = [f"{ALARMS[alarm][0]}  {ALARMS[alarm][2]}" for alarm in occurring]
    room = max(
        ruler(title, TEXT, "bold"),
        ruler(said, 8.0),
        3.6 + 1.4 * (matrix.gold is not None),
        *(ruler(line, 8.0) for line in key or [""]),
    )
    width = max(left + across[-1] + cell, MARGIN + room) + MARGIN
    top = MARGIN + 0.55 + head
    bottom = top + cell * len(matrix.rows) + 0.2
    figure, axes = canvas(width, bottom + 0.2 * (1 + len(key)) + MARGIN - 0.1)
    axes.text(MARGIN, MARGIN + 0.12, title, fontsize=TEXT, fontweight="bold", color=INK)
    axes.text(MARGIN, MARGIN + 0.32, said, fontsize=8, color=QUIET)
    for c, name in enumerate(heads):
        if c % every == 0:
            axes.text(
                left + across[c] + cell / 2,
                top - 0.05,
                name,
                fontsize=size,
                rotation=90,
                ha="center",
                va="bottom",
                color=INK,
            )
    for r, label in enumerate(labels):
        if r % every == 0:
            colour = ALARM if "insufficient" in alarms[r] else INK
            middle = top + cell * (r + 0.5)
            axes.text(left - 0.07, middle, label, fontsize=size, ha="right", va="center_baseline", color=colour)
        for c in np.flatnonzero(matrix.cells[r] >= GIVEN).tolist():
            mark(axes, int(matrix.cells[r, c]), left + across[c], top + cell * r, cell)
        for c in [] if matrix.gold is None else np.flatnonzero(matrix.gold[r]).tolist():
            frame(axes, left + across[c], top + cell * r, cell)
    down, right = np.nonzero(matrix.cells == SPARED)
    dots(axes, [left + across[c] + cell / 2 for c in right], [top + cell * (r + 0.5) for r in down], cell)
    at = MARGIN
    for state, meaning in legend:
        if state == SPARED:
            dots(axes, [at + 0.08], [bottom + 0.08], CELL)
        else:
            mark(axes, state, at, bottom, 0.16)
        axes.text(at + 0.22, bottom + 0.13, meaning, fontsize=8, color=QUIET)
        at += 0.22 + ruler(meaning, 8.0) + 0.25
    if matrix.gold is not None:
        frame(axes, at, bottom, 0.16)
        axes.text(at + 0.22, bottom + 0.13, LINKED, fontsize=8, color=QUIET)
    for place, line in enumerate(key):
        axes.text(MARGIN, bottom + 0.33 + 0.2 * place, line, fontsize=8, color=QUIET)
    return figure


def mark(axes: Any, state: int, left: float, top: float, cell: float) -> None:
    """One cell; not only colours differ."""
    from matplotlib.patches import Rectangle

    gap = cell * 0.06
    look: dict[str, Any] = {"facecolor": KEPT, "edgecolor": "none"}
    if state == GIVEN:
        look = {"facecolor": "white", "edgecolor": HATCH, "hatch": "//////"}
    axes.add_patch(Rectangle((left + gap, top + gap), cell - 2 * gap, cell - 2 * gap, lw=0.6, **look))


def frame(axes: Any, left: float, top: float, cell: float) -> None:
    """A cell that people chose, whatever is in it."""
    from matplotlib.patches import Rectangle

    place = (left + cell * 0.06, top + cell * 0.06)
    axes.add_patch(Rectangle(place, cell * 0.88, cell * 0.88, fill=False, edgecolor=INK, lw=1.5, zorder=3))


def dots(axes: Any, across: list[float], down: list[float], cell: float) -> None:
    """Cells that are not needed, all at once: there may be many thousands."""
    axes.plot(across, down, "o", markersize=cell * 0.14 * 72, markerfacecolor=FAINT, markeredgewidth=0)
