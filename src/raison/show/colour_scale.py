"""The colour scale of scores: relative weights, background and ink colours; orange for the target, blue against it.

Blue and orange stay apart under every common colour blindness. A weight is a score divided by the largest
|score| of its explanation, so 1 is always full colour. Differences of two methods are green and red, a light green
and a dark red, and never told by colour alone. page/scale.js holds the same numbers; a test compares them.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "AGAINST_TARGET",
    "DIFFERENCE_HUES",
    "FOR_TARGET",
    "GIVES_LESS",
    "GIVES_MORE",
    "METHOD_HUES",
    "PAPER_COLOURS",
    "SCORE_HUES",
    "SELECTED_COLOUR",
    "SILENT_WEIGHT",
    "HuePair",
    "background_colour",
    "has_negative_scores",
    "hexadecimal_colour",
    "ink_colour",
    "relative_weights",
]

RGB = tuple[int, int, int]
HuePair = tuple[RGB, RGB]  # above 0 and below

FOR_TARGET: RGB = (236, 122, 22)
AGAINST_TARGET: RGB = (36, 114, 214)
GIVES_MORE: RGB = (30, 180, 135)
GIVES_LESS: RGB = (184, 34, 28)
SELECTED_COLOUR: RGB = (217, 218, 222)  # behind what a model selected: neither for nor against
SCORE_HUES, DIFFERENCE_HUES = (
    (FOR_TARGET, AGAINST_TARGET),
    (GIVES_MORE, GIVES_LESS),
)  # hues above 0 and below
PAPER_COLOURS: dict[str, RGB] = {"light": (255, 255, 255), "dark": (27, 28, 31)}
# of methods in curves
METHOD_HUES = (
    "#1f5fa8",
    "#c2571a",
    "#2f7d4f",
    "#8a4fa3",
    "#a88a1f",
    "#5a5f68",
    "#b23a5e",
    "#1f8a96",
    "#6b4a2f",
    "#3d3d9e",
)
INK_COLOURS = ((0, 0, 0), (255, 255, 255))
SILENT_WEIGHT = 0.04  # weights below are not coloured: a tint that nobody can see is only noise


def relative_weights(scores: np.ndarray) -> np.ndarray:
    """[u] scores in -1..1, relative to the strongest; all 0 where every score is 0."""
    largest = float(np.abs(scores).max(initial=0.0))
    if largest > 0:
        return scores / largest
    return np.zeros(len(scores))


def has_negative_scores(scores: np.ndarray) -> bool:
    """True where the scale needs two hues: some score speaks against the target."""
    return bool((scores < 0).any())


def background_colour(weight: float, paper: RGB, hues: HuePair = SCORE_HUES) -> RGB | None:
    """The colour behind a unit: the paper, tinted in proportion to |weight|; None where it stays bare."""
    strength = min(1.0, abs(weight))
    if strength < SILENT_WEIGHT:
        return None
    above, below = hues
    hue = above if weight > 0 else below
    tinted = []
    for of_paper, of_hue in zip(paper, hue, strict=True):
        mixed = of_paper + (of_hue - of_paper) * strength
        tinted.append(int(mixed + 0.5))
    red, green, blue = tinted
    return red, green, blue


def ink_colour(colour: RGB) -> RGB:
    """Black or white, whichever reads better on `colour`: the better one always has a contrast above 4.5."""
    dark, light = INK_COLOURS
    if colour_contrast(dark, colour) >= colour_contrast(light, colour):
        return dark
    return light


def colour_contrast(one: RGB, other: RGB) -> float:
    """The WCAG contrast ratio of two colours, 1..21."""
    low, high = sorted((colour_luminance(one), colour_luminance(other)))
    return (high + 0.05) / (low + 0.05)


def colour_luminance(colour: RGB) -> float:
    """The relative luminance of a colour, 0..1, as the WCAG define it."""
    red, green, blue = (linear_colour_part(part) for part in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def linear_colour_part(part: int) -> float:
    """One of red, green and blue of sRGB, 0..255, in proportion to its light."""
    if part <= 10:
        return part / 255 / 12.92
    return float(((part / 255 + 0.055) / 1.055) ** 2.4)


def hexadecimal_colour(colour: RGB) -> str:
    """A colour as in a style sheet, such as `#ff8800`."""
    return "#{:02x}{:02x}{:02x}".format(*colour)
