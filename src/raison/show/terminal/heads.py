"""Attention heads that matter, in the terminal: a table of relations, and the heads of every block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from raison.show.head_selection import HeadSelection, list_head_blocks, signed_head_offset
from raison.show.terminal.columns import empty_terminal_table
from raison.show.terminal.style import TerminalStyle, terminal_console
from raison.show.text_formats import clean_text, count_with_noun

__all__ = ["print_heads"]

Side = Literal["left", "right"]  # where the cells of a column stand

IN_ASCII = (("α", "alpha"), ("λ", "lambda"), ("−", "-"), ("–", "-"))


def print_heads(selection: HeadSelection, console: Console | None = None) -> None:
    """Print how well each relation is found, the heads of every block, and the blocks that have none."""
    console = console or terminal_console()
    style = TerminalStyle.of(console)
    statistics = selection.statistics
    title = f"{statistics.model}{style.dot}{statistics.corpus}"
    print_padded_part(console, Text(title, style="bold"))
    for line in (f"pairs: from the {statistics.direction}", *selection.rules()):
        print_padded_part(console, Text(heads_text_for_stream(line, style), style="dim"))
    console.print()
    print_padded_part(console, terminal_relations_table(selection, style))
    console.print()
    print_padded_part(console, terminal_blocks_table(selection, style))
    console.print()
    print_head_warnings(selection, console, style)


def print_head_warnings(selection: HeadSelection, console: Console, style: TerminalStyle) -> None:
    """Print which texts were cut or left out, and which blocks have no head."""
    statistics = selection.statistics
    counts = [
        (statistics.texts_cut, "cut at the model's limit"),
        (statistics.texts_left_out, "left out"),
    ]
    for number, what in counts:
        if number:
            verb = "were" if number > 1 else "was"
            warning = f"{count_with_noun(number, 'text')} {verb} {what}"
            print_padded_part(console, Text(warning, style=style.warning))
    if selection.empty_blocks:
        warning = f"no head in {list_head_blocks(selection.empty_blocks)}"
        if not selection.top:
            warning += "; --top 1 gives every block its best"
        shown = heads_text_for_stream(warning, style)
        print_padded_part(console, Text(shown, style=style.warning))
        console.print()


def print_padded_part(console: Console, what: RenderableType) -> None:
    """Print between the margins."""
    console.print(Padding(what, (0, 1)))


def heads_text_for_stream(text: str, style: TerminalStyle) -> str:
    """The text for a stream that may lack Greek letters."""
    if style.ascii:
        for sign, word in IN_ASCII:
            text = text.replace(sign, word)
    return text


def empty_heads_table(columns: Sequence[tuple[str, Side]]) -> Table:
    """A table without rows, from names of columns and the sides where their cells stand."""
    table = empty_terminal_table()
    for name, side in columns:
        table.add_column(name, justify=side)
    return table


def terminal_relations_table(selection: HeadSelection, style: TerminalStyle) -> Table:
    """How often a fixed position finds each relation, and the head that finds it most often."""
    table = empty_heads_table(
        (
            ("relation", "left"),
            ("pairs", "right"),
            (heads_text_for_stream("max λ", style), "right"),
            ("best head", "left"),
        )
    )
    for relation in selection.statistics.relations:
        name = clean_text(relation.name)
        if not relation.pairs:
            table.add_row(name, "0", "", Text("no pair in the corpus", style="dim"))
            continue
        best = selection.statistics.best_head(relation)
        is_syntactic = best.alpha > relation.max_lambda + selection.syntactic_margin
        described = Text(heads_text_for_stream(str(best), style))
        if is_syntactic:
            described.style = "bold"
        table.add_row(name, str(relation.pairs), f"{relation.max_lambda:.2f}", described)
    return table


def terminal_blocks_table(selection: HeadSelection, style: TerminalStyle) -> Table:
    """The heads of every block: how many, what each looks at, and how often."""
    table = empty_heads_table(
        (
            ("block", "right"),
            ("heads", "right"),
            (heads_text_for_stream("syntactic heads, with α", style), "left"),
            (heads_text_for_stream("positional heads, with α", style), "left"),
        )
    )
    nothing = style.either("–", "-")
    for row, block in enumerate(selection.statistics.blocks):
        number = int(selection.any_kind[row].sum())
        syntactic = ", ".join(describe_syntactic_heads(selection, row))
        positional = ", ".join(describe_positional_heads(selection, row))
        cells = [
            str(number),
            heads_text_for_stream(syntactic, style) or nothing,
            heads_text_for_stream(positional, style) or nothing,
        ]
        cell_style = "" if number else "dim"
        table.add_row(block, *(Text(cell, style=cell_style) for cell in cells))
    return table


def describe_syntactic_heads(selection: HeadSelection, row: int) -> list[str]:
    """The syntactic heads of a block with the relations that they find, the clearest first."""
    statistics = selection.statistics
    chosen = np.flatnonzero(selection.syntactic[row]).tolist()
    chosen.sort(key=lambda head: -statistics.margins[row, head])
    described = []
    for head in chosen:
        relation = statistics.best_relation(row, head)
        described.append(
            f"{head}: {clean_text(relation)} {statistics.alpha(relation, row, head):.2f}"
        )
    return described


def describe_positional_heads(selection: HeadSelection, row: int) -> list[str]:
    """The positional heads of a block with the positions that they look at, the clearest first."""
    statistics = selection.statistics
    chosen = np.flatnonzero(selection.positional[row]).tolist()
    chosen.sort(key=lambda head: -statistics.shares[row, head])
    described = []
    for head in chosen:
        offset = signed_head_offset(int(statistics.offsets[row, head]))
        described.append(f"{head}: {offset} {statistics.shares[row, head]:.2f}")
    return described
