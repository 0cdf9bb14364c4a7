"""The `raison` command: all subcommands put together, errors as sentences, closed streams, exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, TypeAlias

import typer

from raison import __version__
from raison.core.errors import RaisonError, out_of_memory

__all__ = ["app", "assemble", "guarded", "main"]

Command: TypeAlias = Callable[..., None]

app = typer.Typer(
    name="raison",
    help="Why did the model predict this, and can you trust the answer?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def say_on_stderr(sentence: str) -> None:
    """One sentence on stderr; whatever a label or file name holds, it can't command the terminal."""
    from raison.show.text_formats import clean_text

    print(f"raison: {clean_text(sentence)}", file=sys.stderr)


def guarded(command: Command) -> Command:
    """Turn whatever goes wrong in a command into one sentence and an exit code, never a traceback."""

    @wraps(command)
    def run(*args: object, **kwargs: object) -> None:
        from raison.models.panics import is_panic, unheard

        try:
            with unheard():
                command(*args, **kwargs)
            sys.stdout.flush()  # a full disk is told now, not when Python ends
        except RaisonError as error:
            if os.environ.get("RAISON_DEBUG") and error.__cause__ is not None:
                raise
            say_on_stderr(str(error))
            raise SystemExit(error.exit_code) from None
        except KeyboardInterrupt:
            say_on_stderr("interrupted.")
            raise SystemExit(130) from None
        except BrokenPipeError:
            # the reader of our output has gone, as in `raison ls methods | head -1`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(0) from None
        except OSError as error:
            drop_unwritten_output()
            place = f": {error.filename}" if error.filename else ""
            say_on_stderr(f"{error.strerror or error}{place}.")
            raise SystemExit(1) from None
        except (typer.Exit, typer.Abort):
            raise
        except BaseException as error:
            if not isinstance(error, Exception) and not is_panic(error):
                raise
            if out_of_memory(error):
                say_on_stderr("out of memory: shorten the text or use a smaller model.")
                raise SystemExit(1) from None
            if os.environ.get("RAISON_DEBUG"):
                raise
            say_on_stderr(
                f"something unexpected happened ({type(error).__name__}: {error}): set RAISON_DEBUG=1 to see where, "
                "and please report it."
            )
            raise SystemExit(1) from None

    return run


def drop_unwritten_output() -> None:
    """What could not be written to standard output is not tried again at the end, where nobody can tell it."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit()


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Why did the model predict this, and can you trust the answer?"""


def assemble() -> None:
    """Put the commands into the app."""
    from raison.cli import (
        audit,
        compatibility,
        evaluate,
        explain,
        heads,
        idf,
        ls,
        rationalize,
        reproduce,
        run,
        serve,
        show,
        train_classifier,
        train_compatibility,
        train_rationalizer,
    )

    if not app.registered_commands:
        app.command("explain")(guarded(explain.explain_command))
        app.command("rationalize")(guarded(rationalize.rationalize_command))
        app.command("evaluate")(guarded(evaluate.evaluate_command))
        app.command("compare")(guarded(evaluate.compare_command))
        app.command("heads")(guarded(heads.heads_command))
        app.command("idf")(guarded(idf.idf_command))
        app.command("reproduce")(guarded(reproduce.reproduce_command))
        app.command("compatibility")(guarded(compatibility.compatibility_command))
        app.command("audit")(guarded(audit.audit_command))
        app.command("ls")(guarded(ls.ls_command))
        app.command("show")(guarded(show.show_command))
        app.command("serve")(guarded(serve.serve_command))
        app.command("run")(guarded(run.run_command))
        app.command("status")(guarded(run.status_command))
        app.command("report")(guarded(run.report_command))
        store = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
        store.command("verify")(guarded(run.verify_command))
        store.command("repair")(guarded(run.repair_command))
        store.command("compact")(guarded(run.compact_command))
        store.command("export")(guarded(run.export_command))
        store.command("query")(guarded(run.query_command))
        app.add_typer(store, name="store", help="Look into the results of a run.")
        training = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
        training.command("compatibility")(guarded(train_compatibility.train_compatibility_command))
        training.command("classifier")(guarded(train_classifier.train_classifier_command))
        training.command("rationalizer")(guarded(train_rationalizer.train_rationalizer_command))
        app.add_typer(training, name="train", help="Train models that can be explained better.")


def main() -> None:
    """Entry point of the installed command."""
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(
                errors="replace"
            )  # a terminal without Unicode shows ? instead of failing
    assemble()
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
