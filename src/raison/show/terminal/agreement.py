"""How far methods agree, in the terminal: in words, in numbers for every pair, and what the numbers mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from raison.core.records import Explanation
from raison.show.agreement_measures import (
    MethodAgreement,
    PairAgreements,
    agreement_of_pairs,
    count_of_strongest_units,
    least_tau_alike,
)
from raison.show.agreement_sentences import (
    agreement_footnotes,
    measures_of_agreement,
    method_titles,
    signed_correlation,
    statement_of_agreement,
)
from raison.show.terminal.columns import GAP, bare_terminal_table, columns_side_by_side, widest_line
from raison.show.terminal.style import TerminalStyle
from raison.show.text_formats import short_name

__all__ = ["terminal_agreement"]

MOST_PAIRS = 10  # in a list; more make a square
SQUARE_COLUMN = 5  # cells of a column of the square
CORNER = "agreement"
TITLES = {"shared": "strongest", "tau": "tau-b", "rho": "rho", "r": "r"}


@dataclass(frozen=True)
class TerminalAgreementTables:
    """What the tables of agreement show, and how much room they have."""

    names: list[str]  # of the methods
    agreements: PairAgreements
    size: int  # units
    style: TerminalStyle
    width: int

    def number(self, pair: tuple[int, int], measure: str) -> str:
        """One measure of a pair, as it is printed."""
        agreement = self.agreements[pair]
        if measure == "shared":
            return (
                "-"
                if agreement.shared is None
                else f"{agreement.shared} of {count_of_strongest_units(self.size)}"
            )
        correlation = {"tau": agreement.tau, "rho": agreement.rho, "r": agreement.r}[measure]
        return "-" if correlation is None else signed_correlation(correlation)

    def emphasis(self, pair: tuple[int, int]) -> Style:
        """Pairs that are alike stand out."""
        tau = self.agreements[pair].tau
        return (
            Style(bold=True)
            if tau is not None and tau >= least_tau_alike(self.size)
            else Style.null()
        )


def terminal_agreement(
    explanations: Sequence[Explanation], style: TerminalStyle, width: int
) -> Iterator[RenderableType]:
    """Who agrees with whom in a sentence, the numbers of all pairs, and what they mean."""
    agreements = agreement_of_pairs([explanation.scores for explanation in explanations])
    yield Text(statement_of_agreement(explanations, agreements), "bold", overflow="fold")
    if all(agreement.tau is None for agreement in agreements.values()):
        return

    yield Text(" ")
    tables = TerminalAgreementTables(
        names=method_titles(explanations),
        agreements=agreements,
        size=len(explanations[0].units),
        style=style,
        width=width,
    )
    if len(agreements) <= MOST_PAIRS:
        yield terminal_agreement_pairs(tables)
    else:
        yield from terminal_agreement_squares(tables, below="tau", above="shared")
        yield from terminal_agreement_squares(tables, below="rho", above="r")

    sentences = agreement_footnotes(explanations, agreements)
    if sentences:
        yield Text(" ".join(sentences), "dim", overflow="fold")


# -- a list of pairs ----------------------------------------------------------------------------------------


def terminal_agreement_pairs(tables: TerminalAgreementTables) -> Table:
    """One row for each pair, the most alike first; where room is scarce names stand above each other, and the measures
    are fewer."""
    pairs = sorted(
        tables.agreements,
        key=lambda pair: agreement_tau_for_sorting(tables.agreements[pair]),
        reverse=True,
    )
    widths = {}
    for measure, title in TITLES.items():
        widths[measure] = (
            widest_line([title, *(tables.number(pair, measure) for pair in pairs)]) + GAP
        )
    first = widest_line([tables.names[one] for one, _ in pairs])
    second = widest_line([tables.names[other] for _, other in pairs])

    beside = first + GAP + second + sum(widths.values()) <= tables.width
    names_width = first if beside else max(first, second)
    if not beside:
        drop_agreement_measures(widths, tables.width - names_width)
    names_width = min(max(names_width, len(CORNER)), tables.width - sum(widths.values()))

    measures = list(widths)
    titles = [TITLES[measure] for measure in measures]
    corner = [CORNER[:names_width], ""] if beside else [CORNER[:names_width]]
    table = bare_terminal_table(*corner, *titles)
    if beside:
        table.columns[1].justify = "left"
    dots = tables.style.either("…", "~")
    for pair in pairs:
        names = []
        for place in pair:
            name = tables.names[place]
            names.append(short_name(name, len(name) if beside else names_width, dots))
        numbers = [tables.number(pair, measure) for measure in measures]
        cells = names if beside else ["\n".join(names)]
        table.add_row(*cells, *numbers, style=tables.emphasis(pair))
    return table


def agreement_tau_for_sorting(agreement: MethodAgreement) -> float:
    """Pairs without a number come last."""
    return -2.0 if agreement.tau is None else agreement.tau


def drop_agreement_measures(widths: dict[str, int], room: int) -> None:
    """Leave out measures until the others fit; the strongest units in common always stay."""
    for measure in ("r", "rho", "tau"):
        if sum(widths.values()) > room:
            widths.pop(measure)


# -- a square of methods ------------------------------------------------------------------------------------


def terminal_agreement_squares(
    tables: TerminalAgreementTables, *, below: str, above: str
) -> Iterator[RenderableType]:
    """Methods down and across: one measure below the diagonal, another above."""
    measures = measures_of_agreement(tables.size)
    titles = (
        f"{measures[below].ascii_title} below the diagonal, {measures[above].ascii_title} above"
    )
    yield Text(titles, "dim", overflow="fold")

    digits = len(str(len(tables.names)))
    room = max(8, tables.width // 3)
    labels = []
    for place, name in enumerate(tables.names, start=1):
        labels.append(f"{place:{digits}} {short_name(name, room, tables.style.either('…', '~'))}")

    room_for_columns = tables.width - widest_line(labels) - GAP
    for group in columns_side_by_side([SQUARE_COLUMN] * len(labels), room_for_columns):
        table = bare_terminal_table("", *(str(place + 1) for place in group))
        for column in table.columns[1:]:
            column.width = SQUARE_COLUMN
        for row, label in enumerate(labels):
            cells = [
                agreement_square_cell(tables, row, place, below=below, above=above)
                for place in group
            ]
            table.add_row(Text(label), *cells)
        yield table
        yield Text(" ")


def agreement_square_cell(
    tables: TerminalAgreementTables, row: int, column: int, *, below: str, above: str
) -> Text:
    if row == column:
        return Text(tables.style.either("·", "."), "dim")
    pair = min(row, column), max(row, column)
    number = tables.number(pair, below if column < row else above)
    return Text(number.partition(" ")[0], tables.emphasis(pair))  # without `of 3`
