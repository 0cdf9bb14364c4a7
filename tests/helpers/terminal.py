"""What explanations look like in a terminal, as text."""

from __future__ import annotations

import io
import re

from rich.console import Console

from raison.show import render, render_many

__all__ = ["bare", "coloured", "flat", "show", "show_difference"]


def show(what, width=100, *, paper=None, difference=False, **options):
    """One explanation or a list of them as a console prints it."""
    console = Console(file=io.StringIO(), width=width, _environ={}, **options)
    if isinstance(what, list):
        render_many(what, console, paper=paper, difference=difference)
    else:
        render(what, console, paper=paper)
    return console.file.getvalue()


def coloured(what, **options):
    return show(what, force_terminal=True, color_system="truecolor", **options)


def show_difference(methods, width=100, **options):
    return show(methods, width, paper="dark", difference=True, **options)


def bare(output):
    """Without the codes of colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", output)


def flat(output):
    """On one line, with single spaces."""
    return " ".join(output.split())
