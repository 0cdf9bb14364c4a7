"""The `raison` command: its app, its version, and standard streams that the shell closed."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from raison import __version__
from raison.cli.commands import MainCommands

__all__ = ["app", "main"]

app = typer.Typer(
    cls=MainCommands,
    name="raison",
    help="Why did the model predict this, and can you trust the answer?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def show_version_of_command(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit()


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=show_version_of_command, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Why did the model predict this, and can you trust the answer?"""


def main() -> None:
    """Entry point of the installed command."""
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(
                errors="replace"
            )  # a terminal without Unicode shows ? instead of failing
    app()


def open_closed_streams() -> None:
    """Let standard streams that the shell closed (`2>&-`) lead nowhere.

    The next file that is opened would take the number of a closed one, and get what libraries print. Standard input
    stays None for Python, so that reading a text from it is refused.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)  # gets this number, the lowest that is free
            os.set_inheritable(nowhere, True)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
