"""Paired tests of two methods as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raison.show.scoreboard import number, warning_of_few
from raison.show.terminal.scoreboard import GAP
from raison.show.wording import clean

__all__ = ["chance", "render_verdicts"]

UNDECIDED = "not decided"


def chance(p: float) -> str:
    """A p-value as it is printed."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


HEADS = ("number", "difference", "interval", "p", "corrected", "d", "higher on", "better")


def render_verdicts(verdicts: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Differences, p-values corrected for their number, effect sizes, and who is better."""
    names = (verdicts[0]["one"], verdicts[0]["other"]) if verdicts else ("", "")
    console.print(Text(clean(f"{names[0]} − {names[1]}"), style="bold"))
    rows = [told(each) for each in verdicts]
    for columns in fitting(rows, console.width):
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
        for k in (0, *columns):
            side: Any = "left" if HEADS[k] in ("number", "better") else "right"
            table.add_column(HEADS[k], justify=side, no_wrap=HEADS[k] != "better", overflow="fold")
        for row in rows:
            table.add_row(*(Text(row[k], style="dim" if row[k] == UNDECIDED else "") for k in (0, *columns)))
        console.print(table)
    console.print(
        Text(
            "p: paired permutation test, two-sided; corrected by Holm's rule; d: Cohen's, of paired differences.",
            style="dim",
        )
    )
    for note in warning_of_few(*(each["count"] for each in verdicts)):
        console.print(Text(note, style="dim"))


def told(each: Mapping[str, Any]) -> list[str]:
    """The cells of one row, in the order of HEADS."""
    return [
        each["key"],
        number(each["difference"]),
        "–" if each["low"] is None else f"{number(each['low'])} … {number(each['high'])}",
        chance(each["p"]),
        chance(each["corrected"]),
        "–" if each["effect"] is None else f"{each['effect']:+.2f}".replace("-", "−"),
        "–" if each["superiority"] is None else f"{each['superiority']:.0%}",
        clean(each["better"] or UNDECIDED),
    ]


def fitting(rows: Sequence[Sequence[str]], width: int) -> Iterator[list[int]]:
    """The columns in groups that fit beside the first, so that no number is cut."""
    wide = [max(len(HEADS[k]), *(len(row[k]) for row in rows), 0) for k in range(len(HEADS))]
    group: list[int] = []
    used = wide[0]
    for k in range(1, len(HEADS)):
        if group and used + GAP + wide[k] > width:
            yield group
            group, used = [], wide[0]
        group.append(k)
        used += GAP + wide[k]
    yield group
