"""Methods side by side: units down, methods across, every score on its own method's scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.table import Table
from rich.text import Text

from raison.show import scale
from raison.show.look import Look
from raison.show.wording import clean, number
from raison.types import Explanation

__all__ = ["comparison"]

ROWS = 12  # units shown


def comparison(explanations: Sequence[Explanation], look: Look) -> Table:
    """Scores of explanations that share their units; the units that matter most to all methods, in reading order."""
    names = explanations[0].units.names
    weights = np.stack([scale.weights(e.scores) for e in explanations])  # [methods u]
    strength = np.abs(weights).mean(0)
    shown = sorted(np.argsort(-strength, kind="stable")[:ROWS].tolist())
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("unit" if len(shown) == len(names) else f"strongest {len(shown)} of {len(names)}", max_width=24)
    methods = [clean(explanation.method) for explanation in explanations]
    short = [method.partition("(")[0] for method in methods]
    for title in short if len(set(short)) == len(short) else methods:
        table.add_column(title, justify="right", overflow="fold")
    for unit in shown:
        row = [Text(" ".join(clean(names[unit]).split()), overflow="ellipsis", no_wrap=True)]
        for explanation, weight in zip(explanations, weights[:, unit], strict=True):
            chosen = explanation.selected is not None and bool(explanation.selected[unit])
            figure = number(float(explanation.scores[unit]), float(np.abs(explanation.scores).max()))
            row.append(Text.assemble("*" if chosen else "", (f" {figure}", look.tint(float(weight)))))
        table.add_row(*row)
    return table
