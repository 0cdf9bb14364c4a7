"""What the page says about several methods that explain the same: facts, agreement of pairs, meaning of colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.records import Explanation
from raison.show.agreement_measures import (
    MethodAgreement,
    MethodPair,
    agreement_of_pairs,
    count_of_strongest_units,
    least_tau_alike,
)
from raison.show.agreement_sentences import (
    agreement_footnotes,
    measures_of_agreement,
    method_titles,
    signed_correlation,
    statement_of_agreement,
)
from raison.show.colour_scale import has_negative_scores
from raison.show.explanation_sentences import (
    target_value_name,
)
from raison.show.html.explanation_words import facts_of_explanation
from raison.show.method_difference import NO_DIFFERENCE, difference_of_methods
from raison.show.text_formats import (
    DOT,
    clean_text,
    with_wide_minus,
)

__all__ = ["MethodsWords", "words_of_methods"]


@dataclass(frozen=True)
class MethodsWords:
    """What is said about several methods that explain the same thing."""

    names: list[str]
    facts: dict[str, str]  # that they share
    facts_of_methods: list[str]  # what each does not share, in a line
    statement: str
    colours: str  # what the colours mean
    measures: list[MeasureWords]
    pairs: list[MethodPairWords]  # of every two methods, by their places, the smaller first
    footnotes: list[str]
    no_difference: str


@dataclass(frozen=True)
class MeasureWords:
    key: str
    title: str
    meaning: str


@dataclass(frozen=True)
class MethodPairWords:
    """How far two methods agree, for the table, and what their difference is."""

    methods: MethodPair
    comparable: bool  # neither is constant
    alike: bool
    cells: dict[str, AgreementCellWords]  # by measure
    difference: str  # what its numbers are


@dataclass(frozen=True)
class AgreementCellWords:
    figure: str
    size: float  # 0..1, how dark the cell is
    negative: bool


def words_of_methods(explanations: Sequence[Explanation]) -> MethodsWords:
    """All that the page says about several methods besides what it says about each."""
    names = method_titles(explanations)
    agreements = agreement_of_pairs([explanation.scores for explanation in explanations])
    facts_of_methods = []
    for explanation, name in zip(explanations, names, strict=True):
        facts_of_methods.append(facts_of_one_method(explanation, name))
    pairs = []
    for pair, agreement in agreements.items():
        pairs.append(words_of_method_pair(explanations, names, pair, agreement))
    return MethodsWords(
        names=names,
        facts=shared_facts_of_methods(explanations[0]),
        facts_of_methods=facts_of_methods,
        statement=statement_of_agreement(explanations, agreements),
        colours=meaning_of_method_colours(explanations),
        measures=words_of_measures(len(explanations[0].units)),
        pairs=pairs,
        footnotes=agreement_footnotes(explanations, agreements),
        no_difference=NO_DIFFERENCE,
    )


def words_of_measures(size: int) -> list[MeasureWords]:
    """The measures of agreement, and what their numbers mean."""
    bold = ""
    if least_tau_alike(size) <= 1:
        bold = " Bold: alike."
    measures = []
    for key, each in measures_of_agreement(size).items():
        meaning = f"{each.title}: {each.meaning}.{bold}"
        measures.append(MeasureWords(key, each.title, meaning))
    return measures


def shared_facts_of_methods(explanation: Explanation) -> dict[str, str]:
    """How explanations came about that differ in their method only."""
    facts = facts_of_explanation(explanation)
    shared: dict[str, str] = {}
    for name in ("predicted", "model", "units"):
        if name in facts:
            shared[name] = facts[name]
    shared["value"] = target_value_name(explanation.target)
    return shared


def facts_of_one_method(explanation: Explanation, name: str) -> str:
    """The parameters and the removal of a method, where its name does not say them."""
    facts = []
    if explanation.method != name:
        facts.append(explanation.method)
    if explanation.removal:
        facts.append(f"removal: {explanation.removal}")
    return clean_text(DOT.join(facts))


def meaning_of_method_colours(explanations: Sequence[Explanation]) -> str:
    """What the colours of several methods mean."""
    colours = "The deeper the orange, the higher the score"
    if any(has_negative_scores(explanation.scores) for explanation in explanations):
        colours = "Orange speaks for the target, blue against it"
    sentence = f"{colours}; full colour is each method's strongest score."
    if any(explanation.selected is not None for explanation in explanations):
        sentence += " Underlined: selected."
    return sentence


def words_of_method_pair(
    explanations: Sequence[Explanation],
    names: Sequence[str],
    pair: MethodPair,
    agreement: MethodAgreement,
) -> MethodPairWords:
    """How far two methods agree, and what the numbers of their difference are."""
    size = len(explanations[0].units)
    one, other = pair
    pair_names = (names[one], names[other])
    difference = difference_of_methods(explanations[one], explanations[other], pair_names)
    return MethodPairWords(
        methods=pair,
        comparable=agreement.tau is not None,
        alike=agreement.tau is not None and agreement.tau >= least_tau_alike(size),
        cells={
            "shared": words_of_shared_units(agreement.shared, size),
            "tau": words_of_correlation(agreement.tau),
            "rho": words_of_correlation(agreement.rho),
            "r": words_of_correlation(agreement.r),
        },
        difference=difference.meaning(),
    )


def words_of_shared_units(shared: int | None, size: int) -> AgreementCellWords:
    """How many of the strongest units two methods share."""
    if shared is None:
        return AgreementCellWords("–", 0.0, negative=False)
    share = shared / count_of_strongest_units(size)
    return AgreementCellWords(str(shared), share, negative=False)


def words_of_correlation(value: float | None) -> AgreementCellWords:
    """A correlation with its sign."""
    if value is None:
        return AgreementCellWords("–", 0.0, negative=False)
    figure = with_wide_minus(signed_correlation(value))
    return AgreementCellWords(figure, abs(value), negative=value < 0)
