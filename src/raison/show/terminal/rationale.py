"""A rationale in the terminal: warnings, the text or grounded answer, what was selected and proved."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from raison.core.findings import Grounding, PassageFinding
from raison.core.records import Explanation
from raison.show.rationale_sentences import (
    certificate_in_words,
    certificate_of,
    passage_role_in_answer,
    rationale_in_words,
    rationale_warnings,
    search_effort_in_words,
)
from raison.show.terminal.columns import terminal_passage_grid
from raison.show.terminal.style import TerminalStyle
from raison.show.text_formats import clean_text
from raison.show.text_pieces import answer_passages, shorten_text_pieces, text_passages

__all__ = [
    "terminal_certificate_lines",
    "terminal_grounded_answer",
    "terminal_rationale_line",
    "terminal_rationale_text",
    "terminal_rationale_warnings",
]


def terminal_rationale_warnings(explanation: Explanation, style: TerminalStyle) -> list[Text]:
    """What a reader must know first, one line each."""
    sign = style.either("▲ ", "! ")
    lines = []
    for warning in rationale_warnings(explanation):
        lines.append(Text.assemble((sign, style.warning), (warning, style.warning)))
    return lines


def terminal_rationale_text(explanation: Explanation, style: TerminalStyle) -> Table:
    """The text itself, or each of its passages under its name."""
    passages = text_passages(explanation)
    texts = [style.rationale_text(passage.pieces, explanation) for passage in passages]
    return terminal_passage_grid(passages, texts)


# -- grounded answers ---------------------------------------------------------------------------------------


def terminal_grounded_answer(
    explanation: Explanation, grounding: Grounding, style: TerminalStyle
) -> Iterator[RenderableType]:
    """What was asked and answered, on what the answer rests, and the passages with their sentences."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("question", Text(clean_text(grounding.question)))
    grid.add_row("answer", Text(clean_text(grounding.answer), "bold"))
    yield grid
    yield Text(" ")
    yield Text(clean_text(grounding.statement), "bold")

    for finding, passage in zip(grounding.passages, answer_passages(explanation), strict=True):
        is_needed = finding.selected or finding.necessary
        pieces = shorten_text_pieces(passage.pieces, explanation, is_needed, f"{style.dots} ")
        text = style.rationale_text(pieces, explanation)
        yield Text(" ")
        yield terminal_passage_name(finding, style)
        yield Padding(text if is_needed else Text(text.plain, "dim"), (0, 0, 0, 2))


def terminal_passage_name(finding: PassageFinding, style: TerminalStyle) -> Text:
    """The name of a passage with what it is to the answer."""
    sign = style.either("○", "-")
    name_style = Style(bold=False, dim=True)
    sign_style = Style(dim=True)
    if finding.selected:
        sign = style.either("●", "#")
        name_style = Style(bold=True, dim=False)
        sign_style = style.in_colour(Style(color=style.given.color), otherwise=Style(dim=False))
    role = style.dot + passage_role_in_answer(finding)
    return Text.assemble(
        (f"{sign} ", sign_style),
        (clean_text(finding.name), name_style),
        (role, Style(dim=not finding.selected)),
    )


# -- what was selected and proved ---------------------------------------------------------------------------


def terminal_rationale_line(explanation: Explanation, style: TerminalStyle) -> Text:
    """How much was selected of how much, and what, in the order chosen."""
    selected = rationale_in_words(explanation, dots=style.dots)
    text = Text("rationale ", style="dim", overflow="fold")
    text.append(selected.size, "bold not dim")
    if selected.names:
        text.append(": ").append(f" {style.arrow} ".join(selected.names), "not dim")
    return text.append(selected.besides)


def terminal_certificate_lines(explanation: Explanation, style: TerminalStyle) -> Group:
    """The certificate in two lines: what holds, and what it took."""
    first, *others = certificate_in_words(explanation)
    first_style: Style | str = style.warning
    if certificate_of(explanation).sufficient:
        first_style = "bold"
    line = Text(first, first_style, overflow="fold")
    if others:
        line.append(style.dot + style.dot.join(others), "not bold")

    effort = search_effort_in_words(explanation)
    if not effort:
        return Group(line)
    return Group(line, Text(style.dot.join(effort), "dim"))
