"""An audit of attention in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raison.show.audit import AuditReport, audit_rows
from raison.show.scoreboard import warning_of_few
from raison.show.wording import clean

__all__ = ["render_audit"]


def render_audit(audit: AuditReport, console: Console) -> None:
    """Print the verdict first, then the numbers that carry it."""
    *reasons, verdict = audit.verdict()
    console.print(Text(clean(verdict), style="bold"))
    for reason in reasons:
        console.print(Text(f"  {clean(reason)}"))

    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    table.add_column(clean(f"{audit.model} on {audit.data}"))
    table.add_column("", justify="right")
    table.add_column("")
    for row in audit_rows(audit):
        table.add_row(clean(row.name), row.value, Text(clean(row.about), style="dim"))
    console.print()
    console.print(table)
    for note in [*audit.notes, *warning_of_few(audit.count)]:
        console.print(Text(clean(note), style="dim"))
