"""An evaluation as one HTML page: the table with intervals, curves, and the texts where methods did best and worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from raison.core.evaluation import Column, EvaluatedText, Evaluation
from raison.show.html.curve import curve_figure, line_class
from raison.show.html.document import STYLE, colour_rules, element, page_without_script, safe_text
from raison.show.scale import HUES
from raison.show.scoreboard import between, costs, headings, number, summary, winners

__all__ = ["evaluation_page"]

MOST_SHOWN = 3  # best and worst texts of each column
COSTS = ("CPU s per text", "forward", "backward")


def evaluation_page(evaluation: Evaluation) -> str:
    """The whole page."""
    title, *notes = summary(evaluation)
    body = [element("h1", safe_text(title))]
    body += [element("p", safe_text(note), class_="note") for note in notes]
    body.append(element("div", table_of_methods(evaluation), class_="scroll"))
    if evaluation.curves:
        body += ["<h2>Curves</h2>", key_of_methods(evaluation), '<div class="curves">']
        body += [curve_figure(key, by_method) for key, by_method in evaluation.curves.items()]
        body.append("</div>")
    body += best_and_worst_texts(evaluation)

    colours = [HUES[place % len(HUES)] for place in range(len(evaluation.methods))]
    return page_without_script(title, STYLE + colour_rules(colours), body)


# -- the table and the key ----------------------------------------------------------------------------------


def table_of_methods(evaluation: Evaluation) -> str:
    """Methods down, numbers and what they cost across; the best of each column stands out."""
    titles = ["method", *map(headings, evaluation.columns), *COSTS]
    head = [element("th", safe_text(title)) for title in titles]
    rows = [element("tr", *head)]
    for method in evaluation.methods:
        numbers = [cell_of(evaluation, method, column) for column in evaluation.columns]
        spent = [element("td", cost) for cost in costs(evaluation, method)]
        rows.append(element("tr", element("td", safe_text(method)), *numbers, *spent))
    return element("table", *rows)


def cell_of(evaluation: Evaluation, method: str, column: Column) -> str:
    """One number with its interval below."""
    cell = evaluation.cell(method, column.key)
    parts = number(cell.value), element("small", between(cell))
    if method in winners(evaluation, column):
        return element("td", *parts, class_="best")
    return element("td", *parts)


def key_of_methods(evaluation: Evaluation) -> str:
    """Which colour is which method."""
    items = []
    for place, method in enumerate(evaluation.methods):
        sample = element("i", class_=line_class(place))
        items.append(element("li", sample, safe_text(method)))
    return element("ul", *items, class_="key")


# -- single texts -------------------------------------------------------------------------------------------


def best_and_worst_texts(evaluation: Evaluation) -> list[str]:
    """For the first number: the texts on which the best method did best and worst, as it explains them."""
    if not evaluation.columns or evaluation.columns[0].higher is None:
        return []
    column = evaluation.columns[0]
    best_methods = winners(evaluation, column)
    leader = next(
        (method for method in evaluation.methods if method in best_methods), evaluation.methods[0]
    )

    values = evaluation.cell(leader, column.key).each
    ascending = places_by_value(values)
    descending = ascending[::-1]
    best, worst = (descending, ascending) if column.higher else (ascending, descending)
    most = min(MOST_SHOWN, (len(ascending) + 1) // 2)  # no text is shown as both

    parts = [element("h2", f"{safe_text(column.key)} of {safe_text(leader)}, text by text")]
    for title, places in (("Best", best[:most]), ("Worst", worst[: min(most, len(worst) - most)])):
        if places:
            parts.append(element("h3", title))
        for place in places:
            parts.append(coloured_text(evaluation.texts[place], leader, column, values[place]))
    return parts


def places_by_value(values: Sequence[float | None]) -> list[int]:
    """The places of the values that are known, the lowest value first."""
    numbers = [np.nan if value is None else value for value in values]
    return [place for place in np.argsort(numbers).tolist() if values[place] is not None]


def coloured_text(text: EvaluatedText, method: str, column: Column, value: float | None) -> str:
    """One text, its words coloured by the method's scores, under what was explained."""
    facts = [f"{safe_text(column.key)} {number(value)}", outcome_of(text)]
    if text.id:
        facts.append(safe_text(text.id))
    words = coloured_words(text.units.get(method, []))
    return element("p", " · ".join(facts), class_="label") + element(
        "p", " ".join(words), class_="text"
    )


def outcome_of(text: EvaluatedText) -> str:
    """What was explained, with its probability and what people say."""
    probability = "" if text.probability is None else f" {text.probability:.1%}"
    label = "" if text.label is None else f", labelled {safe_text(text.label)}"
    return f"{safe_text(text.target)}{probability}{label}"


def coloured_words(units: Sequence[Sequence[Any]]) -> list[str]:
    """Units in one of ten shades of the colour for or against."""
    strongest = max((abs(score) for _, score in units), default=0.0) or 1.0
    words = []
    for name, score in units:
        shade = round(10 * abs(score) / strongest)
        side = "f" if score >= 0 else "a"
        words.append(element("b", safe_text(name), class_=f"{side}{shade}", title=f"{score:+.4f}"))
    return words
