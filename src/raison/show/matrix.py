"""Many rationales of one text as a matrix: what was predicted down, the context across (P0, Figure 1).

Units differ between targets, since each may use only what comes before it; tokens do not. So a column is a token, or
several tokens of one unit that every row treats alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from rich.cells import cell_len
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from raison.core.records import Encoding, Explanation, Span, Target
from raison.core.units import visible
from raison.show import certificate as proof
from raison.show.spans import given, golden
from raison.show.terminal.style import TerminalStyle
from raison.show.wording import clean, provenance, short

__all__ = ["CHOSEN", "GIVEN", "HIDDEN", "SPARED", "Column", "Matrix", "draw", "facts", "matrix", "sheets", "signs"]

HIDDEN, SPARED, GIVEN, CHOSEN = range(4)  # not visible to the target, left out, kept anyway, in the rationale
LEAST = 3  # rationales that make a matrix
CELL = 2  # cells of a column: about as wide as high
HEAD = 12  # letters of a column's name
LABEL = 20  # cells of a row's name

# what is said about rows that are not what one would think: sign, sign in ASCII, meaning
ALARMS = {
    "insufficient": ("!", "!", "not sufficient"),
    "foreign": ("≠", "~", "not the model's own prediction"),
    "early": ("…", "?", "the search ended early, a smaller rationale may exist"),
}


@dataclass(frozen=True)
class Column:
    name: str
    segment: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Matrix:
    rows: tuple[Explanation, ...]
    columns: tuple[Column, ...]
    cells: np.ndarray  # [row column] HIDDEN | SPARED | GIVEN | CHOSEN
    gold: np.ndarray | None = None  # [row column] whether people linked the two; None: nobody was asked


def sheets(explanations: Sequence[Explanation], least: int = LEAST) -> list[list[Explanation]]:
    """The same explanations in the same order, in lists: those that make a matrix in one, any other alone."""
    found: dict[tuple[object, ...], list[Explanation]] = {}
    known: dict[int, str] = {}  # many rows hold one and the same encoding: hash it once
    for place, explanation in enumerate(explanations):
        key: tuple[object, ...] = (place,)
        if proof.is_rationale(explanation) and explanation.target.positions:
            content = known.get(id(explanation.encoding)) or explanation.encoding.content()
            known[id(explanation.encoding)] = content
            key = (explanation.model, explanation.method, explanation.removal, content)
        found.setdefault(key, []).append(explanation)
    groups: list[list[Explanation]] = []
    for group in found.values():
        apart = len({explanation.target.positions for explanation in group}) == len(group)
        groups += [group] if len(group) >= least and apart else [[explanation] for explanation in group]
    whole = {id(group[0]): group for group in groups}
    # single ones keep their place, a matrix takes that of its first row
    return [whole[id(explanation)] for explanation in explanations if id(explanation) in whole]


def matrix(explanations: Sequence[Explanation], gold: Sequence[tuple[Span, Span]] | None = None) -> Matrix:
    """The matrix of rationales that share their encoding, rows in reading order.

    `gold` are words that people linked: a span of what is read (of the first text, if it names no segment), and one of
    what is written (of the last text).
    """
    rows = tuple(sorted(explanations, key=lambda explanation: explanation.target.positions))
    encoding = rows[0].encoding
    states = np.stack([states_of(row) for row in rows])  # [row token]
    widest = max(rows, key=lambda row: len(row.units))
    columns: list[Column] = []
    linked = None if gold is None else np.stack([linked_to(row.target, encoding, gold) for row in rows])  # [row token]
    for t in np.flatnonzero((states != HIDDEN).any(0) & ~encoding.fixed).tolist():
        before = columns[-1].tokens if columns else ()
        near = before[-1:] == (t - 1,) and -1 < widest.units.of[t] == widest.units.of[t - 1]
        same = linked is None or (linked[:, t] == linked[:, t - 1]).all()
        if near and same and (states[:, t] == states[:, t - 1]).all():
            columns[-1] = column(rows[0], (*before, t))
        else:
            columns.append(column(rows[0], (t,)))
    first = [found.tokens[0] for found in columns]
    return Matrix(rows, tuple(columns), states[:, first], None if linked is None else linked[:, first])


def linked_to(target: Target, encoding: Encoding, gold: Sequence[tuple[Span, Span]]) -> np.ndarray:
    """[t] tokens that people linked to a target that stands in the text; tokens belong to the words that they touch."""
    found = np.zeros(len(encoding), bool)
    for read, written in gold:
        behind = replace(written, segment=written.segment or encoding.segments[-1])
        if touching(encoding, behind)[[p for p in target.positions if p < len(encoding)]].any():
            found |= touching(encoding, read)
    return found


def touching(encoding: Encoding, span: Span) -> np.ndarray:
    """[t] tokens that share a character with a span."""
    marked = golden(encoding, [span])
    real = encoding.start >= 0
    return np.array(
        [
            bool(ok) and bool(marked[segment][start:end].any())
            for ok, segment, start, end in zip(real, encoding.segment, encoding.start, encoding.end, strict=True)
        ],
        dtype=bool,
    )


def states_of(explanation: Explanation) -> np.ndarray:
    """[t] what each token is to this target."""
    of, selected = explanation.units.of, explanation.selected
    states = np.where(explanation.scope, SPARED, HIDDEN)
    states[given(explanation)] = GIVEN
    if selected is not None:
        chosen = np.append(selected, False)[of]  # -1 reads the added one
        states[chosen & explanation.scope] = CHOSEN
    return states


def column(explanation: Explanation, tokens: tuple[int, ...]) -> Column:
    encoding, first, last = explanation.encoding, tokens[0], tokens[-1]
    segment = int(encoding.segment[first])
    name = encoding.tokens[first]
    if encoding.start[first] >= 0:
        name = encoding.texts[segment][encoding.start[first] : encoding.end[last]] or name
    return Column(name.strip() or visible(name), segment, tokens)


def signs(explanation: Explanation) -> list[str]:
    """Which alarms a row needs."""
    certificate = proof.certificate_of(explanation)
    alarms = {
        "insufficient": not certificate.sufficient,
        "foreign": certificate.is_prediction is False,
        "early": certificate.status in ("budget", "interrupted"),
    }
    return [name for name, on in alarms.items() if on]


def facts(matrix: Matrix) -> list[str]:
    """How the rationales came about; their rules may differ, since a target need not be the model's own choice."""
    parts = provenance(matrix.rows[0])
    rules = list(dict.fromkeys(proof.certificate_of(row).rule for row in matrix.rows))
    return parts if len(rules) < 2 else [*parts[:-1], f"rules: {', '.join(map(clean, filter(None, rules)))}"]


def draw(matrix: Matrix, look: TerminalStyle, width: int) -> Iterator[RenderableType]:
    """The matrix in blocks of columns that fit `width`, and a legend."""
    dots = look.either("…", "~")
    sign = 1 if look.ascii else 0
    alarms = [signs(row) for row in matrix.rows]
    label = min(LABEL, max(8, width // 4))
    names = [short(row.target.text, label, dots) for row in matrix.rows]
    label = max(map(cell_len, names))
    sizes = [str(len(proof.chosen_units(row))) for row in matrix.rows]
    figures, most = max(map(len, sizes)), max(map(len, alarms))
    left = label + figures + most + 3
    for block in blocks(matrix, max(1, (width - left) // CELL)):
        gaps = {c for c in block[1:] if matrix.columns[c].segment != matrix.columns[c - 1].segment}
        for heads in letters([matrix.columns[c].name for c in block], look):
            text = Text(" " * left, no_wrap=True, overflow="crop")
            for c, letter in zip(block, heads, strict=True):
                text.append("  " if c in gaps else "").append(letter + " " * (CELL - cell_len(letter)))
            yield text
        for row, name in enumerate(names):
            if block[0] and not matrix.cells[row, block].any():  # nothing in this block is visible to it
                continue
            text = Text(no_wrap=True, overflow="crop")
            text.append(clean(name), look.warning if "insufficient" in alarms[row] else "bold")
            text.append(" " * (label - cell_len(name) + 1))
            text.append("".join(ALARMS[alarm][sign] for alarm in alarms[row]).ljust(most), look.warning)
            text.append(f" {sizes[row].rjust(figures)} ", "dim")
            for c in block:
                text.append(look.either("│ ", "| ") if c in gaps else "", "dim")
                text.append(*cell(int(matrix.cells[row, c]), look))
            yield text
        yield Text(" ")
    yield legend(matrix, look, sorted({alarm for row in alarms for alarm in row}, key=list(ALARMS).index))


def blocks(matrix: Matrix, room: int) -> Iterator[list[int]]:
    """Columns that stand side by side in `room` columns; a new segment takes the room of one more."""
    block: list[int] = []
    used = 0
    for c, column in enumerate(matrix.columns):
        wide = 2 if block and column.segment != matrix.columns[c - 1].segment else 1
        if block and used + wide > room:
            yield block
            block, used, wide = [], 0, 1
        block.append(c)
        used += wide
    if block:
        yield block


def letters(names: Sequence[str], look: TerminalStyle) -> Iterator[list[str]]:
    """Names written downwards, line by line, ending just above their columns."""
    tall = [stacked(name, look) for name in names]
    height = max(map(len, tall))
    for place in range(height):
        yield [name[place - height + len(name)] if place >= height - len(name) else " " for name in tall]


def stacked(name: str, look: TerminalStyle) -> list[str]:
    """The letters of a name, each with its accents; a long name is cut."""
    found: list[str] = []
    for char in " ".join(clean(name).split()):
        if found and cell_len(char) == 0:
            found[-1] += char
        else:
            found.append(char)
    return found if len(found) <= HEAD else [*found[: HEAD - 1], look.either("⋮", ":")]


def cell(state: int, look: TerminalStyle) -> tuple[str, Style]:
    """One cell of the matrix."""
    hue = look.given.color if look.coloured else None
    if state == CHOSEN:
        return look.either("██", "# "), Style(color=look.kept.bgcolor) if look.coloured else Style.null()
    if state == GIVEN:
        return look.either("░░", "o "), Style(color=hue)
    return (look.either("· ", ". "), Style(dim=True)) if state == SPARED else ("  ", Style.null())


def legend(matrix: Matrix, look: TerminalStyle, alarms: Sequence[str]) -> Text:
    """What the signs mean, only those that occur."""
    text = Text(overflow="fold")
    meanings = {CHOSEN: "in the rationale", GIVEN: "given", SPARED: "not needed"}
    for state, meaning in meanings.items():
        if (matrix.cells == state).any():
            sign, style = cell(state, look)
            text.append("   " if text else "").append(sign.strip(), style).append(f" {meaning}", "dim")
    for alarm in alarms:
        sign = ALARMS[alarm][1 if look.ascii else 0]
        text.append("   ").append(sign, look.warning).append(f" {ALARMS[alarm][2]}", "dim")
    return text
