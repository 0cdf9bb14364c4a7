"""Rust's panics: how a tokenizer fails where it has no error to give, such as a pattern that backtracks for ever.

pyo3 raises them as a `BaseException`, so that `except Exception` lets them through, and Rust itself writes a line about
each to the standard error of the process. The class can't be imported: it is known by its name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from raison.core.errors import RaisonError

__all__ = [
    "failing_as",
    "is_panic",
    "no_lines_of_rust",
    "reason_of_library_failure",
    "unheard_panics",
]

_unheard: ContextVar[bool] = ContextVar("raison_unheard_panics", default=False)


def is_panic(error: BaseException) -> bool:
    """Whether Rust code gave up; Ctrl-C and the end of a program are not that."""
    return type(error).__name__ == "PanicException"


def reason_of_library_failure(error: BaseException) -> str:
    """What an exception of a library says, short enough for a sentence of ours."""
    return " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__


@contextmanager
def failing_as(failure: Callable[[str], RaisonError]) -> Iterator[None]:
    """Around a call of a library: whatever it raises becomes the error that `failure` makes of the reason."""
    try:
        with no_lines_of_rust():
            yield
    except (RaisonError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise failure(reason_of_library_failure(error)) from error


@contextmanager
def unheard_panics() -> Iterator[None]:
    """Keep Rust's lines about panics off the screen; for the command line, whose process is its own."""
    token = _unheard.set(True)
    try:
        yield
    finally:
        _unheard.reset(token)


@contextmanager
def no_lines_of_rust() -> Iterator[None]:
    """Nothing reaches standard error inside the block, if `unheard_panics` was asked for: Rust has no quieter way."""
    kept = copy_of_stderr_for_panics() if _unheard.get() else None
    if kept is None:
        yield
        return
    if sys.stderr is not None:
        sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def copy_of_stderr_for_panics() -> int | None:
    """Another number for standard error; None where it is closed."""
    try:
        return os.dup(2)
    except OSError:
        return None
