"""A rationale in the terminal: the text with what suffices marked, the path that led there, and what was proved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from raison.core.findings import PassageFinding
from raison.core.records import Explanation
from raison.show import certificate as proof
from raison.show.search_path import excerpt, measure, path, runners_up
from raison.show.spans import flow, grounded, shortened
from raison.show.terminal.style import Look
from raison.show.wording import clean, short

__all__ = ["alarms", "answer", "line", "proved", "steps", "texts"]

GAP, BAR = 2, 12  # cells between columns, and of the longest bar
SHORT, LONG = 16, 36  # cells that a change gets before other columns do, and at most
WIDE = 90  # cells of a terminal from which bars are long
RIVALS = 2  # runners-up named in a step


def alarms(explanation: Explanation, look: Look) -> Iterator[RenderableType]:
    """What a reader must know first, one line each."""
    for warning in proof.warnings(explanation):
        yield Text.assemble((look.either("▲ ", "! "), look.warning), (warning, look.warning))


def texts(explanation: Explanation, look: Look) -> RenderableType:
    """The text itself, or each of its passages under its name."""
    passages = flow(explanation)
    grid = Table.grid(padding=(0, 2))
    if len(passages) > 1:
        grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for passage in passages:
        text = look.rationale(passage.pieces, explanation)
        grid.add_row(*([clean(passage.name), text] if len(passages) > 1 else [text]))
    return grid


def answer(explanation: Explanation, look: Look) -> Iterator[RenderableType]:
    """A grounded answer: what was asked and answered, on what it rests, and the passages with their sentences."""
    grounding = explanation.grounding
    if grounding is None:
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("question", Text(clean(grounding.question)))
    grid.add_row("answer", Text(clean(grounding.answer), "bold"))
    yield grid
    yield Text(" ")
    yield Text(clean(grounding.statement), "bold")
    for fact, passage in zip(grounding.passages, grounded(explanation), strict=True):
        yield Text(" ")
        yield named(fact, look)
        needed = fact.selected or fact.necessary
        dots = look.either("… ", "... ")
        text = look.rationale(shortened(passage.pieces, explanation, needed, dots), explanation)
        yield Padding(text if needed else Text(text.plain, "dim"), (0, 0, 0, 2))


def named(fact: PassageFinding, look: Look) -> Text:
    """The name of a passage with what it is to the answer."""
    needed = fact.selected
    sign = look.either("●", "#") if needed else look.either("○", "-")
    hue = Style(color=look.given.color) if needed and look.coloured else Style(dim=not needed)
    name = (clean(fact.name), Style(bold=needed, dim=not needed))
    return Text.assemble((f"{sign} ", hue), name, (look.dot + proof.stand(fact), Style(dim=not needed)))


def line(explanation: Explanation, look: Look) -> Text:
    """How much was selected of how much, and what, in the order chosen."""
    units = proof.chosen(explanation)
    text = Text("rationale ", style="dim", overflow="fold")
    text.append(f"{len(units)} of {proof.count(len(explanation.units), explanation.units.level)}", "bold not dim")
    dots = look.either("…", "...")
    names = [short(explanation.units.names[u], proof.LONGEST, dots) for u in units[: proof.MANY]]
    names += [dots] * (len(units) > proof.MANY)
    if names:
        text.append(": ").append(look.either(" → ", " -> ").join(names), "not dim")
    kept = proof.kept(explanation)
    if 0 < len(kept) <= 3:
        text.append(f"{', and' if names else ': only'} the given " + ", ".join(f'"{name}"' for name in kept))
    elif not names:
        text.append(": nothing of it is needed" if proof.certificate_of(explanation).sufficient else "")
    return text


def steps(explanation: Explanation, look: Look, width: int) -> Table | None:
    """The path of the search; None where no steps were recorded."""
    found = path(explanation, look.either("…", "..."))
    if not found:
        return None
    shown = excerpt(found)
    changes = [skipped(step, look) if isinstance(step, int) else step.change(look.either("−", "-")) for step in shown]
    title = measure(explanation)
    figure = max(len(title), *(len(step.figure) for step in found))
    tick = len(look.either("✓", "yes"))
    # widths are settled here, since bars that a narrow table had shortened would tell lies
    longest = max(map(cell_len, changes))
    room = width - figure - tick - 4 - 2 * GAP
    numbered = room >= min(longest, SHORT) + 8 + 2 * GAP
    room -= (8 + 2 * GAP) * numbered  # step and size
    bar = BAR if width >= WIDE else BAR - 4
    barred = any(step.weight is not None for step in found) and room >= min(longest, SHORT) + bar + GAP
    room -= (bar + GAP) * barred
    wide = max(4, min(longest, LONG, room))
    rivals = room - wide - GAP if any(step.rivals for step in found) else 0

    table = Table(box=None, padding=(0, GAP, 0, 0), header_style="dim", pad_edge=False)
    if numbered:
        table.add_column("step", justify="right", style="dim", width=4)
    table.add_column("change", width=wide, no_wrap=True)
    if numbered:
        table.add_column("size", justify="right", width=4)
    table.add_column(title, justify="right", width=figure)
    if barred:
        table.add_column("", width=bar, no_wrap=True)
    table.add_column("", no_wrap=True, width=tick)
    if rivals >= SHORT:
        table.add_column(runners_up(explanation), width=rivals, no_wrap=True, style="dim")
    for step, said in zip(shown, changes, strict=True):
        what = fitted(said, wide, look)
        if isinstance(step, int):
            table.add_row(*[""] * numbered, what, style="dim")
            continue
        cells: list[RenderableType] = ["" if step.number is None else str(step.number)] * numbered
        cells += [what, *[str(step.size)] * numbered, step.figure]
        if barred:
            cells.append("" if step.weight is None else look.bar(step.weight, bar))
        cells.append(Text(look.either("✓", "yes") if step.enough else "", "bold"))
        if rivals >= SHORT:
            names = [f"{name} {value}" for name, value in step.rivals[:RIVALS]]
            while len(names) > 1 and cell_len(", ".join(names)) > rivals:
                names.pop()
            cells.append(fitted(", ".join(names), rivals, look))
        table.add_row(*cells, style="dim" if step.number is None else "")
    return table


def fitted(line: str, width: int, look: Look) -> Text:
    """A line cut to a width in terminal cells, with dots that the stream can carry."""
    text, dots = Text(line), look.either("…", "...")
    if text.cell_len > width:
        text.truncate(max(0, width - len(dots)))
        text = Text(text.plain.rstrip() + dots[:width])
    return text


def skipped(steps: int, look: Look) -> str:
    return f"{look.either('⋮', ':')} {proof.count(steps, 'step')} more"


def proved(explanation: Explanation, look: Look) -> Group:
    """The certificate in two lines: what holds, and what it took."""
    good = bool(proof.certificate_of(explanation).sufficient)
    first, *rest = proof.verdict(explanation)
    said = Text(first, "bold" if good else look.warning, overflow="fold")
    lines: Sequence[Text] = [said.append(look.dot + look.dot.join(rest), "not bold") if rest else said]
    if effort := proof.effort(explanation):
        lines = [*lines, Text(look.dot.join(effort), "dim")]
    return Group(*lines)
