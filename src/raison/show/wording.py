"""What is said about an explanation in words and numbers, in the terminal, in figures and on the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from raison.core.evaluation import target_probability
from raison.core.records import Explanation, Target
from raison.show.spans import selection

__all__ = [
    "CURLY",
    "STRAIGHT",
    "Headline",
    "Quotes",
    "clean",
    "headline",
    "headline_parts",
    "notes",
    "percent",
    "plural",
    "provenance",
    "provenance_facts",
    "quoted",
    "short",
    "signed_number",
    "telling_diagnostics",
    "value_name",
]

# Of the diagnostics those are shown whose names tell how far the scores can be trusted.
TELLING = ("gap", "error", "fit", "r2")  # words of names, the most telling first
WORK = ("samples", "evaluations", "steps")  # what that took, said along with it
MOST_DIAGNOSTICS = 4  # in a line

Quotes = tuple[str, str]
STRAIGHT: Quotes = ('"', '"')  # for a terminal, whose stream may carry no others
CURLY: Quotes = ("“", "”")

# explicit reordering may show numbers and words in a false order
REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


# -- characters and numbers --------------------------------------------------------------------------------


def clean(text: str) -> str:
    """The text, character by character, without those that command a terminal: they become visible signs."""
    return "".join(
        char if char.isprintable() or char in " \n\t" else visible_sign(char) for char in text
    )


def visible_sign(char: str) -> str:
    """What stands for a character that is not printable."""
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
    if len(line) <= size:
        return line
    return line[: size - len(dots)].rstrip() + dots


def plural(count: int, noun: str) -> str:
    """A number of things: `1 word`, `2 words`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def signed_number(score: float, largest: float) -> str:
    """A signed number with four digits of the largest score, so that a column of them lines up."""
    if largest == 0 or not math.isfinite(largest):
        return "0"
    exponent = math.floor(math.log10(largest))
    if -4 <= exponent <= 6:
        decimals = max(0, 3 - exponent)
        return f"{score:+.{decimals}f}"
    return f"{score:+.3e}"


def percent(probability: float) -> str:
    """A probability in per cent; a value outside 0..1 is a regression's and stays a number."""
    if not 0 <= probability <= 1:
        return f"{probability:.4g}"
    if 0 < probability < 0.0005:
        return "<0.1 %"
    if 0.9995 < probability < 1:
        return ">99.9 %"
    return f"{100 * probability:.1f} %"


# -- what is explained --------------------------------------------------------------------------------------


def quoted(text: str, target: Target, quotes: Quotes = STRAIGHT) -> str:
    """An outcome; written text and answers in quotes, since their spaces matter."""
    left, right = quotes
    return f"{left}{text}{right}" if target.generated or target.kind == "span" else text


@dataclass(frozen=True)
class Headline:
    """What is explained, in parts that may be empty."""

    outcome: str
    value: str  # its probability, or what a regression gives
    contrast: str  # `rather than negative`
    predicted: str  # with its probability, where it is something else than the outcome


def headline_parts(explanation: Explanation, quotes: Quotes = STRAIGHT) -> Headline:
    """What is explained, with its probability; and the prediction, where it is something else."""
    target, prediction = explanation.target, explanation.prediction
    value = contrast = predicted = ""
    probability = target_probability(prediction)
    if probability is not None:
        value = percent(probability)
    elif (
        prediction is not None and prediction.is_target and prediction.value is not None
    ):  # of a regression
        value = f"{prediction.value:.4g}"
    if target.contrast is not None:
        contrast = f"rather than {quoted(target.contrast_text, target, quotes)}"
    if prediction is not None and not prediction.is_target:
        predicted = quoted(prediction.text, target, quotes)
        if prediction.probability:
            predicted += f" {percent(prediction.probability)}"

    outcome = quoted(target.text, target, quotes) or target.kind
    return Headline(clean(outcome), value, clean(contrast), clean(predicted))


def headline(explanation: Explanation) -> list[str]:
    """The same as phrases: `positive 98.7 %`, or `target negative 1.3 %` and `predicted positive 98.7 %`."""
    parts = headline_parts(explanation)
    first = " ".join(filter(None, [parts.outcome, parts.value, parts.contrast]))
    if not parts.predicted:
        return [first]
    return [f"target {first}", f"predicted {parts.predicted}"]


def value_name(target: Target) -> str:
    """What the numbers are; against a contrast they are differences, and that of logarithms is one of odds."""
    if target.contrast is not None and target.output == "log_prob":
        return "log odds"
    plain = target.output.replace("_", " ").replace("prob", "probability")
    return f"{plain} difference" if target.contrast is not None else plain


# -- how the scores came about ------------------------------------------------------------------------------


def provenance_facts(explanation: Explanation) -> dict[str, str]:
    """How the scores came about: method, units, removal, and what they explain, by name."""
    facts = {"method": explanation.method, "units": explanation.units.level}
    if explanation.removal:
        facts["removal"] = explanation.removal
    if not selection(explanation):  # it is in or out: there is no value behind it
        facts["value"] = value_name(explanation.target)
    if explanation.certificate is not None:
        facts["rule"] = explanation.certificate.rule
    return {name: clean(fact) for name, fact in facts.items()}


def provenance(explanation: Explanation) -> list[str]:
    """The same as phrases: `occlusion`, `word units`, `removal: mask`, `value: logit`."""
    facts = provenance_facts(explanation)
    first = [facts.pop("method"), f"{facts.pop('units')} units"]
    return first + [f"{name}: {fact}" for name, fact in facts.items()]


def notes(explanation: Explanation, unread: str = "in grey") -> list[str]:
    """What a reader must know before trusting the picture; `unread` says how unread text looks."""
    sentences = []
    cut = explanation.encoding.truncated
    if cut:
        tokens = "1 token was" if cut == 1 else f"{cut} tokens were"
        sentences.append(f"{tokens} cut off: the model did not read the text {unread}.")
    if (
        not explanation.scores.any()
        and explanation.certificate is None
        and not selection(explanation)
    ):
        sentences.append("All scores are zero.")
    return [clean(sentence) for sentence in [*sentences, *explanation.notes]]


def telling_diagnostics(explanation: Explanation) -> list[str]:
    """The most telling diagnostics, such as `completeness gap 0.0012`, and what they took."""
    if explanation.certificate is not None:  # it says more
        return []
    numbers = dict(numeric_diagnostics(explanation.diagnostics))
    telling = names_with(numbers, TELLING)
    if not telling:
        return []
    names = dict.fromkeys([*telling, *names_with(numbers, WORK)])
    phrases = [clean(f"{name} {rounded_number(numbers[name])}") for name in names]
    return phrases[:MOST_DIAGNOSTICS]


def numeric_diagnostics(diagnostics: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Finite numbers with their names in words; numbers inside a mapping have its name before their own."""
    for name, value in diagnostics.items():
        inner = value if isinstance(value, Mapping) else {"": value}
        for key, number in inner.items():
            is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
            if is_number and math.isfinite(number):
                yield f"{name} {key}".replace("_", " ").strip(), number


def names_with(numbers: Mapping[str, float], words: tuple[str, ...]) -> list[str]:
    """The names that hold one of the words, those of the first word first."""
    return [name for word in words for name in numbers if word in name.split()]


def rounded_number(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.3g}"
