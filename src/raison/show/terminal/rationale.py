"""A rationale in the terminal: the text with what suffices marked, the path that led there, and what was proved."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from raison.core.findings import Grounding, PassageFinding
from raison.core.records import Explanation
from raison.show import certificate as proof
from raison.show.spans import flow, grounded, shortened
from raison.show.terminal.columns import passage_grid
from raison.show.terminal.style import TerminalStyle
from raison.show.wording import clean

__all__ = ["grounded_answer", "proof_lines", "rationale_line", "rationale_texts", "warning_lines"]


def warning_lines(explanation: Explanation, style: TerminalStyle) -> list[Text]:
    """What a reader must know first, one line each."""
    sign = style.either("▲ ", "! ")
    return [
        Text.assemble((sign, style.warning), (line, style.warning))
        for line in proof.warnings(explanation)
    ]


def rationale_texts(explanation: Explanation, style: TerminalStyle) -> Table:
    """The text itself, or each of its passages under its name."""
    passages = flow(explanation)
    return passage_grid(
        passages, [style.rationale_text(passage.pieces, explanation) for passage in passages]
    )


# -- grounded answers ---------------------------------------------------------------------------------------


def grounded_answer(
    explanation: Explanation, grounding: Grounding, style: TerminalStyle
) -> Iterator[RenderableType]:
    """What was asked and answered, on what the answer rests, and the passages with their sentences."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("question", Text(clean(grounding.question)))
    grid.add_row("answer", Text(clean(grounding.answer), "bold"))
    yield grid
    yield Text(" ")
    yield Text(clean(grounding.statement), "bold")

    for finding, passage in zip(grounding.passages, grounded(explanation), strict=True):
        is_needed = finding.selected or finding.necessary
        pieces = shortened(passage.pieces, explanation, is_needed, f"{style.dots} ")
        text = style.rationale_text(pieces, explanation)
        yield Text(" ")
        yield name_of_passage(finding, style)
        yield Padding(text if is_needed else Text(text.plain, "dim"), (0, 0, 0, 2))


def name_of_passage(finding: PassageFinding, style: TerminalStyle) -> Text:
    """The name of a passage with what it is to the answer."""
    if finding.selected:
        sign = style.either("●", "#")
        name_style = Style(bold=True, dim=False)
        sign_style = Style(color=style.given.color) if style.coloured else Style(dim=False)
    else:
        sign = style.either("○", "-")
        name_style = Style(bold=False, dim=True)
        sign_style = Style(dim=True)
    role = style.dot + proof.role_in_answer(finding)
    return Text.assemble(
        (f"{sign} ", sign_style),
        (clean(finding.name), name_style),
        (role, Style(dim=not finding.selected)),
    )


# -- what was selected and proved ---------------------------------------------------------------------------


def rationale_line(explanation: Explanation, style: TerminalStyle) -> Text:
    """How much was selected of how much, and what, in the order chosen."""
    selected = proof.selection_in_words(explanation, dots=style.dots)
    text = Text("rationale ", style="dim", overflow="fold")
    text.append(selected.size, "bold not dim")
    if selected.names:
        text.append(": ").append(f" {style.arrow} ".join(selected.names), "not dim")
    return text.append(selected.besides)


def proof_lines(explanation: Explanation, style: TerminalStyle) -> Group:
    """The certificate in two lines: what holds, and what it took."""
    first, *others = proof.proof_in_words(explanation)
    is_sufficient = proof.certificate_of(explanation).sufficient
    line = Text(first, "bold" if is_sufficient else style.warning, overflow="fold")
    if others:
        line.append(style.dot + style.dot.join(others), "not bold")

    effort = proof.effort_in_words(explanation)
    if not effort:
        return Group(line)
    return Group(line, Text(style.dot.join(effort), "dim"))
