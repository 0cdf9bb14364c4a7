"""The matrix of rationales in the terminal, in blocks of columns that fit its width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from raison.show.certificate import chosen_units
from raison.show.matrix import CHOSEN, GIVEN, INSUFFICIENT, SPARED, Alarm, Matrix, alarms_of
from raison.show.terminal.style import TerminalStyle
from raison.show.wording import clean, short

__all__ = ["draw"]

CELL = 2  # cells of a column: about as wide as high
HEAD = 12  # letters of a column's name
LABEL = 20  # cells of a row's name


@dataclass(frozen=True)
class RowHead:
    """What stands before the cells of a row."""

    name: str
    alarms: tuple[Alarm, ...]
    size: str  # of the rationale


@dataclass(frozen=True)
class HeadWidths:
    """Cells that the names, alarms and sizes of all rows take."""

    name: int
    alarms: int
    size: int

    @property
    def total(self) -> int:
        return self.name + self.alarms + self.size + 3  # spaces between them


def draw(matrix: Matrix, look: TerminalStyle, width: int) -> Iterator[RenderableType]:
    """The matrix in blocks of columns that fit `width`, and a legend."""
    longest = min(LABEL, max(8, width // 4))
    heads = []
    for explanation in matrix.rows:
        name = short(explanation.target.text, longest, look.either("…", "~"))
        heads.append(
            RowHead(name, tuple(alarms_of(explanation)), str(len(chosen_units(explanation))))
        )
    widths = HeadWidths(
        name=max(cell_len(head.name) for head in heads),
        alarms=max(len(head.alarms) for head in heads),
        size=max(len(head.size) for head in heads),
    )
    for block in blocks_of_columns(matrix, max(1, (width - widths.total) // CELL)):
        yield from column_names(matrix, block, look, widths.total)
        for row, head in enumerate(heads):
            is_first_block = block[0] == 0
            if (
                is_first_block or matrix.cells[row, block].any()
            ):  # else nothing in this block is visible to it
                yield row_head(head, look, widths).append_text(row_cells(matrix, row, block, look))
        yield Text(" ")
    yield legend(matrix, look)


def blocks_of_columns(matrix: Matrix, room: int) -> Iterator[list[int]]:
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


def has_gap(matrix: Matrix, block: Sequence[int], column: int) -> bool:
    """Whether a line stands before a column, since another text begins there."""
    return column != block[0] and matrix.begins_segment(column)


# -- names of columns ------------------------------------------------------------------------------------------


def column_names(
    matrix: Matrix, block: Sequence[int], look: TerminalStyle, left: int
) -> Iterator[Text]:
    """The names of columns written downwards, ending just above their columns."""
    names = [letters_of(matrix.columns[column].name, look) for column in block]
    height = max(len(letters) for letters in names)
    for line in range(height):
        text = Text(" " * left, no_wrap=True, overflow="crop")
        for column, letters in zip(block, names, strict=True):
            place = line - (height - len(letters))
            letter = letters[place] if place >= 0 else " "
            text.append("  " if has_gap(matrix, block, column) else "")
            text.append(letter + " " * (CELL - cell_len(letter)))
        yield text


def letters_of(name: str, look: TerminalStyle) -> list[str]:
    """The letters of a name, each with its accents; a long name is cut."""
    letters: list[str] = []
    for char in " ".join(clean(name).split()):
        if letters and cell_len(char) == 0:
            letters[-1] += char
        else:
            letters.append(char)
    if len(letters) > HEAD:
        return [*letters[: HEAD - 1], look.either("⋮", ":")]
    return letters


# -- rows ------------------------------------------------------------------------------------------------------


def row_head(head: RowHead, look: TerminalStyle, widths: HeadWidths) -> Text:
    """The name of a row, its alarms and the size of its rationale."""
    signs = "".join(sign_of(alarm, look) for alarm in head.alarms)
    text = Text(no_wrap=True, overflow="crop")
    text.append(clean(head.name), look.warning if INSUFFICIENT in head.alarms else "bold")
    text.append(" " * (widths.name - cell_len(head.name) + 1))
    text.append(signs.ljust(widths.alarms), look.warning)
    text.append(f" {head.size.rjust(widths.size)} ", "dim")
    return text


def row_cells(matrix: Matrix, row: int, block: Sequence[int], look: TerminalStyle) -> Text:
    """The cells of a row, with a line where another text begins."""
    text = Text(no_wrap=True, overflow="crop")
    for column in block:
        text.append(look.either("│ ", "| ") if has_gap(matrix, block, column) else "", "dim")
        text.append(*styled_cell(int(matrix.cells[row, column]), look))
    return text


def styled_cell(state: int, look: TerminalStyle) -> tuple[str, Style]:
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


def sign_of(alarm: Alarm, look: TerminalStyle) -> str:
    return alarm.ascii_sign if look.ascii else alarm.sign


def legend(matrix: Matrix, look: TerminalStyle) -> Text:
    """What the signs mean, only those that occur."""
    text = Text(overflow="fold")
    for state, meaning in matrix.meanings().items():
        sign, style = styled_cell(state, look)
        text.append("   " if text else "").append(sign.strip(), style).append(f" {meaning}", "dim")
    for alarm in matrix.alarms():
        text.append("   ").append(sign_of(alarm, look), look.warning).append(
            f" {alarm.meaning}", "dim"
        )
    return text
