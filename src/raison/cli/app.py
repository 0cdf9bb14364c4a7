"""The `raison` command and what all of its subcommands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, TypeVar

import typer

from raison import __version__
from raison.core.errors import RaisonError, out_of_memory

__all__ = ["app", "assemble", "guarded", "main"]

F = TypeVar("F", bound=Callable[..., Any])

app = typer.Typer(
    name="raison",
    help="Why did the model predict this, and can you trust the answer?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def say(sentence: str) -> None:
    """One sentence on stderr; whatever a label or file name holds, it can't command the terminal."""
    from raison.show.text_formats import clean_text

    print(f"raison: {clean_text(sentence)}", file=sys.stderr)


def guarded(command: F) -> F:
    """Turn whatever goes wrong in a command into one sentence and an exit code, never a traceback."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        from raison.models.panics import is_panic, unheard

        try:
            with unheard():
                found = command(*args, **kwargs)
            sys.stdout.flush()  # a full disk is told now, not when Python ends
            return found
        except RaisonError as error:
            if os.environ.get("RAISON_DEBUG") and error.__cause__ is not None:
                raise
            say(str(error))
            raise SystemExit(error.exit_code) from None
        except KeyboardInterrupt:
            say("interrupted.")
            raise SystemExit(130) from None
        except (
            BrokenPipeError
        ):  # the reader of our output has gone, as in `raison ls methods | head -1`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(0) from None
        except OSError as error:
            unheard()
            say(
                f"{error.strerror or error}: {error.filename}."
                if error.filename
                else f"{error.strerror or error}."
            )
            raise SystemExit(1) from None
        except (typer.Exit, typer.Abort):
            raise
        except BaseException as error:
            if not isinstance(error, Exception) and not is_panic(error):
                raise
            if out_of_memory(error):
                say("out of memory: shorten the text or use a smaller model.")
                raise SystemExit(1) from None
            if os.environ.get("RAISON_DEBUG"):
                raise
            say(
                f"something unexpected happened ({type(error).__name__}: {error}): set RAISON_DEBUG=1 to see where, "
                "and please report it."
            )
            raise SystemExit(1) from None

    return run  # type: ignore[return-value]


def unheard() -> None:
    """What could not be written to standard output is not tried again at the end, where nobody can tell it."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit()


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Show the version.")
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
        app.command("explain")(guarded(explain.explain))
        app.command("rationalize")(guarded(rationalize.rationalize))
        app.command("evaluate")(guarded(evaluate.evaluate))
        app.command("compare")(guarded(evaluate.compare))
        app.command("heads")(guarded(heads.heads))
        app.command("idf")(guarded(idf.idf))
        app.command("reproduce")(guarded(reproduce.reproduce))
        app.command("compatibility")(guarded(compatibility.compatibility))
        app.command("audit")(guarded(audit.audit))
        app.command("ls")(guarded(ls.ls))
        app.command("show")(guarded(show.show))
        app.command("serve")(guarded(serve.serve))
        app.command("run")(guarded(run.run))
        app.command("status")(guarded(run.status))
        app.command("report")(guarded(run.report))
        store = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
        for verb in (run.verify, run.repair, run.compact, run.export, run.query):
            store.command(verb.__name__)(guarded(verb))
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
