"""Attention heads that matter: as pictures (P4 Figures 1 and 5) and in the terminal.

Reads an artifact of `raison heads` and the masks that were made from it; the same ones give the same file, byte by
byte.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from raison.core.artifact import Artifact
from raison.core.errors import InputError
from raison.show import scale
from raison.show.figure.canvas import ALARM, FAINT, INK, MARGIN, QUIET, SMALL, TEXT, Ruler, canvas
from raison.show.figure.savefig import press
from raison.show.terminal.style import TerminalStyle, screen
from raison.show.wording import clean

__all__ = ["Chosen", "draw_heads", "draw_positions", "render_heads"]

SYNT, POS = scale.hexadecimal(scale.FOR), scale.hexadecimal(scale.AGAINST)
ON_SYNT, ON_POS = (scale.hexadecimal(scale.ink(hue)) for hue in (scale.FOR, scale.AGAINST))
WIDE, HIGH, LARGEST = 0.62, 0.27, 20.0  # inches of a cell, and of the longest side
LABEL, TIGHT = 6.5, 5.5  # points
FURTHEST = 8  # words: relative positions further away are drawn as one bar at each side
PANEL = (3.1, 1.75)  # inches
DASHES: Any = (0, (4, 3))
FIELDS = ("kinds", "relations", "direction", "alpha", "counts", "lambda", "lambda_max", "positional")


@dataclass(frozen=True)
class Chosen:
    """Masks made from an artifact, and the rule that made them."""

    artifact: Artifact
    synt: np.ndarray  # [maps heads]
    pos: np.ndarray
    syntactic: float = 0.1
    positional: float = 0.8
    top: int = 0

    def __post_init__(self) -> None:
        missing = [name for name in FIELDS if name not in self.artifact.data]
        if missing:
            raise InputError(
                f"This file of heads is not complete (no {', '.join(missing)}): make it anew with `raison heads`."
            )

    @property
    def margins(self) -> tuple[np.ndarray, list[list[str]]]:
        """[maps heads] the largest α_k − max λ_k, and the relation k that has it; -1 where nothing was measured."""
        data = self.artifact.data
        names = [k for k in data["relations"] if data["counts"][k]]
        if not names:
            return np.full(self.pos.shape, -1.0), [[""] * self.pos.shape[1]] * len(self.pos)
        tables = np.stack([np.array(data["alpha"][k]) - data["lambda_max"][k] for k in names])
        return tables.max(0), [[names[k] for k in row] for row in tables.argmax(0)]

    @property
    def offsets(self) -> np.ndarray:
        return np.array(self.artifact.data["positional"]["offset"])

    @property
    def shares(self) -> np.ndarray:
        """[maps heads] α of the best relative position."""
        return np.array(self.artifact.data["positional"]["alpha"])

    @property
    def blocks(self) -> list[str]:
        """Names of the maps: numbers, with their kind where there are several."""
        kinds = self.artifact.data["kinds"]
        numbers = [kinds[:place].count(kind) for place, kind in enumerate(kinds)]
        several = len(set(kinds)) > 1
        return [f"{kind} {n}" if several else str(n) for kind, n in zip(kinds, numbers, strict=True)]

    @property
    def empty(self) -> list[str]:
        """Blocks without any chosen head."""
        without = ~(self.synt | self.pos).any(1)
        return [name for name, none in zip(self.blocks, without, strict=True) if none]

    @property
    def model(self) -> str:
        return clean(self.artifact.model) or "a model"

    @property
    def corpus(self) -> str:
        """What the heads were watched on."""
        about = self.artifact.about
        return clean(f"{about.get('corpus') or 'a corpus'}, {about.get('sentences', 0)} sentences")

    def rules(self) -> list[tuple[int, str]]:
        """How many heads of each kind, and why them."""
        many = f" {self.top}" if self.top > 1 else ""
        more = f", and the best{many} of each block" if self.top else ""
        return [
            (int(self.synt.sum()), f"syntactic: α > max λ + {self.syntactic:g}{more}"),
            (int(self.pos.sum()), f"positional: α > {self.positional:g}{more}"),
        ]


def signed(offset: int) -> str:
    return f"{offset:+d}".replace("-", "−") if offset else "0"


# -- heads by blocks ------------------------------------------------------------------------------------------


def draw_heads(chosen: Chosen, path: str | os.PathLike[str]) -> None:
    """Blocks down, heads across: which heads are syntactic and which positional (P4 Figure 5)."""
    press(lambda: heads_picture(chosen), path)


def heads_picture(chosen: Chosen) -> Any:
    ruler = Ruler()
    maps, heads = chosen.pos.shape
    wide, high = min(WIDE, LARGEST / heads), min(HIGH, LARGEST / maps)
    told = wide >= WIDE * 0.8 and high >= HIGH * 0.8  # room for words in a cell
    title = f"{chosen.model}: {int((chosen.synt | chosen.pos).sum())} of {maps * heads} heads matter"
    notes = [chosen.corpus]
    if chosen.empty:
        notes.append(f"no head in {listed(chosen.empty)}")
    counts = [counted(int(s), int(p)) for s, p in zip(chosen.synt.sum(1), chosen.pos.sum(1), strict=True)]
    left = MARGIN + 0.25 + max(ruler(name, SMALL) for name in chosen.blocks) + 0.1
    right = left + wide * heads
    legend = [f"{number} {rule}" for number, rule in chosen.rules()]
    room = max(
        ruler(title, TEXT, "bold"), *(ruler(line, 8.0) for line in notes), *(ruler(x, 8.0) + 0.5 for x in legend)
    )
    width = max(right + 0.12 + max(ruler(line, 8.0) for line in counts), MARGIN + room) + MARGIN
    top = MARGIN + 0.34 + 0.19 * len(notes) + 0.35
    bottom = top + high * maps
    figure, axes = canvas(width, bottom + 0.3 + 0.24 * len(legend) + MARGIN)
    axes.text(MARGIN, MARGIN + 0.12, title, fontsize=TEXT, fontweight="bold", color=INK)
    for place, line in enumerate(notes):
        axes.text(MARGIN, MARGIN + 0.33 + 0.19 * place, line, fontsize=8, color=QUIET if place == 0 else ALARM)
    every = max(1, math.ceil(ruler("88", SMALL) * 1.3 / wide))
    for head in range(0, heads, every):
        axes.text(left + wide * (head + 0.5), top - 0.06, str(head), fontsize=SMALL, ha="center", color=INK)
    axes.text(left, top - 0.24, "head", fontsize=8, color=QUIET)
    axes.text(
        MARGIN + 0.08, (top + bottom) / 2, "block", fontsize=8, color=QUIET, rotation=90, va="center", ha="center"
    )
    every = max(1, math.ceil(SMALL / 72 * 1.2 / high))
    relations, margins = chosen.margins[1], chosen.margins[0]
    for row, name in enumerate(chosen.blocks):
        middle = top + high * (row + 0.5)
        if row % every == 0:
            colour = ALARM if counts[row] == "none" else INK
            axes.text(left - 0.1, middle, name, fontsize=SMALL, ha="right", va="center_baseline", color=colour)
            axes.text(right + 0.1, middle, counts[row], fontsize=8, va="center_baseline", color=QUIET)
        for head in range(heads):
            words = (relations[row][head], signed(int(chosen.offsets[row, head]))) if told else ("", "")
            kinds = (bool(chosen.synt[row, head]), bool(chosen.pos[row, head]))
            cell(axes, left + wide * head, top + high * row, wide, high, kinds, words)
    down, across = np.nonzero(~(chosen.synt | chosen.pos))
    size = min(wide, high) * 0.12 * 72
    dots = [left + wide * (c + 0.5) for c in across], [top + high * (r + 0.5) for r in down]
    axes.plot(*dots, "o", markersize=size, markerfacecolor=FAINT, markeredgewidth=0)
    signs = ("obj" if margins.size else "", "−1")
    for place, line in enumerate(legend):
        at = bottom + 0.2 + 0.24 * place
        kinds = (place == 0, place == 1)
        cell(axes, MARGIN, at, 0.4, 0.19, kinds, (signs[0], signs[1]))
        axes.text(MARGIN + 0.48, at + 0.14, line, fontsize=8, color=QUIET)
    return figure


def cell(
    axes: Any, left: float, top: float, wide: float, high: float, kinds: tuple[bool, bool], words: tuple[str, str]
) -> None:
    """One head: the relation on orange, the relative position on blue, both beside each other."""
    from matplotlib.patches import Rectangle

    gap = min(wide, high) * 0.06
    both = all(kinds)
    parts = ((SYNT, ON_SYNT, 0.62 if both else 1.0), (POS, ON_POS, 0.38 if both else 1.0))
    start = left + gap
    for there, (colour, ink, share), word in zip(kinds, parts, words, strict=True):
        if there:
            width = (wide - 2 * gap) * share
            axes.add_patch(Rectangle((start, top + gap), width, high - 2 * gap, facecolor=colour, edgecolor="none"))
            place = (start + width / 2, top + high / 2)
            size = TIGHT if both else LABEL
            axes.text(*place, word, fontsize=size, ha="center", va="center_baseline", color=ink)
            start += width


def counted(synt: int, pos: int) -> str:
    parts = [f"{synt} syntactic"] * (synt > 0) + [f"{pos} positional"] * (pos > 0)
    return ", ".join(parts) or "none"


def listed(blocks: list[str]) -> str:
    """`block 3`, `blocks 0, 3–9 and 12`, `encoder block 1 and cross blocks 0 and 1`."""
    kinds: dict[str, list[int]] = {}
    for block in blocks:
        kind, _, number = block.rpartition(" ")
        kinds.setdefault(kind, []).append(int(number))
    return joined([f"{k} {runs(n)}".strip() for k, n in kinds.items()])


def runs(numbers: list[int]) -> str:
    """Neighbours as a range."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    names = [f"{g[0]}–{g[-1]}" if len(g) > 2 else ", ".join(map(str, g)) for g in groups]
    return f"block{'s' if len(numbers) > 1 else ''} {joined(', '.join(names).split(', '))}"


def joined(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


# -- relative positions ---------------------------------------------------------------------------------------


def draw_positions(chosen: Chosen, path: str | os.PathLike[str]) -> None:
    """Where dependents stand relative to their head words, for each relation (P4 Figure 1)."""
    press(lambda: positions_picture(chosen), path)


def positions_picture(chosen: Chosen) -> Any:
    data = chosen.artifact.data
    relations = [k for k in data["relations"] if data["counts"][k]]
    if not relations:
        raise InputError("This file of heads has no pairs of words: there are no positions to draw.")
    across = min(2, len(relations))
    down = math.ceil(len(relations) / across)
    wide, high = PANEL
    gap, head, foot = 0.55, 0.42, 0.38
    ruler = Ruler()
    title = "Where dependents stand, in words before or behind their head word"
    notes = [f"{chosen.corpus} · {chosen.model}"]
    legend = [
        ("square", f"max λ: what a look at one fixed relative position finds{either(chosen)}"),
        ("dashes", f"what a syntactic head must exceed: max λ + {chosen.syntactic:g}"),
        ("dot", f"the best head of {chosen.model}"),
    ]
    room = max(
        ruler(title, TEXT, "bold"), *(ruler(line, 8.0) for line in notes), *(ruler(x, 8.0) + 0.4 for _, x in legend)
    )
    left = MARGIN + 0.3
    width = max(left + wide * across + gap * (across - 1), MARGIN + room) + MARGIN
    top = MARGIN + 0.34 + 0.19 * len(notes)
    bottom = top + down * (head + high + foot)
    height = bottom + 0.2 * len(legend) + MARGIN
    figure, axes = canvas(width, height)
    axes.text(MARGIN, MARGIN + 0.12, title, fontsize=TEXT, fontweight="bold", color=INK)
    for place, line in enumerate(notes):
        axes.text(MARGIN, MARGIN + 0.33 + 0.19 * place, line, fontsize=8, color=QUIET)
    tallest = max(top_of(chosen, relation) for relation in relations)
    for place, relation in enumerate(relations):
        row, column = divmod(place, across)
        x = left + column * (wide + gap)
        y = top + row * (head + high + foot) + head
        panel = figure.add_axes((x / width, 1 - (y + high) / height, wide / width, high / height))
        distribution(panel, chosen, relation, tallest)
        said = f"{data['counts'][relation]} pairs · max λ {data['lambda_max'][relation]:.2f} · "
        axes.text(x, y - 0.24, clean(relation), fontsize=SMALL + 1, fontweight="bold", color=INK)
        axes.text(x, y - 0.07, said + best_head(chosen, relation)[1], fontsize=8, color=QUIET)
    for place, (sign, line) in enumerate(legend):
        middle = bottom + 0.2 * place
        key(axes, sign, MARGIN, middle)
        axes.text(MARGIN + 0.35, middle, line, fontsize=8, color=QUIET, va="center_baseline")
    return figure


def key(axes: Any, sign: str, left: float, middle: float) -> None:
    """A sign of the legend, as it looks in the panels."""
    from matplotlib.patches import Rectangle

    if sign == "square":
        axes.add_patch(Rectangle((left + 0.06, middle - 0.06), 0.12, 0.12, facecolor=SYNT, edgecolor="none"))
    elif sign == "dashes":
        axes.plot([left, left + 0.25], [middle, middle], color=INK, linewidth=0.9, linestyle=DASHES)
    else:
        axes.plot([left, left + 0.25], [middle, middle], color=POS, linewidth=0.9)
        axes.plot([left + 0.125], [middle], "o", markersize=5, color=POS)


def either(chosen: Chosen) -> str:
    """A causal model finds a pair from the later word, on whichever side that is."""
    return "" if chosen.artifact.data["direction"].startswith("dependent") else ", on both sides together"


def best_head(chosen: Chosen, relation: str) -> tuple[float, str]:
    """α of the head that finds the relation most often, and its name."""
    table = np.array(chosen.artifact.data["alpha"][relation])
    row, head = (int(i) for i in np.unravel_index(int(table.argmax()), table.shape))
    return float(table[row, head]), f"head {chosen.blocks[row]}.{head}: α {table[row, head]:.2f}"


def top_of(chosen: Chosen, relation: str) -> float:
    most = chosen.artifact.data["lambda_max"][relation] + chosen.syntactic
    return min(1.02, max(most, best_head(chosen, relation)[0]) * 1.12)


def distribution(panel: Any, chosen: Chosen, relation: str, tallest: float) -> None:
    """λ of one relation as bars, the bar that one fixed position reaches in colour."""
    data = chosen.artifact.data
    shares: dict[int, float] = dict.fromkeys(range(-FURTHEST - 1, FURTHEST + 2), 0.0)
    for distance, share in data["lambda"][relation].items():
        shares[max(-FURTHEST - 1, min(FURTHEST + 1, int(distance)))] += share
    exact = {int(distance): share for distance, share in data["lambda"][relation].items()}
    causal = bool(either(chosen))
    reach = {d: share + (exact.get(-d, 0.0) if causal else 0.0) for d, share in exact.items()}
    first = max(reach, key=lambda d: (reach[d], -abs(d), d))
    first = max(-FURTHEST - 1, min(FURTHEST + 1, first))
    marked = {first, -first} if causal else {first}
    for distance, share in shares.items():
        beyond = abs(distance) > FURTHEST
        colour = SYNT if distance in marked else FAINT if beyond else "#8f929a"
        panel.bar(distance, share, width=0.78, color=colour, linewidth=0)
    level = data["lambda_max"][relation] + chosen.syntactic
    best = best_head(chosen, relation)[0]
    panel.axhline(level, color=INK, linewidth=0.9, linestyle=DASHES)
    panel.axhline(best, color=POS, linewidth=0.9)
    panel.plot([FURTHEST + 1], [best], "o", markersize=5, color=POS, clip_on=False)
    panel.set_xlim(-FURTHEST - 1.6, FURTHEST + 1.6)
    panel.set_ylim(0, tallest)
    ticks = [-FURTHEST - 1, -6, -4, -2, 0, 2, 4, 6, FURTHEST + 1]
    names = [f"≤−{FURTHEST + 1}", *(signed(t) for t in ticks[1:-1]), f"≥+{FURTHEST + 1}"]
    panel.set_xticks(ticks, names, fontsize=7, color=QUIET)
    panel.tick_params(axis="both", length=2, color=FAINT, pad=2)
    panel.yaxis.set_major_locator(steps())
    panel.tick_params(axis="y", labelsize=7, labelcolor=QUIET)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_color(FAINT)


def steps() -> Any:
    from matplotlib.ticker import MultipleLocator

    return MultipleLocator(0.2)


# -- terminal -------------------------------------------------------------------------------------------------


def render_heads(chosen: Chosen, console: Console | None = None) -> None:
    """Print how well each relation is found, the heads of every block, and the blocks that have none."""
    console = console or screen()
    look = TerminalStyle.of(console)
    lines = [f"pairs: from the {chosen.artifact.data['direction']}"]
    lines += [f"{number} {rule}" for number, rule in chosen.rules()]
    say(console, Text(f"{chosen.model}{look.dot}{chosen.corpus}", style="bold"))
    for line in lines:
        say(console, Text(plain(line, look), style="dim"))
    console.print()
    say(console, relations_table(chosen, look))
    console.print()
    say(console, blocks_table(chosen, look))
    console.print()
    about = chosen.artifact.about
    for number, what in (
        (about.get("texts cut"), "cut at the model's limit"),
        (about.get("texts left out"), "left out"),
    ):
        if number:
            say(console, Text(f"{number} text{'s were' if number > 1 else ' was'} {what}", style=look.warning))
    if chosen.empty:
        hint = "" if chosen.top else "; --top 1 gives every block its best"
        say(console, Text(plain(f"no head in {listed(chosen.empty)}{hint}", look), style=look.warning))
        console.print()


def say(console: Console, what: Any) -> None:
    console.print(Padding(what, (0, 1)))


def plain(text: str, look: TerminalStyle) -> str:
    """The text for a stream that may lack Greek letters."""
    if not look.ascii:
        return text
    for sign, word in (("α", "alpha"), ("λ", "lambda"), ("−", "-"), ("–", "-")):
        text = text.replace(sign, word)
    return text


def table_of(*columns: tuple[str, bool]) -> Table:
    """Names of columns, and whether they hold numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for name, number in columns:
        table.add_column(name, justify="right" if number else "left")
    return table


def relations_table(chosen: Chosen, look: TerminalStyle) -> Table:
    data = chosen.artifact.data
    table = table_of(("relation", False), ("pairs", True), (plain("max λ", look), True), ("best head", False))
    for relation in data["relations"]:
        count = data["counts"][relation]
        if not count:
            table.add_row(clean(relation), "0", "", Text("no pair in the corpus", style="dim"))
            continue
        alpha, name = best_head(chosen, relation)
        passes = alpha > data["lambda_max"][relation] + chosen.syntactic
        style = "bold" if passes else ""
        table.add_row(
            clean(relation), str(count), f"{data['lambda_max'][relation]:.2f}", Text(plain(name, look), style=style)
        )
    return table


def blocks_table(chosen: Chosen, look: TerminalStyle) -> Table:
    """The heads of every block: how many, what each looks at, and how often."""
    names = [plain(f"{kind} heads, with α", look) for kind in ("syntactic", "positional")]
    table = table_of(("block", True), ("heads", True), (names[0], False), (names[1], False))
    margins, relations = chosen.margins
    alpha, shares, offsets = chosen.artifact.data["alpha"], chosen.shares, chosen.offsets
    for row, block in enumerate(chosen.blocks):
        synt = sorted(np.flatnonzero(chosen.synt[row]).tolist(), key=lambda h: -margins[row, h])
        pos = sorted(np.flatnonzero(chosen.pos[row]).tolist(), key=lambda h: -shares[row, h])
        looks = (
            [f"{h}: {clean(relations[row][h])} {alpha[relations[row][h]][row][h]:.2f}" for h in synt],
            [f"{h}: {signed(int(offsets[row, h]))} {shares[row, h]:.2f}" for h in pos],
        )
        nothing = look.either("–", "-")
        number = len({*synt, *pos})
        cells = [str(number), *(plain(", ".join(each), look) or nothing for each in looks)]
        table.add_row(block, *(Text(each, style="dim" if not number else "") for each in cells))
    return table
