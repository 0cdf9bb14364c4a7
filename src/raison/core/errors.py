"""Errors that a user can cause and mend: InputError, ModelError, Unsupported; lack of memory; near-miss suggestions
of names.

Every message is one sentence that says what is wrong and what to do; the command line prints it and
exits, so nobody has to read a traceback to learn that a word was misspelt.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "DataWarning",
    "DownloadError",
    "InputError",
    "MethodFailed",
    "MissingExtra",
    "ModelError",
    "RaisonError",
    "TooLong",
    "UnknownName",
    "Unsupported",
    "first_line_of",
    "out_of_memory",
    "suggest_name",
]


class RaisonError(Exception):
    """The base of every error a user can cause."""

    exit_code = 1


class InputError(RaisonError):
    """A text, target, unit or option that can't be used as given."""

    exit_code = 2


class DataWarning(UserWarning):
    """A file that may have been understood wrongly; the message says how to say what is meant."""


class UnknownName(InputError):
    """A name that no registry knows; the message suggests the nearest one."""


class TooLong(InputError):
    """A text that exceeds what the model can read."""


class Unsupported(RaisonError):
    """A method that needs what this model can't offer, or a model that no task fits."""


class MethodFailed(RaisonError):
    """A method that raised what is no sentence for a user."""


class ModelError(RaisonError):
    """A model that can't be found, opened or trusted."""


class DownloadError(ModelError):
    """A catalog model that could not be fetched or verified."""


class MissingExtra(RaisonError):
    """An optional dependency that is not installed; the message names the extra."""

    def __init__(self, package: str, extra: str, purpose: str):
        super().__init__(
            f"{purpose} needs the package {package!r}: install it with  pip install 'raison[{extra}]'."
        )


# the last is oneDNN's
MEMORY_ERRORS = (
    "can't allocate memory",
    "out of memory",
    "could not create a primitive",
)


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory was too small, in whatever words."""
    message = str(error)
    return isinstance(error, MemoryError) or any(words in message for words in MEMORY_ERRORS)


def first_line_of(error: BaseException) -> str:
    """The first line of an error's message, or its name where it has none."""
    lines = str(error).splitlines()
    if not lines:
        return type(error).__name__
    return lines[0]


def suggest_name(name: str, known: Iterable[str]) -> str:
    """` Did you mean …?` for a near miss, else nothing."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""
