"""Explanations in the terminal: what was predicted, the text in colours, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import numpy as np
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from raison.core.records import Explanation
from raison.show import scale
from raison.show.certificate import count, is_rationale
from raison.show.consensus import subject
from raison.show.difference import differences
from raison.show.matrix import facts, matrix, sheets
from raison.show.spans import flow, selection
from raison.show.terminal import rationale as rationales
from raison.show.terminal.compare import accord, comparison, contrast
from raison.show.terminal.matrix import draw
from raison.show.terminal.style import Look, screen
from raison.show.wording import clean, headline, measured, notes, number, provenance

__all__ = ["render", "render_many"]

STRONGEST = 5  # units named on each side
LONGEST = 24  # cells of a unit's name in a table
GAP, BAR = 4, 12  # cells between the sides, and of the longest bar
WIDE = 76  # cells from which for and against stand side by side


def render(explanation: Explanation, console: Console | None = None, *, paper: str | None = None) -> None:
    """Print one explanation; `paper` is dark or light where the terminal's background is known."""
    console = console or screen()
    look = Look.of(console, paper)
    head(explanation, console, look)
    body(explanation, console, look)


def render_many(
    explanations: Iterable[Explanation],
    console: Console | None = None,
    *,
    paper: str | None = None,
    difference: bool = False,
) -> None:
    """Print explanations below each other; methods that explain the same thing end in a table of them all and in how
    far they agree, and rationales of many targets of one text make a matrix. `difference` adds where the first method
    gives more or less than the others."""
    console = console or screen()
    look = Look.of(console, paper)
    found = groupby(sheets(list(explanations)), lambda group: subject(group[0]) if len(group) == 1 else id(group))
    for place, (_, same) in enumerate(found):
        if place:
            console.print(Rule(style="dim", characters="-" if look.ascii else "─"))
        first, *others = same
        if len(first) > 1:
            sheet(first, console, look)
            continue
        if not others:
            render(first[0], console, paper=paper)
            continue
        together([first[0], *(other[0] for other in others)], console, look, difference)


def together(group: list[Explanation], console: Console, look: Look, difference: bool) -> None:
    """Methods that explain the same thing: each by itself, all in a table, how far they agree, where they differ."""
    head(group[0], console, look, shared=True)
    for explanation in group:
        say(console, Text(look.dot.join(provenance(explanation)), style="dim"))
        body(explanation, console, look, table=False)
    width = console.width - 2
    for part in comparison(group, look, width):
        say(console, part)
        console.print()
    scored = [explanation for explanation in group if not is_rationale(explanation)]  # a rationale is in or out
    if len(scored) < 2:
        return
    for part in accord(scored, look, width):
        say(console, part)
    console.print()
    for each in differences(scored) if difference else ():
        for part in contrast(each, look, width):
            say(console, part)
        console.print()


def sheet(explanations: list[Explanation], console: Console, look: Look) -> None:
    """Rationales of one text as a matrix."""
    found = matrix(explanations)
    console.print()
    title = Text(clean(found.rows[0].model) + look.dot, "dim", overflow="fold")
    say(console, title.append(f"{len(explanations)} rationales of one text", "bold not dim"))
    say(console, Text(look.dot.join(facts(found)), style="dim"))
    console.print()
    for part in draw(found, look, console.width - 2):
        say(console, part)
    console.print()


def say(console: Console, what: RenderableType) -> None:
    console.print(Padding(what, (0, 1), expand=False))


def head(explanation: Explanation, console: Console, look: Look, shared: bool = False) -> None:
    first, *rest = headline(explanation)
    line = Text(overflow="fold")
    line.append(clean(explanation.model) + look.dot, "dim")
    line.append(first, "bold")
    if rest:
        line.append(look.dot + look.dot.join(rest))
    console.print()
    say(console, line)
    if not shared:
        say(console, Text(look.dot.join(provenance(explanation)), style="dim"))
    console.print()


def body(explanation: Explanation, console: Console, look: Look, table: bool = True) -> None:
    if is_rationale(explanation):
        return story(explanation, console, look, table)
    marked = frozenset(u for side in (1, -1) for u in strongest(explanation.scores, side))
    passages = flow(explanation)
    grid = Table.grid(padding=(0, 2))
    if len(passages) > 1:
        grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for passage in passages:
        text = look.passage(passage, explanation, marked)
        grid.add_row(*([clean(passage.name), text] if len(passages) > 1 else [text]))
    say(console, grid)
    if figures := measured(explanation):
        say(console, Text(look.dot.join(figures), style="dim"))
    for note in notes(explanation, "in grey" if look.coloured else "in {braces}"):
        say(console, Text(note, style="dim italic"))
    console.print()
    if explanation.selected is not None:
        say(console, rationale(explanation, look))
        console.print()
    if table and explanation.scores.any() and not selection(explanation):  # in or out needs no table
        say(console, sides(explanation, console, look))
        console.print()


def story(explanation: Explanation, console: Console, look: Look, table: bool) -> None:
    """A rationale: the warnings, the text or the passages of an answer, the path and the certificate."""
    alarms = list(rationales.alarms(explanation, look))
    for alarm in alarms:
        say(console, alarm)
    if alarms:
        console.print()
    if explanation.grounding is None:
        say(console, rationales.texts(explanation, look))
    for part in rationales.answer(explanation, look):
        say(console, part)
    for note in notes(explanation, "in grey" if look.coloured else "in {braces}"):
        say(console, Text(note, style="dim italic"))
    console.print()
    say(console, rationales.line(explanation, look))
    console.print()
    if table and (steps := rationales.steps(explanation, look, console.width - 2)):
        say(console, steps)
        console.print()
    say(console, rationales.proved(explanation, look))
    console.print()


def rationale(explanation: Explanation, look: Look) -> Text:
    """How many units were selected, and in which order they were chosen."""
    chosen = explanation.selected if explanation.selected is not None else np.zeros(0, bool)
    line = Text("rationale ", style="dim")
    line.append(f"{int(chosen.sum())} of {count(len(chosen), explanation.units.level)}", "bold")
    order = [] if explanation.order is None else [int(u) for u in explanation.order if chosen[u]]
    if order:
        names = [clean(explanation.units.names[u]) for u in order[:12]] + ["…"] * (len(order) > 12)
        line.append(", in the order chosen: ", "dim")
        line.append((", " if look.ascii else " → ").join(names))
    return line


def strongest(scores: np.ndarray, side: int) -> list[int]:
    """The units that speak most for (side 1) or against (side -1) the target, strongest first."""
    weights = scale.weights(scores) * side
    return [int(unit) for unit in np.argsort(-weights, kind="stable")[:STRONGEST] if weights[unit] >= scale.SILENT]


def sides(explanation: Explanation, console: Console, look: Look) -> Table:
    """The strongest units for the target and against it, with their scores; side by side where there is room."""
    scores = explanation.scores
    found = [("for" if scale.signed(scores) else "strongest", strongest(scores, 1)), ("against", strongest(scores, -1))]
    found = [(title, units) for title, units in found if units]
    across = len(found) if console.width >= WIDE else 1
    room = (console.width - 2 - GAP * (across - 1)) // across
    tables = [side(explanation, look, units, title, room) for title, units in found]
    grid = Table.grid(padding=(0, GAP))
    for row in [tables] if across > 1 else [[table] for table in tables]:
        grid.add_row(*row)
    return grid


def side(explanation: Explanation, look: Look, units: list[int], title: str, room: int) -> Table:
    """One side; widths are fixed here, since bars that a narrow table had shortened would tell lies."""
    weights = scale.weights(explanation.scores)
    largest = float(np.abs(explanation.scores).max())
    names = [Text(" ".join(clean(explanation.units.names[u]).split()) or "␣") for u in units]
    figures = [number(float(explanation.scores[u]), largest) for u in units]
    left = room - max(map(len, figures)) - 4  # two gaps of two cells
    bar = max(1, min(BAR, left - 8))
    longest = max(len(title), *(name.cell_len for name in names))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column(title, width=max(1, min(LONGEST, left - bar, longest)), no_wrap=True, overflow="ellipsis")
    table.add_column("score", justify="right", no_wrap=True, min_width=max(map(len, figures)))
    table.add_column("", width=bar, no_wrap=True)
    for unit, name, figure in zip(units, names, figures, strict=True):
        table.add_row(name, figure, look.bar(float(weights[unit]), bar))
    return table
