"""The progress line on stderr while a command is waiting, and libraries that are kept quiet."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from raison.core.errors import DataWarning

__all__ = ["waiting"]


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """Show progress of everything inside; yields a function that names the present step.

    Nothing is shown where stderr is no terminal, so that logs stay clean.
    """
    quiet()
    if not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    from raison.core import progress

    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(24),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)

        doing = what

        def step(name: str) -> None:
            nonlocal doing
            doing = name
            bar.update(task, description=name, total=None, completed=0)

        def listener(done: int, total: int, said: str) -> None:
            named = doing if said in ("tokens", "texts") else f"{doing}: {said}"
            bar.update(task, description=named, completed=done, total=total or None)

        def hearer(sentence: str) -> None:
            console.print(sentence, style="dim", markup=False, highlight=False)

        with progress.listen(listener), progress.hear(hearer):
            yield step


def quiet() -> None:
    """Keep the libraries' own bars and notices off the screen; errors still arrive as sentences."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # threads that spin while they wait make a small model many times slower on a busy machine
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    warnings.simplefilter("ignore")
    warnings.filterwarnings(
        "always", category=DataWarning
    )  # what is said about the user's own data
    warnings.showwarning = show_note_beside_progress


def show_note_beside_progress(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as one sentence, without the line of code that gave it."""
    print(f"note: {message}", file=sys.stderr)
