"""Results in Jupyter: a formatter that draws them with the page's own renderer; the records know nothing of it."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from raison.core.evaluation import Evaluation
from raison.core.records import Explanation

__all__ = ["show_in_notebooks"]

LINE, AROUND = 34, 420  # pixels of a line of text, and of all that stands around it
LETTERS = 75  # in a line
HIGHEST = 900  # pixels


class NotebookFormatter(Protocol):
    """What IPython asks for the HTML of an object; None means that it has none."""

    def for_type(self, kind: type, to_html: Callable[..., str | None], /) -> object: ...
    def for_type_by_name(
        self, module: str, name: str, to_html: Callable[..., str | None], /
    ) -> object: ...


class NotebookDisplay(Protocol):
    @property
    def formatters(self) -> Mapping[str, NotebookFormatter]: ...


class NotebookShell(Protocol):
    """As much of an IPython shell as is needed here."""

    @property
    def display_formatter(self) -> NotebookDisplay: ...


def show_in_notebooks(shell: NotebookShell) -> None:
    """Tell an IPython shell how explanations, lists of them and evaluations are shown."""
    formatter = shell.display_formatter.formatters["text/html"]
    formatter.for_type_by_name("raison.core.records", "Explanation", notebook_frame_of_explanation)
    formatter.for_type_by_name("raison.core.evaluation", "Evaluation", notebook_frame_of_evaluation)
    formatter.for_type(list, notebook_frame_of_list)


def notebook_frame_of_explanation(explanation: Explanation) -> str:
    return notebook_frame_of_explanations([explanation])


def notebook_frame_of_list(items: list[object]) -> str | None:
    """A list of explanations; any other list stays what it is."""
    explanations = [item for item in items if isinstance(item, Explanation)]
    if not items or len(explanations) < len(items):
        return None
    return notebook_frame_of_explanations(explanations)


def notebook_frame_of_explanations(explanations: Sequence[Explanation]) -> str:
    """The page of explanations, with room for its text once for each."""
    from raison.show.html.explanation import to_html

    longest = max(sum(map(len, explanation.encoding.texts)) for explanation in explanations)
    lines = longest // LETTERS + 2 * len(explanations)
    return page_in_notebook_frame(to_html(explanations), AROUND + LINE * lines)


def notebook_frame_of_evaluation(evaluation: Evaluation) -> str:
    """The page of an evaluation, with room for its table."""
    from raison.show.html.evaluation import evaluation_page

    lines = 2 * len(evaluation.methods) + 8
    return page_in_notebook_frame(evaluation_page(evaluation), AROUND + LINE * lines)


def page_in_notebook_frame(page: str, height: int) -> str:
    """A page in a frame of its own: its styles and scripts can't meet the notebook's."""
    style = f"width:100%;height:{min(height, HIGHEST)}px;border:0;resize:vertical;overflow:auto"
    allowed = "allow-scripts allow-downloads"
    return f'<iframe sandbox="{allowed}" title="raison" style="{style}" srcdoc="{html.escape(page)}"></iframe>'
