"""Results that were saved: what a file holds, and how it becomes a picture, a page or a piece of LaTeX."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from raison.core import limits
from raison.core.artifact import Artifact
from raison.core.errors import InputError
from raison.core.evaluation import Evaluation
from raison.core.outputs import replacing
from raison.core.records import Explanation
from raison.show.head_selection import HeadSelection, HeadStatistics

__all__ = ["chosen", "draw", "read_saved", "whole"]

ENDINGS = (".svg", ".png", ".pdf", ".tex", ".html")


def read_saved(path: Path) -> Any:
    """Explanations (one JSON object in each line, or a list), an evaluation, or the heads of a model."""
    try:
        with path.open("rb") as file:
            text = limits.read(file, limits.FILE, repr(str(path))).decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}: check the path.") from None
    except UnicodeDecodeError:
        raise InputError(f"{str(path)!r} holds no text: name a file that raison wrote with --out.") from None
    except OSError as error:
        raise InputError(f"{str(path)!r} can't be read ({error}): name a file that raison wrote.") from None
    try:
        whole = parsed(text)
        if isinstance(whole, dict) and "cells" in whole:
            return Evaluation.from_dict(whole)
        if isinstance(whole, dict) and whole.get("kind") == "heads":
            return Artifact.from_dict(whole)
        found = [Explanation.from_dict(each) for each in (whole if isinstance(whole, list) else [whole])]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InputError) as error:
        told = "it holds no JSON" if isinstance(error, json.JSONDecodeError) else str(error)[:120].rstrip(".")
        raise InputError(
            f"{str(path)!r} is no result of raison ({told}): name a file that explain, rationalize, evaluate or heads "
            "wrote with --out."
        ) from None
    if not found:
        raise InputError(f"{str(path)!r} holds no explanation: name a file that does.")
    return found


def parsed(text: str) -> Any:
    """A JSON value, or those of several lines as a list."""
    try:
        return limits.from_json(text)
    except json.JSONDecodeError:
        return [limits.from_json(line) for line in text.split("\n") if line.strip()]


def draw(saved: Any, path: Path) -> None:
    """Write a saved result; the ending says as what."""
    with whole():
        write(saved, path)


@contextmanager
def whole() -> Iterator[None]:
    """What was changed by hand may read as a record and still say what none of ours says."""
    try:
        yield
    except (TypeError, KeyError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
        told = f"{type(error).__name__}: {error}"
        raise InputError(f"This is no result as raison writes it ({told}): make it anew.") from None


def write(saved: Any, path: Path) -> None:
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"A result is written as {', '.join(ENDINGS)}, not as {path.suffix or 'nothing'!r}.")
    if ending == ".tex":
        from raison.show.latex import latex

        with replacing(path) as half:
            half.write_text(latex(saved), encoding="utf-8")
    elif ending == ".html":
        with replacing(path) as half:
            half.write_text(page_of(saved), encoding="utf-8")
    elif isinstance(saved, Evaluation):
        from raison.show.figure.curves import draw_curves

        keys = tuple(saved.curves) or tuple(column.key for column in saved.columns)
        draw_curves(saved, keys[:4], path)
    elif isinstance(saved, Artifact):
        from raison.show.figure.heads import draw_heads

        draw_heads(chosen(saved), path)
    else:
        from raison.show.figure.explanation import to_figure

        to_figure(saved, path)


def page_of(saved: Any) -> str:
    if isinstance(saved, Evaluation):
        from raison.show.html.evaluation import report

        return report(saved)
    if isinstance(saved, Artifact):
        raise InputError("Heads are drawn as .svg, .png or .pdf: name one of these.")
    from raison.show.html.explanation import to_html

    return to_html(saved)


def chosen(saved: Artifact) -> HeadSelection:
    """The heads above the usual thresholds (`raison heads` has options for others)."""
    return HeadSelection.by_usual_thresholds(HeadStatistics.of(saved))
