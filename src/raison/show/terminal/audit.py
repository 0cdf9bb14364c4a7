"""An audit of attention in the terminal: the verdict, its reasons, and a table of all numbers."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raison.show.audit_rows import AuditReport, audit_rows
from raison.show.evaluation_tables import warning_of_few_evaluated_texts
from raison.show.text_formats import clean_text

__all__ = ["print_audit"]


def print_audit(audit: AuditReport, console: Console) -> None:
    """Print the verdict first, then the numbers that carry it."""
    *reasons, verdict = audit.verdict()
    console.print(Text(clean_text(verdict), style="bold"))
    for reason in reasons:
        console.print(Text(f"  {clean_text(reason)}"))

    console.print()
    console.print(terminal_audit_table(audit))
    for note in [*audit.notes, *warning_of_few_evaluated_texts(audit.count)]:
        console.print(Text(clean_text(note), style="dim"))


def terminal_audit_table(audit: AuditReport) -> Table:
    """All numbers, and what they are about."""
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    table.add_column(clean_text(f"{audit.model} on {audit.data}"))
    table.add_column("", justify="right")
    table.add_column("")
    for row in audit_rows(audit):
        name = clean_text(row.name)
        about = Text(clean_text(row.about), style="dim")
        table.add_row(name, row.value, about)
    return table
