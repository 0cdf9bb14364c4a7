"""Whatever goes wrong in a command becomes one sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import TypeAlias

import typer

from raison.core.errors import RaisonError, out_of_memory

__all__ = ["guarded"]

Command: TypeAlias = Callable[..., None]


def say_on_stderr(sentence: str) -> None:
    """One sentence on stderr; whatever a label or file name holds, it can't command the terminal."""
    from raison.show.text_formats import clean_text

    print(f"raison: {clean_text(sentence)}", file=sys.stderr)


def guarded(command: Command) -> Command:
    """Turn whatever goes wrong in a command into one sentence and an exit code, never a traceback."""

    @wraps(command)
    def run(*args: object, **kwargs: object) -> None:
        from raison.models.panics import is_panic, unheard_panics

        try:
            with unheard_panics():
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
            guard_against_unwritten_output()
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


def guard_against_unwritten_output() -> None:
    """What could not be written to standard output is not tried again at the end, where nobody can tell it."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
