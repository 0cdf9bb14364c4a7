"""Results in Jupyter: a formatter that draws them with the page's own renderer; the records know nothing of it."""

from __future__ import annotations

import html
from typing import Any

__all__ = ["register"]

LINE, CHROME = 34, 420  # pixels of a line of text, and of all that stands around it


def register(shell: Any) -> None:
    """Tell an IPython shell how explanations, lists of them and evaluations are shown."""
    formatter = shell.display_formatter.formatters["text/html"]
    formatter.for_type_by_name("raison.core.records", "Explanation", lambda found: frame([found]))
    formatter.for_type_by_name("raison.core.evaluation", "Evaluation", evaluated)
    formatter.for_type(list, several)


def several(found: list[Any]) -> str | None:
    """A list of explanations; any other list stays what it is."""
    from raison.core.records import Explanation

    return frame(found) if found and all(isinstance(each, Explanation) for each in found) else None


def frame(found: list[Any]) -> str:
    """The page in a frame of its own: its styles and scripts can't meet the notebook's."""
    from raison.show.html.explanation import to_html

    longest = max(sum(map(len, each.encoding.texts)) for each in found)
    return framed(to_html(found), CHROME + LINE * (longest // 75 + 2 * len(found)))


def evaluated(found: Any) -> str:
    from raison.show.html.evaluation import report

    return framed(report(found), CHROME + LINE * (2 * len(found.methods) + 8))


def framed(page: str, height: int) -> str:
    style = f"width:100%;height:{min(height, 900)}px;border:0;resize:vertical;overflow:auto"
    allowed = "allow-scripts allow-downloads"
    return f'<iframe sandbox="{allowed}" title="raison" style="{style}" srcdoc="{html.escape(page)}"></iframe>'
