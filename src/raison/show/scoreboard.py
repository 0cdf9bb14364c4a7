"""An evaluation as a table, in words: numbers, headings, the best of a column, and what must be known of all.

The terminal, Markdown, CSV, HTML and LaTeX write the same. Every number has its interval.
"""

from __future__ import annotations

from collections.abc import Iterator

from raison.core.evaluation import Cell, Column, Evaluation
from raison.show.wording import clean

__all__ = [
    "COSTS",
    "FEW",
    "TOO_NARROW",
    "between",
    "costs",
    "headings",
    "number",
    "summary",
    "warning_of_few",
    "winners",
]

ARROWS = {True: "↑", False: "↓", None: ""}
FEW = 50  # texts below which intervals come with a warning
TOO_NARROW = (
    f"Intervals of fewer than {FEW} texts are too narrow where values are skewed: measured coverage of 95 % intervals "
    "of 20 skewed values is 87 %."
)
COSTS = {"cpu_seconds": "CPU s", "forwards": "forward", "backwards": "backward"}
COST_DIGITS = {"cpu_seconds": 3, "forwards": 1, "backwards": 1}


def number(value: float | None) -> str:
    """Four decimals; a minus that lines up; a dash where there is no number."""
    if value is None:
        return "–"
    rounded = round(value, 4) + 0.0  # no minus before a zero
    return f"{rounded:.4f}".replace("-", "−")


def between(cell: Cell) -> str:
    """The interval of a cell."""
    if cell.low is None or cell.high is None:
        return ""
    return f"{number(cell.low)} … {number(cell.high)}"


def headings(column: Column) -> str:
    """The name of a column, with the direction that is better."""
    return f"{column.key} {ARROWS[column.higher]}".strip()


def winners(evaluation: Evaluation, column: Column) -> set[str]:
    """Methods with the best number of a column, as it is printed."""
    if column.higher is None or len(evaluation.methods) < 2:
        return set()
    printed = {}
    for method in evaluation.methods:
        value = evaluation.cell(method, column.key).value
        if value is not None:
            printed[method] = round(value, 4)
    better = max if column.higher else min
    best = better(printed.values(), default=None)
    return {method for method, value in printed.items() if value == best}


def costs(evaluation: Evaluation, method: str) -> list[str]:
    """CPU seconds and rows through the model, per text."""
    spent = evaluation.costs.get(method, {})
    texts = spent.get("texts") or 1
    shown = []
    for name, digits in COST_DIGITS.items():
        shown.append(f"{spent[name] / texts:.{digits}f}" if name in spent else "–")
    return shown


# -- sentences -------------------------------------------------------------------------------------------------


def warning_of_few(*counts: int) -> list[str]:
    """What must be known of intervals over so many texts; nothing where they are enough, or one, which has none."""
    few = any(1 < texts < FEW for texts in counts)
    return [TOO_NARROW] if few else []


def summary(evaluation: Evaluation) -> list[str]:
    """What was evaluated, and what a reader must know."""
    texts = len(evaluation.texts)
    lines = [
        describe_evaluation(evaluation),
        f"{describe_intervals(evaluation)} ↑ more is better, ↓ less is better.",
        *warning_of_few(texts),
        *describe_undefined(evaluation),
    ]
    lines += [note_as_sentence(note) for note in evaluation.notes]
    return [clean(line) for line in lines]


def note_as_sentence(note: str) -> str:
    """A note with a capital and a full stop; one that is a sentence already, such as `a.csv: …`, stays as it is."""
    return note if note.endswith(".") else f"{note[:1].upper()}{note[1:]}."


def describe_evaluation(evaluation: Evaluation) -> str:
    """Model, data and settings in a line."""
    settings = evaluation.settings
    split = f" ({settings['split']})" if settings.get("split") else ""
    facts = [
        count_of_texts(len(evaluation.texts)),
        f"{settings.get('target', 'predicted')} target",
        f"{settings.get('units', 'word')} units",
        f"removal {settings.get('removal') or '–'}",
        f"seed {settings.get('seed', 0)}",
    ]
    return f"{evaluation.model} on {evaluation.data}{split}: {', '.join(facts)}"


def describe_intervals(evaluation: Evaluation) -> str:
    """How sure the intervals are."""
    if len(evaluation.texts) == 1:
        return "One text alone has no intervals."
    return f"Intervals: {evaluation.settings.get('level', 0.95):.0%}, bootstrap over texts."


def describe_undefined(evaluation: Evaluation) -> Iterator[str]:
    """Which numbers are not defined for how many texts; columns with the same gap share a sentence."""
    keys_by_gap: dict[str, list[str]] = {}
    for column in evaluation.columns:
        cells = [evaluation.cell(method, column.key) for method in evaluation.methods]
        gaps = [len(cell.each) - cell.count for cell in cells]
        if max(gaps):
            most = "" if max(gaps) == min(gaps) else "up to "
            keys_by_gap.setdefault(most + count_of_texts(max(gaps)), []).append(column.key)
    for gap, keys in keys_by_gap.items():
        yield f"{', '.join(keys)}: not defined for {gap}, left out there."


def count_of_texts(count: int) -> str:
    return f"{count} text{'' if count == 1 else 's'}"
