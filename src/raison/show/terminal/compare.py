"""Methods side by side in the terminal: units down and methods across, how far they agree, and where they differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from rich.cells import cell_len
from rich.console import RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from raison.core.records import Explanation
from raison.show import scale
from raison.show.agreement import Agreement, agreements, alike, top
from raison.show.consensus import footnotes, statement, titles
from raison.show.difference import Difference
from raison.show.spans import flow, selection
from raison.show.terminal.style import Look
from raison.show.wording import clean, number, short

__all__ = ["accord", "comparison", "contrast"]

ROWS, GAPS = 12, 8  # units shown, and differences
NAME, TITLE = 24, 10  # cells of a unit's name, and of a column's title if it can be folded
GAP, BAR, LEAST = 2, 12, 4  # cells between columns, of the longest bar, and of one that is worth its room
PAIRS = 10  # pairs of methods that make a list; more make a square
CELL = 7  # cells of a column of the square
MARKED = 5  # units that carry a sign on each side where there are no colours
FIGURES = ("shared", "tau", "rho", "r")
HEADS = {"shared": "strongest", "tau": "tau-b", "rho": "rho", "r": "r"}


def table(*titles: str) -> Table:
    """A bare table; the first column holds names, the others hold numbers."""
    made = Table(box=None, padding=(0, GAP, 0, 0), header_style="dim", pad_edge=False)
    for place, title in enumerate(titles):
        made.add_column(title, justify="right" if place else "left", no_wrap=True, vertical="bottom")
    return made


def comparison(explanations: Sequence[Explanation], look: Look, width: int) -> Iterator[RenderableType]:
    """Scores of explanations that share their units; the units that matter most to all methods, in reading order.

    As many methods stand beside each other as `width` has room for; the others follow below.
    """
    units = explanations[0].units.names
    weights = np.stack([scale.weights(e.scores) for e in explanations])  # [methods u]
    shown = sorted(np.argsort(-np.abs(weights).mean(0), kind="stable")[:ROWS].tolist())
    names = [short(units[unit], NAME, look.either("…", "...")) for unit in shown]
    corner = "unit" if len(shown) == len(units) else f"strongest {len(shown)} of {len(units)}"
    cells: list[list[Text]] = []  # [methods rows]
    for explanation, strengths in zip(explanations, weights, strict=True):
        largest = float(np.abs(explanation.scores).max())
        column = []
        plain_selection = selection(explanation)
        for unit in shown:
            chosen = explanation.selected is not None and bool(explanation.selected[unit])
            if plain_selection:
                column.append(Text("selected" if chosen else ""))
                continue
            figure = number(float(explanation.scores[unit]), largest)
            column.append(Text.assemble("*" if chosen else "", (f" {figure}", look.tint(float(strengths[unit])))))
        cells.append(column)
    left = widest([corner, *names])
    heads = fitted(titles(explanations), width - left - GAP)
    wide = [widest([*head.split("\n"), *(c.plain for c in col)]) for head, col in zip(heads, cells, strict=True)]
    for block in blocks(wide, width - left - GAP):
        made = table(corner, *(heads[place] for place in block))
        for row, name in enumerate(names):
            made.add_row(Text(name), *(cells[place][row] for place in block))
        yield made


def widest(lines: Sequence[str]) -> int:
    return max(map(cell_len, lines))


def fitted(titles: Sequence[str], room: int) -> list[str]:
    """Titles of columns, in one line each where there is room for that."""
    return list(titles) if sum(map(len, titles)) + GAP * len(titles) <= room else [folded(title) for title in titles]


def folded(title: str) -> str:
    """A long title in lines, broken behind its signs."""
    lines = [""]
    for part in re.findall(r"[^_(,=\s]*[_(,=\s]*", title):
        if lines[-1] and len(lines[-1] + part.rstrip()) > TITLE:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)


def blocks(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Columns that stand side by side in `room` cells, at least one."""
    block: list[int] = []
    used = 0
    for place, width in enumerate(widths):
        if block and used + width > room:
            yield block
            block, used = [], 0
        block.append(place)
        used += width + GAP
    yield block


def accord(explanations: Sequence[Explanation], look: Look, width: int) -> Iterator[RenderableType]:
    """How far the methods agree: in words, in numbers for every pair, and what the numbers mean."""
    found = agreements([explanation.scores for explanation in explanations])
    yield Text(statement(explanations, found), "bold", overflow="fold")
    if all(each.tau is None for each in found.values()):
        return
    yield Text(" ")
    size = len(explanations[0].units)
    names = titles(explanations)
    if len(found) <= PAIRS:
        yield pairs(names, found, size, look, width)
    else:
        for below, above in (("tau", "shared"), ("rho", "r")):
            yield from square(names, found, size, below, above, look, width)
    if notes := footnotes(explanations, found):
        yield Text(" ".join(notes), "dim", overflow="fold")


def figure(agreement: Agreement, measure: str, size: int) -> str:
    found = getattr(agreement, measure)
    if found is None:
        return "-"
    return f"{found} of {top(size)}" if measure == "shared" else f"{round(found, 2) + 0.0:+.2f}"  # no minus before 0.00


def emphasis(agreement: Agreement, size: int) -> Style:
    """Pairs that are alike stand out."""
    return Style(bold=True) if agreement.tau is not None and agreement.tau >= alike(size) else Style.null()


def pairs(names: Sequence[str], found: Mapping[tuple[int, int], Agreement], size: int, look: Look, width: int) -> Table:
    """One row for each pair, the most alike first; where room is scarce names stand above each other, and the measures
    are fewer."""
    ranked = sorted(found, key=lambda pair: known(found[pair].tau), reverse=True)
    columns = {m: widest([HEADS[m], *(figure(found[p], m, size) for p in found)]) + GAP for m in FIGURES}
    one, other = (widest([names[pair[side]] for pair in found]) for side in (0, 1))
    beside = one + GAP + other + sum(columns.values()) <= width
    left = one if beside else max(one, other)
    for measure in ("r", "rho", "tau"):
        if not beside and left + sum(columns.values()) > width:
            columns.pop(measure)
    left = min(max(left, len("agreement")), width - sum(columns.values()))
    made = table("agreement"[:left], *[""] * beside, *(HEADS[measure] for measure in columns))
    made.columns[1].justify = "left" if beside else "right"
    dots = look.either("…", "~")
    for pair in ranked:
        sides = [short(names[place], left if not beside else len(names[place]), dots) for place in pair]
        figures = [figure(found[pair], measure, size) for measure in columns]
        made.add_row(*(sides if beside else ["\n".join(sides)]), *figures, style=emphasis(found[pair], size))
    return made


def known(tau: float | None) -> float:
    """Pairs without a number come last."""
    return -2.0 if tau is None else tau


def square(
    names: Sequence[str],
    found: Mapping[tuple[int, int], Agreement],
    size: int,
    below: str,
    above: str,
    look: Look,
    width: int,
) -> Iterator[RenderableType]:
    """Methods down and across: one measure below the diagonal, another above."""
    said = {"shared": f"how many of the strongest {top(size)} are the same", "tau": "Kendall tau-b"}
    said |= {"rho": "Spearman rho", "r": "Pearson r"}
    yield Text(f"{said[below]} below the diagonal, {said[above]} above", "dim", overflow="fold")
    mark = len(str(len(names)))
    room = max(8, width // 3)
    labels = [f"{place:{mark}} {short(name, room, look.either('…', '~'))}" for place, name in enumerate(names, start=1)]
    left = widest(labels)
    for block in blocks([CELL - GAP] * len(names), width - left - GAP):
        made = table("", *(str(place + 1) for place in block))
        for column in made.columns[1:]:
            column.width = CELL - GAP
        for row, label in enumerate(labels):
            cells = []
            for place in block:
                if row == place:
                    cells.append(Text(look.either("·", "."), "dim"))
                    continue
                agreement = found[min(row, place), max(row, place)]
                measure = below if place < row else above
                value = figure(agreement, measure, size).partition(" ")[0]
                cells.append(Text(value, emphasis(agreement, size)))
            made.add_row(Text(label), *cells)
        yield made
        yield Text(" ")


def contrast(difference: Difference, look: Look, width: int) -> Iterator[RenderableType]:
    """Where one method gives more than another: the text in green and red, and the largest differences."""
    minus = look.either("−", "-")
    first, second = difference.first, difference.second
    title = Text.assemble(("difference ", "dim"), (f"{first} {minus} {second}", "bold"), overflow="fold")
    yield title.append(look.dot + difference.meaning(), "dim")
    marked = frozenset(u for side in (1, -1) for u in difference.strongest(MARKED, side))
    passages = flow(difference.explanation)
    grid = Table.grid(padding=(0, GAP))
    if len(passages) > 1:
        grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for passage in passages:
        text = look.difference(passage, difference, marked)
        grid.add_row(*([clean(passage.name), text] if len(passages) > 1 else [text]))
    yield grid
    yield Text(" ")
    yield key(difference, look)
    shown = difference.strongest(GAPS)
    if not shown:
        yield Text("The two methods say the same.", "dim italic")
        return
    yield Text(" ")
    yield gaps(difference, shown, look, width)


def key(difference: Difference, look: Look) -> Text:
    """What green and red, or the signs, stand for."""
    text = Text(overflow="fold")
    for weight, name, sign in ((1.0, difference.first, "+"), (-1.0, difference.second, "-")):
        if look.coloured:
            style = look.tint(weight, scale.DIFFERENCES) + Style(underline=weight > 0)
            said = "green, underlined" if weight > 0 else "red"
            text.append(f" {said} ", style)
        else:
            text.append(f"[{sign}]")
        text.append(f" {name} gives more   ", "dim")
    return text


def gaps(difference: Difference, shown: Sequence[int], look: Look, width: int) -> Table:
    """The largest differences with the scores behind them."""
    names = [short(difference.explanation.units.names[u], NAME, look.either("…", "...")) for u in shown]
    left = widest([*names, "largest"])
    heads = fitted([difference.first, difference.second, "difference"], width - left - BAR - 2 * GAP)
    room = width - left - sum(widest([*head.split("\n"), "+0.000"]) + GAP for head in heads) - GAP
    if room < LEAST:  # the difference alone matters most
        heads = heads[-1:]
        room = width - left - len(heads[0]) - 2 * GAP
    bar = min(BAR, room) if room >= LEAST else 0
    made = table("largest", *heads)
    if bar:
        made.add_column("", no_wrap=True)
    for unit, name in zip(shown, names, strict=True):
        figures = [f"{each[unit]:+.3f}" for each in (difference.one, difference.other, difference.values)]
        weight = float(difference.values[unit] / np.abs(difference.values).max())
        bars = [look.bar(weight, bar, scale.DIFFERENCES)] if bar else []
        made.add_row(Text(name), *figures[-len(heads) :], *bars)
    return made
