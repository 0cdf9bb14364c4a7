"""Failures of a model or a method: which error is raised, and which methods are switched off for a model.

A method that fails on a plain sentence, too, can't follow this model at all: it is switched off for it. One that fails
on a single text is not.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, MutableMapping
from weakref import WeakKeyDictionary

from raison.core.errors import MethodFailed, ModelError, RaisonError, out_of_memory
from raison.methods.base import Method
from raison.models.protocol import Model

__all__ = ["forget_failures", "method_failed", "model_failed", "refuse_failed_method"]

LENGTH = 200  # characters of an error that are repeated
_switched_off: MutableMapping[Model, dict[str, str]] = WeakKeyDictionary()


def refuse_failed_method(method: Method, model: Model) -> None:
    """Raise at once where a method is switched off for a model."""
    sentence = _switched_off.get(model, {}).get(method.name)
    if sentence is not None:
        raise MethodFailed(sentence)


def forget_failures(model: Model) -> None:
    """Switch every method on again: in a run no text may depend on those before it."""
    _switched_off.pop(model, None)


def model_failed(model: Model, error: Exception) -> Exception:
    """The error to raise when a model could not even read a text."""
    if isinstance(error, RaisonError) or out_of_memory(error):
        return error
    reason = error_in_few_words(error)
    return ModelError(
        f"{model.name} fails on this text ({reason}): shorten or change it (RAISON_DEBUG=1 shows where)."
    )


def method_failed(
    model: Model, method: Method, error: Exception, plain: Callable[[], object]
) -> Exception:
    """The error to raise when a method failed; `plain` explains a plain sentence in the same way."""
    if isinstance(error, RaisonError) or out_of_memory(error):
        return error
    if type(method).__module__.partition(".")[0] != "raison":
        return MethodFailed(sentence_of_foreign_failure(method, error))
    try:
        plain()
    except Exception as again:
        if out_of_memory(again):
            return again
        sentence = (
            f"{method.name} can't follow {model.name} ({error_in_few_words(again)}) and is switched off for it: choose "
            "another method (RAISON_DEBUG=1 shows where it fails; please report it)."
        )
        _switched_off.setdefault(model, {})[method.name] = sentence
        return MethodFailed(sentence)
    return MethodFailed(
        f"{method.name} fails on this text with {model.name} ({error_in_few_words(error)}): choose another method ("
        "RAISON_DEBUG=1 shows where it fails; please report it)."
    )


def error_in_few_words(error: BaseException) -> str:
    """An error in a few words, on one line."""
    message = f"{type(error).__name__}: {error}"
    on_one_line = " ".join(message.split())
    return on_one_line[:LENGTH].rstrip(" :.")


def sentence_of_foreign_failure(method: Method, error: Exception) -> str:
    """What went wrong in a method that somebody else wrote, and where."""
    module = sys.modules[type(method).__module__]
    file = module.__dict__.get("__file__")
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == file:  # the last one counts
            name = os.path.basename(frame.filename)
            place = f" in line {frame.lineno} of {name}"
    message = f"{type(error).__name__}: {error}"
    return f"The method {method.name!r} failed{place} ({message}): it is not raison's own, mend it there."
