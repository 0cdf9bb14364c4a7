"""Paired tests of two methods as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raison.show.scoreboard import GAP, number
from raison.show.wording import clean

__all__ = ["chance", "render_verdicts"]


def chance(p: float) -> str:
    """A p-value as it is printed."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def render_verdicts(verdicts: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Differences, p-values corrected for their number, effect sizes, and who is better."""
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    names = (verdicts[0]["one"], verdicts[0]["other"]) if verdicts else ("", "")
    console.print(Text(clean(f"{names[0]} − {names[1]}"), style="bold"))
    for head in ("number", "difference", "interval", "p", "corrected", "d", "higher on", "better"):
        table.add_column(head, justify="left" if head in ("number", "better") else "right", no_wrap=True)
    for each in verdicts:
        interval = "–" if each["low"] is None else f"{number(each['low'])} … {number(each['high'])}"
        effect = "–" if each["effect"] is None else f"{each['effect']:+.2f}"
        share = "–" if each["superiority"] is None else f"{each['superiority']:.0%}"
        leads = Text(clean(each["better"] or "not decided"), style="" if each["better"] else "dim")
        chances = chance(each["p"]), chance(each["corrected"])
        table.add_row(each["key"], number(each["difference"]), interval, *chances, effect, share, leads)
    console.print(table)
    console.print(
        Text(
            "p: paired permutation test, two-sided; corrected by Holm's rule; d: Cohen's, of paired differences.",
            style="dim",
        )
    )
