"""The compatibility report in the terminal: perplexity of subsets of the context, and sentences on other tests."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raison.show.compatibility_report import (
    CompatibilityReport,
    MarginalisedToken,
    RepeatedAtPosition,
    subset_size_in_words,
)
from raison.show.text_formats import clean_text

__all__ = ["print_compatibility"]


def print_compatibility(report: CompatibilityReport, console: Console) -> None:
    """Print the verdict first, then the numbers that carry it."""
    style = "bold" if report.trusted else "bold yellow"
    console.print(Text(clean_text(report.verdict), style=style))
    console.print()
    console.print(terminal_subset_table(report))
    if report.repetition:
        console.print()
        console.print(sentence_on_repetition(report.repetition))
    likeliest = [token for token in report.truth if token.kind == "likeliest"]
    if likeliest:
        console.print(sentence_on_truth(likeliest))


def terminal_subset_table(report: CompatibilityReport) -> Table:
    """Perplexity by the number of kept tokens, and that of frequencies alone."""
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    for name in ("kept tokens", "perplexity", "95 % interval", "places"):
        table.add_column(name, justify="right")
    for subset in report.subsets:
        size = subset_size_in_words(subset)
        perplexity = f"{subset.perplexity:,.1f}"
        interval = f"{subset.low:,.1f} … {subset.high:,.1f}"
        table.add_row(size, perplexity, interval, str(subset.count))
    table.add_row("none", f"{report.guess:,.1f}", "frequencies alone", "")
    return table


def sentence_on_repetition(repetition: Sequence[RepeatedAtPosition]) -> str:
    """How likely the model finds a word after itself."""
    first, last = repetition[0], repetition[-1]
    most = max(repeated.beside_another or 0.0 for repeated in repetition)
    return (
        f"a word after itself: {first.alone:.3f} at the start, {last.alone:.3f} alone at position "
        f"{last.position}, {most:.3f} at most beside another word"
    )


def sentence_on_truth(tokens: Sequence[MarginalisedToken]) -> str:
    """How far probabilities with a token left out are from the truth."""
    distances = [abs(token.true - token.masked) for token in tokens]
    covered = sum(token.covered for token in tokens) / len(tokens)
    apart = sum(distances) / len(tokens)
    return (
        f"a token left out against marginalised out: {apart:.3f} apart on average "
        f"({len(tokens)} contexts; {covered:.0%} of the mass summed over)"
    )
