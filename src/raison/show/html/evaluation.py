"""The page of an evaluation: its table as HTML, curves as SVG, and the texts where methods did best and worst."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raison.core.evaluation import Column, EvaluatedText, Evaluation, curve_title
from raison.show.colour_scale import METHOD_HUES
from raison.show.evaluation_tables import (
    best_methods_of_column,
    column_heading,
    costs_of_method,
    evaluation_summary,
    interval_of_cell,
    table_number,
)
from raison.show.figure.curves import shares_of_curve
from raison.show.html.document import (
    STYLE,
    colour_rules_css,
    html_element,
    page_without_script,
    pixels_in_document,
    safe_html,
)

__all__ = ["evaluation_page"]

MOST_SHOWN = 3  # best and worst texts of each column
COSTS = ("CPU s per text", "forward", "backward")

# of a picture of curves
WIDTH, HEIGHT, EDGE = 420, 220, 36  # pixels; the edge holds the numbers at the left and below
TOP, RIGHT = 8, 8  # pixels that stay free


def evaluation_page(evaluation: Evaluation) -> str:
    """The whole page."""
    title, *notes = evaluation_summary(evaluation)
    heading = safe_html(title)
    body = [html_element("h1", heading)]
    for note in notes:
        paragraph = html_element("p", safe_html(note), class_="note")
        body.append(paragraph)
    table = evaluation_table_html(evaluation)
    scrolled = html_element("div", table, class_="scroll")
    body.append(scrolled)

    if evaluation.curves:
        method_key = method_key_html(evaluation)
        body += ["<h2>Curves</h2>", method_key, '<div class="curves">']
        for key, by_method in evaluation.curves.items():
            curve = curve_html(key, by_method)
            body.append(curve)
        body.append("</div>")
    body += best_and_worst_texts_html(evaluation)

    colours = []
    for place in range(len(evaluation.methods)):
        hue = METHOD_HUES[place % len(METHOD_HUES)]
        colours.append(hue)
    style = STYLE + colour_rules_css(colours)
    return page_without_script(title, style, body)


# -- the table and the key ----------------------------------------------------------------------------------


def evaluation_table_html(evaluation: Evaluation) -> str:
    """Methods down, numbers and what they cost across; the best of each column stands out."""
    titles = ["method", *map(column_heading, evaluation.columns), *COSTS]
    head = [html_element("th", safe_html(title)) for title in titles]
    rows = [html_element("tr", *head)]
    for method in evaluation.methods:
        name = safe_html(method)
        cells = [html_element("td", name)]
        for column in evaluation.columns:
            cell = evaluation_cell_html(evaluation, method, column)
            cells.append(cell)
        for cost in costs_of_method(evaluation, method):
            cell = html_element("td", cost)
            cells.append(cell)
        row = html_element("tr", *cells)
        rows.append(row)
    return html_element("table", *rows)


def evaluation_cell_html(evaluation: Evaluation, method: str, column: Column) -> str:
    """One number with its interval below."""
    cell = evaluation.cell(method, column.key)
    value = table_number(cell.value)
    interval = html_element("small", interval_of_cell(cell))
    if method in best_methods_of_column(evaluation, column):
        return html_element("td", value, interval, class_="best")
    return html_element("td", value, interval)


def method_key_html(evaluation: Evaluation) -> str:
    """Which colour is which method."""
    items = []
    for place, method in enumerate(evaluation.methods):
        line_class = class_of_method_line(place)
        sample = html_element("i", class_=line_class)
        name = safe_html(method)
        item = html_element("li", sample, name)
        items.append(item)
    return html_element("ul", *items, class_="key")


# -- single texts -------------------------------------------------------------------------------------------


def best_and_worst_texts_html(evaluation: Evaluation) -> list[str]:
    """For the first number: the texts on which the best method did best and worst, as it explains them."""
    if not evaluation.columns:
        return []
    column = evaluation.columns[0]
    if column.higher is None:
        return []
    leader = leader_of_column(evaluation, column)

    cell = evaluation.cell(leader, column.key)
    values = cell.each
    worst = places_by_known_value(values)
    best = worst[::-1]
    if not column.higher:
        worst, best = best, worst
    half = (len(worst) + 1) // 2
    most = min(MOST_SHOWN, half)  # no text is shown as both
    fewer = min(most, len(worst) - most)

    key = safe_html(column.key)
    name = safe_html(leader)
    heading = html_element("h2", f"{key} of {name}, text by text")
    parts = [heading]
    places_by_title = {"Best": best[:most], "Worst": worst[:fewer]}
    for title, places in places_by_title.items():
        if places:
            parts.append(html_element("h3", title))
        for place in places:
            text = evaluation.texts[place]
            value = values[place]
            parts.append(evaluated_text_html(text, leader, column, value))
    return parts


def leader_of_column(evaluation: Evaluation, column: Column) -> str:
    """The first of the best methods of a column; the first of all where none is best."""
    best_methods = best_methods_of_column(evaluation, column)
    for method in evaluation.methods:
        if method in best_methods:
            return method
    return evaluation.methods[0]


def places_by_known_value(values: Sequence[float | None]) -> list[int]:
    """The places of the values that are known, the lowest value first."""
    numbers = [np.nan if value is None else value for value in values]
    ascending = np.argsort(numbers)
    known = []
    for place in ascending.tolist():
        if values[place] is not None:
            known.append(place)
    return known


def evaluated_text_html(
    text: EvaluatedText, method: str, column: Column, value: float | None
) -> str:
    """One text, its words coloured by the method's scores, under what was explained."""
    key = safe_html(column.key)
    number = table_number(value)
    outcome = outcome_of_text_html(text)
    facts = [f"{key} {number}", outcome]
    if text.id:
        facts.append(safe_html(text.id))
    label = " · ".join(facts)

    units = text.units.get(method, [])
    words = " ".join(coloured_words_html(units))
    above = html_element("p", label, class_="label")
    below = html_element("p", words, class_="text")
    return above + below


def outcome_of_text_html(text: EvaluatedText) -> str:
    """What was explained, with its probability and what people say."""
    outcome = safe_html(text.target)
    if text.probability is not None:
        outcome += f" {text.probability:.1%}"
    if text.label is not None:
        label = safe_html(text.label)
        outcome += f", labelled {label}"
    return outcome


def coloured_words_html(units: Sequence[Sequence[Any]]) -> list[str]:
    """Units in one of ten shades of the colour for or against."""
    strongest = 0.0
    for _, score in units:
        strongest = max(strongest, abs(score))
    words = []
    for name, score in units:
        size = abs(score)
        shade = round(10 * size / (strongest or 1.0))
        side = "f" if score >= 0 else "a"
        colour = f"{side}{shade}"
        exact = f"{score:+.4f}"
        text = safe_html(name)
        word = html_element("b", text, class_=colour, title=exact)
        words.append(word)
    return words


# -- curves ------------------------------------------------------------------------------------------------------


def class_of_method_line(place: int) -> str:
    """The class of a method's colour: one hue per method, told apart by lightness too."""
    hue = place % len(METHOD_HUES)
    return f"m{hue}"


@dataclass(frozen=True)
class CurveFrame:
    """Where numbers stand in a picture whose axes go from 0 to 1 and from `low` to `high`."""

    low: float
    high: float

    @classmethod
    def around(cls, values: np.ndarray) -> CurveFrame:
        """A frame that holds all values and 0."""
        lowest = values.min()
        highest = values.max()
        low = float(min(0.0, lowest))
        high = float(max(0.0, highest))
        if high == low:
            high = low + 1
        return cls(low, high)

    def x(self, share: float) -> float:
        room = WIDTH - EDGE - RIGHT
        return EDGE + share * room

    def y(self, value: float) -> float:
        room = HEIGHT - EDGE
        share = (self.high - value) / (self.high - self.low)
        return TOP + share * room

    def points(self, shares: Iterable[float], values: Iterable[float]) -> str:
        """A line through these points."""
        places = []
        for share, value in zip(shares, values, strict=True):
            across = pixels_in_document(self.x(share))
            down = pixels_in_document(self.y(value))
            places.append(f"{across},{down}")
        return " ".join(places)


def curve_html(key: str, by_method: Mapping[str, Sequence[float]]) -> str:
    """The mean curve of each method over the share of units."""
    curves = list(by_method.values())
    values = np.array(curves)
    frame = CurveFrame.around(values)
    points = values.shape[1]
    shares = np.array([1.0])
    if points > 1:
        shares = shares_of_curve(key, points)

    parts = curve_axes_svg(frame)
    for place, (method, curve) in enumerate(by_method.items()):
        name = safe_html(method)
        tooltip = html_element("title", name)
        line = html_element(
            "polyline",
            tooltip,
            class_=class_of_method_line(place),
            stroke_width=2,
            points=frame.points(shares, curve),
        )
        parts.append(line)

    title = safe_html(curve_title(key))
    picture = html_element(
        "svg",
        *parts,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        width=WIDTH,
        height=HEIGHT,
        role="img",
        aria_label=title,
    )
    what = "randomised blocks" if key == "randomisation_curve" else "units"
    caption = html_element("figcaption", f"{title} by share of {what}")
    return html_element("figure", picture, caption)


def curve_axes_svg(frame: CurveFrame) -> list[str]:
    """Lines at the lowest and the highest value, and the numbers of both axes."""
    lines = []
    numbers = []
    right = WIDTH - RIGHT
    for value in (frame.low, frame.high):
        down = frame.y(value)
        level = pixels_in_document(down)
        line = html_element("line", class_="axis", x1=EDGE, y1=level, x2=right, y2=level)
        lines.append(line)

        rounded = round(value, 2) + 0  # no minus before a zero
        shown = f"{rounded:.2f}".replace("-", "−")
        baseline = pixels_in_document(down + 4)
        number = html_element("text", shown, x=2, y=baseline)
        numbers.append(number)

    bottom = HEIGHT - 6
    anchors = {"start": 0.0, "middle": 0.5, "end": 1.0}
    for anchor, share in anchors.items():
        across = pixels_in_document(frame.x(share))
        shown = f"{share:.0%}"
        number = html_element("text", shown, x=across, y=bottom, text_anchor=anchor)
        numbers.append(number)
    return lines + numbers
