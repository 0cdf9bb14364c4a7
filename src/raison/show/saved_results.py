"""Saved results: reading the file of one, and writing it as a picture, a page or a piece of LaTeX."""

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
from raison.core.outputs import replacing_output
from raison.core.records import Explanation
from raison.show.head_selection import HeadSelection, HeadStatistics

__all__ = [
    "SavedResult",
    "heads_above_usual_thresholds",
    "read_saved_result",
    "refuse_malformed_result",
    "write_saved_result",
]

# what explain, rationalize, evaluate and heads write
SavedResult = list[Explanation] | Evaluation | Artifact

ENDINGS = (".svg", ".png", ".pdf", ".tex", ".html")
MOST_PANELS = 4  # curves of an evaluation in one picture


# -- reading ------------------------------------------------------------------------------------------------


def read_saved_result(path: Path) -> SavedResult:
    """The result in a file: explanations (one JSON object in each line, or a list), an evaluation, or heads."""
    text = read_result_text(path)
    try:
        saved = result_from_json(json_of_result_text(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InputError) as error:
        reason = str(error)[:120].rstrip(".")
        if isinstance(error, json.JSONDecodeError):
            reason = "it holds no JSON"
        raise InputError(
            f"{str(path)!r} is no result of raison ({reason}): name a file that explain, rationalize, evaluate or "
            "heads wrote with --out."
        ) from None
    if isinstance(saved, list) and not saved:
        raise InputError(f"{str(path)!r} holds no explanation: name a file that does.")
    return saved


def read_result_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return limits.read_at_most(file, limits.FILE, repr(str(path))).decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}: check the path.") from None
    except UnicodeDecodeError:
        raise InputError(
            f"{str(path)!r} holds no text: name a file that raison wrote with --out."
        ) from None
    except OSError as error:
        raise InputError(
            f"{str(path)!r} can't be read ({error}): name a file that raison wrote."
        ) from None


def json_of_result_text(text: str) -> Any:
    """A JSON value, or those of several lines as a list."""
    try:
        return limits.read_json_text(text)
    except json.JSONDecodeError:
        return [limits.read_json_text(line) for line in text.split("\n") if line.strip()]


def result_from_json(value: Any) -> SavedResult:
    """The records in a JSON value; anything else raises an error of whatever kind."""
    if isinstance(value, dict) and "cells" in value:
        return Evaluation.from_dict(value)
    if isinstance(value, dict) and value.get("kind") == "heads":
        return Artifact.from_dict(value)
    records = value if isinstance(value, list) else [value]
    return [Explanation.from_dict(record) for record in records]


@contextmanager
def refuse_malformed_result() -> Iterator[None]:
    """What was changed by hand may read as a record and still say what none of ours says: an error tells so."""
    try:
        yield
    except (
        TypeError,
        KeyError,
        ValueError,
        AttributeError,
        IndexError,
        ArithmeticError,
        RecursionError,
    ) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(
            f"This is no result as raison writes it ({reason}): make it anew."
        ) from None


# -- writing ------------------------------------------------------------------------------------------------


def write_saved_result(saved: SavedResult, path: Path) -> None:
    """Write a saved result; the ending says as what."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(
            f"A result is written as {', '.join(ENDINGS)}, not as {path.suffix or 'nothing'!r}."
        )
    with refuse_malformed_result():
        if ending == ".tex":
            write_result_text(latex_of_result(saved), path)
        elif ending == ".html":
            write_result_text(page_of_result(saved), path)
        else:
            draw_result(saved, path)


def write_result_text(text: str, path: Path) -> None:
    with replacing_output(path) as half:
        half.write_text(text, encoding="utf-8")


def latex_of_result(saved: SavedResult) -> str:
    if isinstance(saved, Artifact):
        raise InputError(
            "Only explanations and evaluations are written as LaTeX: draw the rest as .svg or .pdf."
        )
    from raison.show.latex import to_latex

    return to_latex(saved)


def page_of_result(saved: SavedResult) -> str:
    if isinstance(saved, Evaluation):
        from raison.show.html.evaluation import evaluation_page

        return evaluation_page(saved)
    if isinstance(saved, Artifact):
        raise InputError("Heads are drawn as .svg, .png or .pdf: name one of these.")
    from raison.show.html.explanation import to_html

    return to_html(saved)


def draw_result(saved: SavedResult, path: Path) -> None:
    """A picture of heads, of curves, or of a text and its scores."""
    if isinstance(saved, Evaluation):
        from raison.show.figure.curves import draw_curves

        keys = tuple(saved.curves) or tuple(column.key for column in saved.columns)
        draw_curves(saved, keys[:MOST_PANELS], path)
    elif isinstance(saved, Artifact):
        from raison.show.figure.heads import draw_heads

        draw_heads(heads_above_usual_thresholds(saved), path)
    else:
        from raison.show.figure.explanation import to_figure

        to_figure(saved, path)


def heads_above_usual_thresholds(saved: Artifact) -> HeadSelection:
    """The heads above the usual thresholds (`raison heads` has options for others)."""
    return HeadSelection.by_usual_thresholds(HeadStatistics.of(saved))
