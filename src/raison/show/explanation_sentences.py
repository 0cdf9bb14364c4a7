"""What is said about any explanation: its headline, provenance, notes and telling diagnostics; names of outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from raison.core.evaluation import target_probability
from raison.core.records import Explanation, Target
from raison.show.text_formats import STRAIGHT, Quotes, clean_text, probability_in_percent
from raison.show.text_pieces import is_unproved_selection

__all__ = [
    "ExplanationHeadline",
    "explanation_notes",
    "headline_of_explanation",
    "headline_phrases",
    "provenance_facts",
    "provenance_phrases",
    "quoted_outcome",
    "target_value_name",
    "telling_diagnostics",
]

# Of the diagnostics those are shown whose names tell how far the scores can be trusted.
TELLING = ("gap", "error", "fit", "r2")  # words of names, the most telling first
WORK = ("samples", "evaluations", "steps")  # what that took, said along with it
MOST_DIAGNOSTICS = 4  # in a line


# -- what is explained --------------------------------------------------------------------------------------


def quoted_outcome(text: str, target: Target, quotes: Quotes = STRAIGHT) -> str:
    """An outcome; written text and answers in quotes, since their spaces matter."""
    left, right = quotes
    if target.generated or target.kind == "span":
        return f"{left}{text}{right}"
    return text


@dataclass(frozen=True)
class ExplanationHeadline:
    """What is explained, in parts that may be empty."""

    outcome: str
    value: str  # its probability, or what a regression gives
    contrast: str  # `rather than negative`
    predicted: str  # with its probability, where it is something else than the outcome


def headline_of_explanation(
    explanation: Explanation, quotes: Quotes = STRAIGHT
) -> ExplanationHeadline:
    """What is explained, with its probability; and the prediction, where it is something else."""
    target, prediction = explanation.target, explanation.prediction
    outcome = quoted_outcome(target.text, target, quotes) or target.kind
    contrast = ""
    if target.contrast is not None:
        contrast = f"rather than {quoted_outcome(target.contrast_text, target, quotes)}"
    predicted = ""
    if prediction is not None and not prediction.is_target:
        predicted = quoted_outcome(prediction.text, target, quotes)
        if prediction.probability:
            predicted += f" {probability_in_percent(prediction.probability)}"
    return ExplanationHeadline(
        outcome=clean_text(outcome),
        value=value_of_target(explanation),
        contrast=clean_text(contrast),
        predicted=clean_text(predicted),
    )


def value_of_target(explanation: Explanation) -> str:
    """The probability of the target, or what a regression gives; empty where neither is known."""
    prediction = explanation.prediction
    probability = target_probability(prediction)
    if probability is not None:
        return probability_in_percent(probability)
    if prediction is None or not prediction.is_target or prediction.value is None:
        return ""
    return f"{prediction.value:.4g}"


def headline_phrases(explanation: Explanation) -> list[str]:
    """The same as phrases: `positive 98.7 %`, or `target negative 1.3 %` and `predicted positive 98.7 %`."""
    headline = headline_of_explanation(explanation)
    parts = [headline.outcome, headline.value, headline.contrast]
    first = " ".join(part for part in parts if part)
    if not headline.predicted:
        return [first]
    return [f"target {first}", f"predicted {headline.predicted}"]


def target_value_name(target: Target) -> str:
    """What the numbers are; against a contrast they are differences, and that of logarithms is one of odds."""
    if target.contrast is not None and target.output == "log_prob":
        return "log odds"
    plain = target.output.replace("_", " ").replace("prob", "probability")
    if target.contrast is not None:
        return f"{plain} difference"
    return plain


# -- how the scores came about ------------------------------------------------------------------------------


def provenance_facts(explanation: Explanation) -> dict[str, str]:
    """How the scores came about: method, units, removal, and what they explain, by name."""
    facts = {"method": explanation.method, "units": explanation.units.level}
    if explanation.removal:
        facts["removal"] = explanation.removal
    if not is_unproved_selection(explanation):  # it is in or out: there is no value behind it
        facts["value"] = target_value_name(explanation.target)
    if explanation.certificate is not None:
        facts["rule"] = explanation.certificate.rule
    return {name: clean_text(fact) for name, fact in facts.items()}


def provenance_phrases(explanation: Explanation) -> list[str]:
    """The same as phrases: `occlusion`, `word units`, `removal: mask`, `value: logit`."""
    facts = provenance_facts(explanation)
    method = facts.pop("method")
    units = facts.pop("units")
    others = [f"{name}: {fact}" for name, fact in facts.items()]
    return [method, f"{units} units", *others]


def explanation_notes(explanation: Explanation, unread: str = "in grey") -> list[str]:
    """What a reader must know before trusting the picture; `unread` says how unread text looks."""
    sentences = []
    cut = explanation.encoding.truncated
    if cut:
        tokens = "1 token was" if cut == 1 else f"{cut} tokens were"
        sentences.append(f"{tokens} cut off: the model did not read the text {unread}.")
    is_scored = explanation.certificate is None and not is_unproved_selection(explanation)
    if is_scored and not explanation.scores.any():
        sentences.append("All scores are zero.")
    return [clean_text(sentence) for sentence in [*sentences, *explanation.notes]]


def telling_diagnostics(explanation: Explanation) -> list[str]:
    """The most telling diagnostics, such as `completeness gap 0.0012`, and what they took."""
    if explanation.certificate is not None:  # it says more
        return []
    numbers = dict(numeric_diagnostics(explanation.diagnostics))
    telling = diagnostics_named_with(numbers, TELLING)
    if not telling:
        return []
    names = dict.fromkeys([*telling, *diagnostics_named_with(numbers, WORK)])
    phrases = [clean_text(f"{name} {rounded_diagnostic(numbers[name])}") for name in names]
    return phrases[:MOST_DIAGNOSTICS]


def numeric_diagnostics(diagnostics: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Finite numbers with their names in words; numbers inside a mapping have its name before their own."""
    for name, value in diagnostics.items():
        inner = value if isinstance(value, Mapping) else {"": value}
        for key, number in inner.items():
            is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
            if is_number and math.isfinite(number):
                full_name = f"{name} {key}".replace("_", " ").strip()
                yield full_name, number


def diagnostics_named_with(numbers: Mapping[str, float], words: tuple[str, ...]) -> list[str]:
    """The names that hold one of the words, those of the first word first."""
    names = []
    for word in words:
        names += [name for name in numbers if word in name.split()]
    return names


def rounded_diagnostic(value: float) -> str:
    """A number with three digits; a whole number with all of them."""
    if float(value).is_integer():
        return f"{value:.0f}"
    return f"{value:.3g}"
