"""The matrix of rationales in the terminal, in blocks of columns that fit its width."""

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

    @property
    def total(self) -> int:
        return self.name + self.alarms + self.size + 3  # spaces between them


def terminal_matrix(
    matrix: RationaleMatrix, look: TerminalStyle, width: int
) -> Iterator[RenderableType]:
    """The matrix in blocks of columns that fit `width`, and a legend."""
    longest = min(LABEL, max(8, width // 4))
    heads = []
    for explanation in matrix.rows:
        name = short_name(explanation.target.text, longest, look.either("…", "~"))
        heads.append(
            MatrixRowHead(
                name,
                tuple(matrix_row_alarms(explanation)),
                str(len(rationale_units_in_order(explanation))),
            )
        )
    widths = MatrixRowHeadWidths(
        name=max(cell_len(head.name) for head in heads),
        alarms=max(len(head.alarms) for head in heads),
        size=max(len(head.size) for head in heads),
    )
    for block in matrix_column_blocks(matrix, max(1, (width - widths.total) // CELL)):
        yield from terminal_matrix_column_names(matrix, block, look, widths.total)
        for row, head in enumerate(heads):
            is_first_block = block[0] == 0
            if (
                is_first_block or matrix.cells[row, block].any()
            ):  # else nothing in this block is visible to it
                yield terminal_matrix_row_head(head, look, widths).append_text(
                    terminal_matrix_row_cells(matrix, row, block, look)
                )
        yield Text(" ")
    yield terminal_matrix_legend(matrix, look)


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
    matrix: RationaleMatrix, block: Sequence[int], look: TerminalStyle, left: int
) -> Iterator[Text]:
    """The names of columns written downwards, ending just above their columns."""
    names = [letters_of_column_name(matrix.columns[column].name, look) for column in block]
    height = max(len(letters) for letters in names)
    for line in range(height):
        text = Text(" " * left, no_wrap=True, overflow="crop")
        for column, letters in zip(block, names, strict=True):
            place = line - (height - len(letters))
            letter = letters[place] if place >= 0 else " "
            text.append("  " if has_gap_before_column(matrix, block, column) else "")
            text.append(letter + " " * (CELL - cell_len(letter)))
        yield text


def letters_of_column_name(name: str, look: TerminalStyle) -> list[str]:
    """The letters of a name, each with its accents; a long name is cut."""
    letters: list[str] = []
    for char in " ".join(clean_text(name).split()):
        if letters and cell_len(char) == 0:
            letters[-1] += char
        else:
            letters.append(char)
    if len(letters) > HEAD:
        return [*letters[: HEAD - 1], look.either("⋮", ":")]
    return letters


# -- rows ------------------------------------------------------------------------------------------------------


def terminal_matrix_row_head(
    head: MatrixRowHead, look: TerminalStyle, widths: MatrixRowHeadWidths
) -> Text:
    """The name of a row, its alarms and the size of its rationale."""
    signs = "".join(sign_of_matrix_alarm(alarm, look) for alarm in head.alarms)
    text = Text(no_wrap=True, overflow="crop")
    text.append(clean_text(head.name), look.warning if INSUFFICIENT in head.alarms else "bold")
    text.append(" " * (widths.name - cell_len(head.name) + 1))
    text.append(signs.ljust(widths.alarms), look.warning)
    text.append(f" {head.size.rjust(widths.size)} ", "dim")
    return text


def terminal_matrix_row_cells(
    matrix: RationaleMatrix, row: int, block: Sequence[int], look: TerminalStyle
) -> Text:
    """The cells of a row, with a line where another text begins."""
    text = Text(no_wrap=True, overflow="crop")
    for column in block:
        text.append(
            look.either("│ ", "| ") if has_gap_before_column(matrix, block, column) else "", "dim"
        )
        text.append(*terminal_matrix_cell(int(matrix.cells[row, column]), look))
    return text


def terminal_matrix_cell(state: int, look: TerminalStyle) -> tuple[str, Style]:
    """One cell of the matrix, and its style."""
    if state == CHOSEN:
        return look.either("██", "# "), Style(
            color=look.kept.bgcolor
        ) if look.coloured else Style.null()
    if state == GIVEN:
        return look.either("░░", "o "), Style(color=look.given.color if look.coloured else None)
    if state == SPARED:
        return look.either("· ", ". "), Style(dim=True)
    return "  ", Style.null()


def sign_of_matrix_alarm(alarm: MatrixAlarm, look: TerminalStyle) -> str:
    return alarm.ascii_sign if look.ascii else alarm.sign


def terminal_matrix_legend(matrix: RationaleMatrix, look: TerminalStyle) -> Text:
    """What the signs mean, only those that occur."""
    text = Text(overflow="fold")
    for state, meaning in matrix.meanings().items():
        sign, style = terminal_matrix_cell(state, look)
        text.append("   " if text else "").append(sign.strip(), style).append(f" {meaning}", "dim")
    for alarm in matrix.alarms():
        text.append("   ").append(sign_of_matrix_alarm(alarm, look), look.warning).append(
            f" {alarm.meaning}", "dim"
        )
    return text
