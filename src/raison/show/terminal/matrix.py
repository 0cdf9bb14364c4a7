"""The matrix of rationales in the terminal: column names, row heads and cells in blocks that fit, and a legend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from raison.show.rationale_matrix import (
    CHOSEN,
    GIVEN,
    INSUFFICIENT,
    SPARED,
    MatrixAlarm,
    RationaleMatrix,
    matrix_row_alarms,
)
from raison.show.rationale_sentences import rationale_units_in_order
from raison.show.terminal.style import TerminalStyle
from raison.show.text_formats import clean_text, short_name

__all__ = ["terminal_matrix"]

CELL = 2  # cells of a column: about as wide as high
HEAD = 12  # letters of a column's name
LABEL = 20  # cells of a row's name


@dataclass(frozen=True)
class MatrixRowHead:
    """What stands before the cells of a row."""

    name: str
    alarms: tuple[MatrixAlarm, ...]
    size: str  # of the rationale


@dataclass(frozen=True)
class MatrixRowHeadWidths:
    """Cells that the names, alarms and sizes of all rows take."""

    name: int
    alarms: int
    size: int

    @classmethod
    def of(cls, heads: Sequence[MatrixRowHead]) -> MatrixRowHeadWidths:
        """The widths in which all heads fit."""
        return cls(
            name=max(cell_len(head.name) for head in heads),
            alarms=max(len(head.alarms) for head in heads),
            size=max(len(head.size) for head in heads),
        )

    @property
    def total(self) -> int:
        """All of them, with the spaces between them."""
        return self.name + self.alarms + self.size + 3


def terminal_matrix(
    matrix: RationaleMatrix, style: TerminalStyle, width: int
) -> Iterator[RenderableType]:
    """The matrix in blocks of columns that fit `width`, and a legend."""
    longest = min(LABEL, max(8, width // 4))
    dots = style.either("…", "~")
    heads = []
    for explanation in matrix.rows:
        head = MatrixRowHead(
            name=short_name(explanation.target.text, longest, dots),
            alarms=tuple(matrix_row_alarms(explanation)),
            size=str(len(rationale_units_in_order(explanation))),
        )
        heads.append(head)
    widths = MatrixRowHeadWidths.of(heads)

    columns_in_block = max(1, (width - widths.total) // CELL)
    for block in matrix_column_blocks(matrix, columns_in_block):
        yield from terminal_matrix_column_names(matrix, block, style, widths.total)
        is_first_block = block[0] == 0
        for row, head in enumerate(heads):
            is_visible_here = bool(matrix.cells[row, block].any())
            if is_first_block or is_visible_here:
                line = terminal_matrix_row_head(head, style, widths)
                yield line.append_text(terminal_matrix_row_cells(matrix, row, block, style))
        yield Text(" ")
    yield terminal_matrix_legend(matrix, style)


def matrix_column_blocks(matrix: RationaleMatrix, room: int) -> Iterator[list[int]]:
    """Columns that stand side by side in `room` columns; a new segment takes the room of one more."""
    block: list[int] = []
    used = 0
    for column in range(len(matrix.columns)):
        wide = 2 if block and matrix.begins_segment(column) else 1
        if block and used + wide > room:
            yield block
            block, used, wide = [], 0, 1
        block.append(column)
        used += wide
    if block:
        yield block


def has_gap_before_column(matrix: RationaleMatrix, block: Sequence[int], column: int) -> bool:
    """Whether a line stands before a column, since another text begins there."""
    return column != block[0] and matrix.begins_segment(column)


# -- names of columns ------------------------------------------------------------------------------------------


def terminal_matrix_column_names(
    matrix: RationaleMatrix, block: Sequence[int], style: TerminalStyle, left: int
) -> Iterator[Text]:
    """The names of columns written downwards, ending just above their columns."""
    names = [letters_of_column_name(matrix.columns[column].name, style) for column in block]
    height = max(len(letters) for letters in names)
    for line in range(height):
        text = Text(" " * left, no_wrap=True, overflow="crop")
        for column, letters in zip(block, names, strict=True):
            place = line - (height - len(letters))
            letter = " "
            if place >= 0:
                letter = letters[place]
            if has_gap_before_column(matrix, block, column):
                text.append("  ")
            text.append(letter + " " * (CELL - cell_len(letter)))
        yield text


def letters_of_column_name(name: str, style: TerminalStyle) -> list[str]:
    """The letters of a name, each with its accents; a long name is cut."""
    letters: list[str] = []
    for char in " ".join(clean_text(name).split()):
        if letters and cell_len(char) == 0:
            letters[-1] += char
        else:
            letters.append(char)
    if len(letters) > HEAD:
        return [*letters[: HEAD - 1], style.either("⋮", ":")]
    return letters


# -- rows ------------------------------------------------------------------------------------------------------


def terminal_matrix_row_head(
    head: MatrixRowHead, style: TerminalStyle, widths: MatrixRowHeadWidths
) -> Text:
    """The name of a row, its alarms and the size of its rationale."""
    name_style: Style | str = "bold"
    if INSUFFICIENT in head.alarms:
        name_style = style.warning
    signs = "".join(sign_of_matrix_alarm(alarm, style) for alarm in head.alarms)
    blanks = widths.name - cell_len(head.name) + 1

    text = Text(no_wrap=True, overflow="crop")
    text.append(clean_text(head.name), name_style)
    text.append(" " * blanks)
    text.append(signs.ljust(widths.alarms), style.warning)
    text.append(f" {head.size.rjust(widths.size)} ", "dim")
    return text


def terminal_matrix_row_cells(
    matrix: RationaleMatrix, row: int, block: Sequence[int], style: TerminalStyle
) -> Text:
    """The cells of a row, with a line where another text begins."""
    text = Text(no_wrap=True, overflow="crop")
    for column in block:
        if has_gap_before_column(matrix, block, column):
            text.append(style.either("│ ", "| "), "dim")
        text.append(*terminal_matrix_cell(int(matrix.cells[row, column]), style))
    return text


def terminal_matrix_cell(state: int, style: TerminalStyle) -> tuple[str, Style]:
    """One cell of the matrix, and its style."""
    if state == CHOSEN:
        return style.either("██", "# "), style.in_colour(Style(color=style.kept.bgcolor))
    if state == GIVEN:
        return style.either("░░", "o "), style.in_colour(Style(color=style.given.color))
    if state == SPARED:
        return style.either("· ", ". "), Style(dim=True)
    return "  ", Style.null()


def sign_of_matrix_alarm(alarm: MatrixAlarm, style: TerminalStyle) -> str:
    """The sign of an alarm that the stream can carry."""
    return style.either(alarm.sign, alarm.ascii_sign)


def terminal_matrix_legend(matrix: RationaleMatrix, style: TerminalStyle) -> Text:
    """What the signs mean, only those that occur."""
    text = Text(overflow="fold")
    for state, meaning in matrix.meanings().items():
        if text:
            text.append("   ")
        sign, sign_style = terminal_matrix_cell(state, style)
        text.append(sign.strip(), sign_style)
        text.append(f" {meaning}", "dim")
    for alarm in matrix.alarms():
        text.append("   ")
        text.append(sign_of_matrix_alarm(alarm, style), style.warning)
        text.append(f" {alarm.meaning}", "dim")
    return text
