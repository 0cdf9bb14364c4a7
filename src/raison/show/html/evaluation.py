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
    body = [html_element("h1", safe_html(title))]
    for note in notes:
        body.append(html_element("p", safe_html(note), class_="note"))
    body.append(html_element("div", evaluation_table_html(evaluation), class_="scroll"))
    if evaluation.curves:
        body += ["<h2>Curves</h2>", method_key_html(evaluation), '<div class="curves">']
        for key, by_method in evaluation.curves.items():
            body.append(curve_html(key, by_method))
        body.append("</div>")
    body += best_and_worst_texts_html(evaluation)

    count = len(evaluation.methods)
    colours = [METHOD_HUES[place % len(METHOD_HUES)] for place in range(count)]
    return page_without_script(title, STYLE + colour_rules_css(colours), body)


# -- the table and the key ----------------------------------------------------------------------------------


def evaluation_table_html(evaluation: Evaluation) -> str:
    """Methods down, numbers and what they cost across; the best of each column stands out."""
    titles = ["method", *map(column_heading, evaluation.columns), *COSTS]
    head = [html_element("th", safe_html(title)) for title in titles]
    rows = [html_element("tr", *head)]
    for method in evaluation.methods:
        cells = [html_element("td", safe_html(method))]
        for column in evaluation.columns:
            cells.append(evaluation_cell_html(evaluation, method, column))
        for cost in costs_of_method(evaluation, method):
            cells.append(html_element("td", cost))
        rows.append(html_element("tr", *cells))
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
        sample = html_element("i", class_=class_of_method_line(place))
        items.append(html_element("li", sample, safe_html(method)))
    return html_element("ul", *items, class_="key")


# -- single texts -------------------------------------------------------------------------------------------


def best_and_worst_texts_html(evaluation: Evaluation) -> list[str]:
    """For the first number: the texts on which the best method did best and worst, as it explains them."""
    if not evaluation.columns or evaluation.columns[0].higher is None:
        return []
    column = evaluation.columns[0]
    best_methods = best_methods_of_column(evaluation, column)
    leader = evaluation.methods[0]
    for method in evaluation.methods:
        if method in best_methods:
            leader = method
            break

    values = evaluation.cell(leader, column.key).each
    worst = places_by_known_value(values)
    best = worst[::-1]
    if not column.higher:
        worst, best = best, worst
    most = min(MOST_SHOWN, (len(worst) + 1) // 2)  # no text is shown as both
    fewer = min(most, len(worst) - most)

    title = f"{safe_html(column.key)} of {safe_html(leader)}, text by text"
    parts = [html_element("h2", title)]
    for title, places in (("Best", best[:most]), ("Worst", worst[:fewer])):
        if places:
            parts.append(html_element("h3", title))
        for place in places:
            text = evaluation.texts[place]
            parts.append(evaluated_text_html(text, leader, column, values[place]))
    return parts


def places_by_known_value(values: Sequence[float | None]) -> list[int]:
    """The places of the values that are known, the lowest value first."""
    numbers = [np.nan if value is None else value for value in values]
    ascending = np.argsort(numbers).tolist()
    return [place for place in ascending if values[place] is not None]


def evaluated_text_html(
    text: EvaluatedText, method: str, column: Column, value: float | None
) -> str:
    """One text, its words coloured by the method's scores, under what was explained."""
    facts = [f"{safe_html(column.key)} {table_number(value)}", outcome_of_text_html(text)]
    if text.id:
        facts.append(safe_html(text.id))
    words = coloured_words_html(text.units.get(method, []))
    label = html_element("p", " · ".join(facts), class_="label")
    return label + html_element("p", " ".join(words), class_="text")


def outcome_of_text_html(text: EvaluatedText) -> str:
    """What was explained, with its probability and what people say."""
    outcome = safe_html(text.target)
    if text.probability is not None:
        outcome += f" {text.probability:.1%}"
    if text.label is not None:
        outcome += f", labelled {safe_html(text.label)}"
    return outcome


def coloured_words_html(units: Sequence[Sequence[Any]]) -> list[str]:
    """Units in one of ten shades of the colour for or against."""
    strongest = 0.0
    for _, score in units:
        strongest = max(strongest, abs(score))
    words = []
    for name, score in units:
        shade = round(10 * abs(score) / (strongest or 1.0))
        side = "f" if score >= 0 else "a"
        exact = f"{score:+.4f}"
        word = html_element("b", safe_html(name), class_=f"{side}{shade}", title=exact)
        words.append(word)
    return words


# -- curves ------------------------------------------------------------------------------------------------------


def class_of_method_line(place: int) -> str:
    """The class of a method's colour: one hue per method, told apart by lightness too."""
    return f"m{place % len(METHOD_HUES)}"


@dataclass(frozen=True)
class CurveFrame:
    """Where numbers stand in a picture whose axes go from 0 to 1 and from `low` to `high`."""

    low: float
    high: float

    @classmethod
    def around(cls, values: np.ndarray) -> CurveFrame:
        """A frame that holds all values and 0."""
        low = float(min(0.0, values.min()))
        high = float(max(0.0, values.max()))
        if high == low:
            high = low + 1
        return cls(low, high)

    def x(self, share: float) -> float:
        return EDGE + share * (WIDTH - EDGE - RIGHT)

    def y(self, value: float) -> float:
        share = (self.high - value) / (self.high - self.low)
        return TOP + share * (HEIGHT - EDGE)

    def points(self, shares: Iterable[float], values: Iterable[float]) -> str:
        """A line through these points."""
        places = []
        for share, value in zip(shares, values, strict=True):
            across, down = pixels_in_document(self.x(share)), pixels_in_document(self.y(value))
            places.append(f"{across},{down}")
        return " ".join(places)


def curve_html(key: str, by_method: Mapping[str, Sequence[float]]) -> str:
    """The mean curve of each method over the share of units."""
    values = np.array(list(by_method.values()))
    frame = CurveFrame.around(values)
    points = values.shape[1]
    shares = np.array([1.0])
    if points > 1:
        shares = shares_of_curve(key, points)

    parts = curve_axes_svg(frame)
    for place, (method, curve) in enumerate(by_method.items()):
        line = html_element(
            "polyline",
            html_element("title", safe_html(method)),
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
    lines, numbers = [], []
    for value in (frame.low, frame.high):
        down = frame.y(value)
        line = html_element(
            "line",
            class_="axis",
            x1=EDGE,
            y1=pixels_in_document(down),
            x2=WIDTH - RIGHT,
            y2=pixels_in_document(down),
        )
        rounded = round(value, 2) + 0  # no minus before a zero
        shown = f"{rounded:.2f}".replace("-", "−")
        lines.append(line)
        numbers.append(html_element("text", shown, x=2, y=pixels_in_document(down + 4)))
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        number = html_element(
            "text",
            f"{share:.0%}",
            x=pixels_in_document(frame.x(share)),
            y=HEIGHT - 6,
            text_anchor=anchor,
        )
        numbers.append(number)
    return lines + numbers
