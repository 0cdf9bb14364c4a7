"""The agreement of methods in the terminal: a statement, a list or square of all pairs, and footnotes."""

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
    MethodPair,
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

    def number(self, pair: MethodPair, measure: str) -> str:
        """One measure of a pair, as it is printed."""
        agreement = self.agreements[pair]
        if measure == "shared":
            if agreement.shared is None:
                return "-"
            return f"{agreement.shared} of {count_of_strongest_units(self.size)}"
        correlations = {"tau": agreement.tau, "rho": agreement.rho, "r": agreement.r}
        correlation = correlations[measure]
        if correlation is None:
            return "-"
        return signed_correlation(correlation)

    def emphasis(self, pair: MethodPair) -> Style:
        """Pairs that are alike stand out."""
        tau = self.agreements[pair].tau
        if tau is None or tau < least_tau_alike(self.size):
            return Style.null()
        return Style(bold=True)


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

    def tau_of_pair(pair: MethodPair) -> float:
        return agreement_tau_for_sorting(tables.agreements[pair])

    pairs = sorted(tables.agreements, key=tau_of_pair, reverse=True)
    widths = {}
    for measure, title in TITLES.items():
        numbers = [tables.number(pair, measure) for pair in pairs]
        widths[measure] = widest_line([title, *numbers]) + GAP
    first = widest_line([tables.names[one] for one, _ in pairs])
    second = widest_line([tables.names[other] for _, other in pairs])

    beside = first + GAP + second + sum(widths.values()) <= tables.width
    names_width = first
    if not beside:
        names_width = max(first, second)
        drop_agreement_measures(widths, tables.width - names_width)
    room_for_names = tables.width - sum(widths.values())
    names_width = min(max(names_width, len(CORNER)), room_for_names)

    titles = [TITLES[measure] for measure in widths]
    corner = CORNER[:names_width]
    if beside:
        table = bare_terminal_table(corner, "", *titles)
        table.columns[1].justify = "left"
    else:
        table = bare_terminal_table(corner, *titles)

    dots = tables.style.either("…", "~")
    for pair in pairs:
        cells = []
        for place in pair:
            name = tables.names[place]
            cells.append(short_name(name, len(name) if beside else names_width, dots))
        if not beside:
            cells = ["\n".join(cells)]
        cells += [tables.number(pair, measure) for measure in widths]
        table.add_row(*cells, style=tables.emphasis(pair))
    return table


def agreement_tau_for_sorting(agreement: MethodAgreement) -> float:
    """The tau-b of a pair; pairs without a number come last."""
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
    title_below = measures[below].ascii_title
    title_above = measures[above].ascii_title
    titles = f"{title_below} below the diagonal, {title_above} above"
    yield Text(titles, "dim", overflow="fold")

    digits = len(str(len(tables.names)))
    longest = max(8, tables.width // 3)
    dots = tables.style.either("…", "~")
    labels = []
    for place, name in enumerate(tables.names, start=1):
        labels.append(f"{place:{digits}} {short_name(name, longest, dots)}")

    room = tables.width - widest_line(labels) - GAP
    widths = [SQUARE_COLUMN] * len(labels)
    for group in columns_side_by_side(widths, room):
        titles_of_group = [str(place + 1) for place in group]
        table = bare_terminal_table("", *titles_of_group)
        for column in table.columns[1:]:
            column.width = SQUARE_COLUMN
        for row, label in enumerate(labels):
            cells = [Text(label)]
            for place in group:
                cells.append(agreement_square_cell(tables, row, place, below=below, above=above))
            table.add_row(*cells)
        yield table
        yield Text(" ")


def agreement_square_cell(
    tables: TerminalAgreementTables, row: int, column: int, *, below: str, above: str
) -> Text:
    """The measure of a method with another; a dot on the diagonal."""
    if row == column:
        return Text(tables.style.either("·", "."), "dim")
    pair = min(row, column), max(row, column)
    measure = below if column < row else above
    number, _, _ = tables.number(pair, measure).partition(" ")  # without `of 3`
    return Text(number, tables.emphasis(pair))
