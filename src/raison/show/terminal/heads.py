"""Attention heads that matter, in the terminal: how well relations are found, and the heads of every block."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from raison.show.head_selection import HeadSelection, list_head_blocks, signed_head_offset
from raison.show.terminal.style import TerminalStyle, terminal_console
from raison.show.text_formats import clean_text

__all__ = ["print_heads"]

IN_ASCII = (("α", "alpha"), ("λ", "lambda"), ("−", "-"), ("–", "-"))


def print_heads(selection: HeadSelection, console: Console | None = None) -> None:
    """Print how well each relation is found, the heads of every block, and the blocks that have none."""
    console = console or terminal_console()
    look = TerminalStyle.of(console)
    statistics = selection.statistics
    print_padded_part(
        console, Text(f"{statistics.model}{look.dot}{statistics.corpus}", style="bold")
    )
    for line in (f"pairs: from the {statistics.direction}", *selection.rules()):
        print_padded_part(console, Text(heads_text_for_stream(line, look), style="dim"))
    console.print()
    print_padded_part(console, terminal_relations_table(selection, look))
    console.print()
    print_padded_part(console, terminal_blocks_table(selection, look))
    console.print()

    for number, what in (
        (statistics.texts_cut, "cut at the model's limit"),
        (statistics.texts_left_out, "left out"),
    ):
        if number:
            verb = "s were" if number > 1 else " was"
            print_padded_part(console, Text(f"{number} text{verb} {what}", style=look.warning))
    if selection.empty_blocks:
        hint = "" if selection.top else "; --top 1 gives every block its best"
        warning = f"no head in {list_head_blocks(selection.empty_blocks)}{hint}"
        print_padded_part(console, Text(heads_text_for_stream(warning, look), style=look.warning))
        console.print()


def print_padded_part(console: Console, what: RenderableType) -> None:
    console.print(Padding(what, (0, 1)))


def heads_text_for_stream(text: str, look: TerminalStyle) -> str:
    """The text for a stream that may lack Greek letters."""
    if look.ascii:
        for sign, word in IN_ASCII:
            text = text.replace(sign, word)
    return text


def empty_heads_table(columns: Sequence[tuple[str, bool]]) -> Table:
    """A table without rows, from names of columns and whether they hold numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for name, is_number in columns:
        table.add_column(name, justify="right" if is_number else "left")
    return table


def terminal_relations_table(selection: HeadSelection, look: TerminalStyle) -> Table:
    """How often a fixed position finds each relation, and the head that finds it most often."""
    table = empty_heads_table(
        (
            ("relation", False),
            ("pairs", True),
            (heads_text_for_stream("max λ", look), True),
            ("best head", False),
        )
    )
    for relation in selection.statistics.relations:
        name = clean_text(relation.name)
        if not relation.pairs:
            table.add_row(name, "0", "", Text("no pair in the corpus", style="dim"))
            continue
        best = selection.statistics.best_head(relation)
        is_syntactic = best.alpha > relation.max_lambda + selection.syntactic_margin
        described = Text(
            heads_text_for_stream(str(best), look), style="bold" if is_syntactic else ""
        )
        table.add_row(name, str(relation.pairs), f"{relation.max_lambda:.2f}", described)
    return table


def terminal_blocks_table(selection: HeadSelection, look: TerminalStyle) -> Table:
    """The heads of every block: how many, what each looks at, and how often."""
    syntactic_title = heads_text_for_stream("syntactic heads, with α", look)
    positional_title = heads_text_for_stream("positional heads, with α", look)
    table = empty_heads_table(
        (("block", True), ("heads", True), (syntactic_title, False), (positional_title, False))
    )
    nothing = look.either("–", "-")
    for row, block in enumerate(selection.statistics.blocks):
        number = int(selection.any_kind[row].sum())
        style = "" if number else "dim"
        syntactic = ", ".join(describe_syntactic_heads(selection, row))
        positional = ", ".join(describe_positional_heads(selection, row))
        table.add_row(
            block,
            Text(str(number), style=style),
            Text(heads_text_for_stream(syntactic, look) or nothing, style=style),
            Text(heads_text_for_stream(positional, look) or nothing, style=style),
        )
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
