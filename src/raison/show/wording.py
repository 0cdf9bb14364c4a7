"""What is said about an explanation in words and numbers, for the terminal.

Of the diagnostics, numbers or numbers by name, those are shown whose names tell how far the scores can be trusted
(TELLING).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from raison.core.evaluation import target_probability
from raison.core.records import Explanation, Target
from raison.show.spans import selection

__all__ = ["clean", "headline", "measured", "named", "notes", "number", "provenance", "share", "short", "value_name"]

TELLING = ("gap", "error", "fit", "r2")  # words of names, the most telling first
WORK = ("samples", "evaluations", "steps")  # what that took, said along with it
FIGURES = 4  # diagnostics in a line

# explicit reordering may show numbers and words in a false order
REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def clean(text: str) -> str:
    """The text, character by character, without those that command a terminal: they become visible signs."""
    return "".join(char if char.isprintable() or char in " \n\t" else sign(char) for char in text)


def sign(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if char in "\u2028\u2029":
        return "␤"
    if code < 0xA0 or char in REORDERING or 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return char  # unusual spaces, joiners of emoji, direction marks: harmless


def short(text: str, size: int, dots: str = "…") -> str:
    """A name on one line, at most `size` characters long."""
    line = " ".join(clean(text).split()) or "␣"
    return line if len(line) <= size else line[: size - len(dots)].rstrip() + dots


def number(score: float, largest: float) -> str:
    """A signed number with four digits of the largest score, so that a column of them lines up."""
    if largest == 0 or not math.isfinite(largest):
        return "0"
    exponent = math.floor(math.log10(largest))
    if -4 <= exponent <= 6:
        return f"{score:+.{max(0, 3 - exponent)}f}"
    return f"{score:+.3e}"


def share(probability: float) -> str:
    """A probability in per cent; a value outside 0..1 is a regression's and stays a number."""
    if not 0 <= probability <= 1:
        return f"{probability:.4g}"
    if 0 < probability < 0.0005:
        return "<0.1 %"
    return ">99.9 %" if 0.9995 < probability < 1 else f"{100 * probability:.1f} %"


def named(text: str, target: Target) -> str:
    """An outcome; written text and answers in quotes, since their spaces matter."""
    return f'"{text}"' if target.generated or target.kind == "span" else text


def headline(explanation: Explanation) -> list[str]:
    """What is explained, with its probability; and the prediction, where it is something else."""
    target, prediction = explanation.target, explanation.prediction
    first = named(target.text, target) or target.kind
    probability = target_probability(prediction)
    if probability is not None:
        first += f" {share(probability)}"
    elif prediction is not None and prediction.is_target and prediction.value is not None:  # of a regression
        first += f" {prediction.value:.4g}"
    if target.contrast is not None:
        first += f" rather than {named(target.contrast_text, target)}"

    parts = [first]
    if prediction is not None and not prediction.is_target:
        rival = f"predicted {named(prediction.text, target)}"
        if prediction.probability:
            rival += f" {share(prediction.probability)}"
        parts = [f"target {first}", rival]
    return [clean(part) for part in parts]


def value_name(target: Target) -> str:
    """What the numbers are; against a contrast they are differences, and that of logarithms is one of odds."""
    if target.contrast is not None and target.output == "log_prob":
        return "log odds"
    plain = target.output.replace("_", " ").replace("prob", "probability")
    return f"{plain} difference" if target.contrast is not None else plain


def provenance(explanation: Explanation) -> list[str]:
    """How the scores came about: method, units, removal, and what they explain."""
    parts = [explanation.method, f"{explanation.units.level} units"]
    if not selection(explanation):  # it is in or out: there is no value behind it
        parts.append(f"value: {value_name(explanation.target)}")
    if explanation.removal:
        parts.insert(2, f"removal: {explanation.removal}")
    if explanation.certificate is not None:
        parts.append(f"rule: {explanation.certificate.rule}")
    return [clean(part) for part in parts]


def notes(explanation: Explanation, unread: str = "in grey") -> list[str]:
    """What a reader must know before trusting the picture; `unread` says how unread text looks."""
    found = []
    if cut := explanation.encoding.truncated:
        found.append(f"{cut} token{'s were' if cut > 1 else ' was'} cut off: the model did not read the text {unread}.")
    if not explanation.scores.any() and explanation.certificate is None and not selection(explanation):
        found.append("All scores are zero.")
    return [clean(note) for note in [*found, *explanation.notes]]


def measured(explanation: Explanation) -> list[str]:
    """The most telling diagnostics, such as `completeness gap 0.0012`."""
    if explanation.certificate is not None:  # it says more
        return []
    flat: dict[str, Any] = {}
    for name, value in explanation.diagnostics.items():
        inner = value if isinstance(value, Mapping) else {"": value}
        flat |= {f"{name} {key}".replace("_", " ").strip(): each for key, each in inner.items()}
    kinds = {name: value for name, value in flat.items() if type(value) in (int, float) and math.isfinite(value)}
    telling, work = ([name for word in words for name in kinds if word in name.split()] for words in (TELLING, WORK))
    order = [*telling, *work] if telling else []
    said = {name: f"{value:.0f}" if float(value).is_integer() else f"{value:.3g}" for name, value in kinds.items()}
    return [clean(f"{name} {said[name]}") for name in dict.fromkeys(order)][:FIGURES]
