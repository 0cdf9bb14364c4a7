"""The path of a search as a table with bars, on a sheet."""

from __future__ import annotations

from collections.abc import Sequence

from raison.show.certificate import count
from raison.show.figure.canvas import FAINT, INK, KEPT, MARGIN, QUIET
from raison.show.figure.typeset import Bar, Label, Sheet
from raison.show.search_path import Step

__all__ = ["add_path"]

LINE, SIZE = 0.22, 9.5  # inches of a row, points of its letters
CHANGE, NUMBER, FIGURE, BAR, TICK = MARGIN, 3.35, 4.35, 4.5, 7.05  # where columns stand, in inches
LONGEST_BAR = 2.45  # inches


def add_path(sheet: Sheet, steps: Sequence[Step | int], measure: str) -> None:
    """A row for each step; a number stands for steps left out. `measure` is what the figures are."""
    put(sheet, "change", CHANGE, colour=QUIET)
    put(sheet, "size", NUMBER, align="right", colour=QUIET)
    put(sheet, measure, FIGURE, align="right", colour=QUIET)
    for step in steps:
        sheet.skip(LINE)
        if isinstance(step, int):
            put(sheet, f"⋮ {count(step, 'step')} more", CHANGE, colour=QUIET)
        else:
            add_step(sheet, step)
    sheet.skip(LINE)


def add_step(sheet: Sheet, step: Step) -> None:
    """One step: what changed, how many units there are now, and what the model says."""
    is_whole_context = step.number is None
    colour = QUIET if is_whole_context else INK
    put(sheet, cut_to_fit(sheet, step.change(), NUMBER - CHANGE - 0.5), CHANGE, colour=colour)
    put(sheet, str(step.size), NUMBER, align="right", colour=colour)
    put(sheet, step.figure, FIGURE, align="right", colour=colour)
    if step.weight is not None:
        length = max(0.01, LONGEST_BAR * step.weight)
        bar_colour = FAINT if is_whole_context else KEPT
        sheet.marks.append(Bar(BAR, sheet.height + LINE * 0.22, length, LINE * 0.56, bar_colour))
    if step.enough:
        put(sheet, "✓", TICK, colour=colour)


def put(sheet: Sheet, text: str, across: float, *, align: str = "left", colour: str = INK) -> None:
    """Write into the present row."""
    sheet.marks.append(Label(text, across, sheet.height + LINE * 0.7, SIZE, colour, align=align))


def cut_to_fit(sheet: Sheet, text: str, room: float) -> str:
    """A text cut to a width."""
    while sheet.ruler(text, SIZE) > room and len(text) > 2:
        text = text[:-2].rstrip() + "…"
    return text
