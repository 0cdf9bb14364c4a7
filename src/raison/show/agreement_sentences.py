"""What is said about how far methods agree: their names and correlations, who agrees with whom, who stands apart,
and footnotes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.records import Explanation
from raison.show.agreement_measures import (
    MethodAgreement,
    MethodPair,
    PairAgreements,
    close_method_pairs,
    count_of_strongest_units,
    least_tau_alike,
    methods_apart,
    scores_are_constant,
)
from raison.show.colour_scale import has_negative_scores
from raison.show.text_formats import clean_text

__all__ = [
    "AgreementMeasure",
    "agreement_footnotes",
    "join_method_names",
    "measures_of_agreement",
    "method_titles",
    "signed_correlation",
    "statement_of_agreement",
]

MOST_NAMES = 4  # in a sentence


@dataclass(frozen=True)
class AgreementMeasure:
    """A measure of agreement: what it is called, also in ASCII, and what its numbers mean."""

    title: str
    ascii_title: str
    meaning: str


def measures_of_agreement(size: int) -> dict[str, AgreementMeasure]:
    """The measures of agreement about `size` units, by the fields of `MethodAgreement`."""
    strongest = count_of_strongest_units(size)
    return {
        "shared": AgreementMeasure(
            title="Strongest",
            ascii_title=f"how many of the strongest {strongest} are the same",
            meaning=f"how many of the {strongest} strongest units of both are the same, on the same side",
        ),
        "tau": AgreementMeasure(
            title="Kendall τ-b",
            ascii_title="Kendall tau-b",
            meaning="of two units, do both put the same one first? 1 always, 0 as often as not, −1 never",
        ),
        "rho": AgreementMeasure(
            title="Spearman ρ",
            ascii_title="Spearman rho",
            meaning="correlation of the ranks, from −1 to 1",
        ),
        "r": AgreementMeasure(
            title="Pearson r",
            ascii_title="Pearson r",
            meaning="correlation of the scores, from −1 to 1",
        ),
    }


# -- names --------------------------------------------------------------------------------------------------


def method_titles(explanations: Sequence[Explanation]) -> list[str]:
    """A name for each method, as short as they can be told apart: without parameters, with them, with the removal."""
    specs, bare_names, with_removal = [], [], []
    for explanation in explanations:
        spec = clean_text(explanation.method)
        bare_name, _, _ = spec.partition("(")
        specs.append(spec)
        bare_names.append(bare_name)
        if explanation.removal:
            spec = f"{spec}, {clean_text(explanation.removal)}"
        with_removal.append(spec)

    for names in (bare_names, specs, with_removal):
        if len(set(names)) == len(names):
            return names
    return [f"{name} #{place}" for place, name in enumerate(with_removal, start=1)]


def join_method_names(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`; many are cut short."""
    shown = list(names)
    if len(names) > MOST_NAMES:
        first = names[: MOST_NAMES - 1]
        shown = [*first, f"{len(names) - len(first)} more"]
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def names_of_constant_methods(explanations: Sequence[Explanation]) -> list[str]:
    """The methods that give every unit the same score."""
    names = []
    for name, explanation in zip(method_titles(explanations), explanations, strict=True):
        if scores_are_constant(explanation.scores):
            names.append(name)
    return names


def names_of_unsigned_methods(explanations: Sequence[Explanation]) -> list[str]:
    """The methods that give no negative scores."""
    names = []
    for name, explanation in zip(method_titles(explanations), explanations, strict=True):
        if not has_negative_scores(explanation.scores):
            names.append(name)
    return names


def correlation_in_hundredths(value: float) -> str:
    """A correlation with two decimals, as the table of agreement rounds it; without a minus before 0.00."""
    return f"{round(value, 2) + 0.0:.2f}"


def signed_correlation(value: float) -> str:
    """A correlation with two decimals and its sign, as it stands in the table."""
    return f"{round(value, 2) + 0.0:+.2f}"


# -- who agrees with whom -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClosestMethods:
    """The two methods that have most in common, by their orders or else by their strongest units."""

    names: str  # `a and b`
    shared: int  # of the strongest units
    tau: float
    by_order: bool  # closest by tau-b
    level: str  # what the units are
    size: int  # units

    @property
    def strongest(self) -> int:
        """How many units count as the strongest."""
        return count_of_strongest_units(self.size)


def statement_of_agreement(explanations: Sequence[Explanation], agreements: PairAgreements) -> str:
    """Who agrees with whom, in a sentence or two; `agreements` holds every pair."""
    units = explanations[0].units
    if len(units) < 2:
        return f"There is only one {units.level}: nothing to compare."

    closest = closest_methods(explanations, agreements)
    constant = names_of_constant_methods(explanations)
    verb = "give"
    if len(constant) == 1:
        verb = "gives"
    without_order = f"{join_method_names(constant)} {verb} every {units.level} the same score."

    if closest is None:
        nothing = "There is nothing to compare."
        return f"{without_order} {nothing}" if constant else nothing
    statement = statement_of_all_methods(explanations, agreements, closest)
    return f"{statement} {without_order}" if constant else statement


def statement_of_all_methods(
    explanations: Sequence[Explanation], agreements: PairAgreements, closest: ClosestMethods
) -> str:
    """What the closest pair shares, and what that says about all methods."""
    level, size = closest.level, closest.size
    bound = least_tau_alike(size)
    two_methods = len(explanations) == 2
    agree_most = f"{closest.names} {closest_methods_in_words(closest)}"

    if bound > 1:
        if two_methods:
            agree_most = f"{closest.names} {agreement_on_strongest_units(closest)}"
        return f"{agree_most}; {size} {level}s are too few to tell orders from chance."
    if two_methods:
        return statement_of_two_methods(closest)
    if not close_method_pairs(agreements, size):
        return f"No two methods agree more than chance would; {agree_most}."

    taus = [agreement.tau for agreement in agreements.values() if agreement.tau is not None]
    if min(taus) >= bound:
        return f"All methods order the {level}s alike; {agree_most}."
    names = method_titles(explanations)
    apart = [names[place] for place in methods_apart(agreements, size)]
    if not apart:
        return f"{agree_most}; every method is close to at least one other."
    verb = "stand"
    if len(apart) == 1:
        verb = "stands"
    return f"{agree_most}; {join_method_names(apart)} {verb} apart."


def statement_of_two_methods(closest: ClosestMethods) -> str:
    """How far two methods agree about the strongest units and about the order of all."""
    bound = least_tau_alike(closest.size)
    alike = closest.tau >= bound
    order = f"do not order the {closest.level}s alike"
    if alike:
        order = f"order the {closest.level}s alike"
    elif closest.tau <= -bound:
        order = f"order the {closest.level}s in reverse"

    share_some = closest.shared > 0
    conjunction = "and" if share_some == alike else "but"
    return f"{closest.names} {agreement_on_strongest_units(closest)} {conjunction} {order}."


def closest_methods(
    explanations: Sequence[Explanation], agreements: PairAgreements
) -> ClosestMethods | None:
    """The pair that is closest by order; by its strongest units, if only these are closer than chance would have them.

    None where no pair can be compared.
    """
    ordered = {}
    for pair, agreement in agreements.items():
        if agreement.tau is not None:
            ordered[pair] = agreement
    if not ordered:
        return None

    def by_tau(pair: MethodPair) -> tuple[float, int]:
        return tau_of_agreement(ordered[pair]), shared_of_agreement(ordered[pair])

    def by_strongest(pair: MethodPair) -> tuple[int, float]:
        return shared_of_agreement(ordered[pair]), tau_of_agreement(ordered[pair])

    units = explanations[0].units
    near = close_method_pairs(agreements, len(units))
    pair = max(ordered, key=by_tau)
    by_order = not near or tau_of_agreement(ordered[pair]) >= least_tau_alike(len(units))
    if not by_order:
        pair = max(near, key=by_strongest)

    names = method_titles(explanations)
    first, second = pair
    return ClosestMethods(
        names=f"{names[first]} and {names[second]}",
        shared=shared_of_agreement(ordered[pair]),
        tau=tau_of_agreement(ordered[pair]),
        by_order=by_order,
        level=units.level,
        size=len(units),
    )


def tau_of_agreement(agreement: MethodAgreement) -> float:
    """The tau-b of a pair, below every other where it has none."""
    return -2.0 if agreement.tau is None else agreement.tau


def shared_of_agreement(agreement: MethodAgreement) -> int:
    """How many of the strongest units two methods share; 0 where that is not defined."""
    return agreement.shared or 0


def closest_methods_in_words(closest: ClosestMethods) -> str:
    """What the closest pair of methods has in common: first the measure by which it is the closest, then the other.

    `order the words most alike (tau-b 0.65) but share only 1 of the 3 strongest`.
    """
    shared, strongest, level = closest.shared, closest.strongest, closest.level
    tau = correlation_in_hundredths(closest.tau)
    if not closest.by_order:
        return (
            f"share the most of the strongest {level}s ({shared} of {strongest}) but order the {level}s no more alike "
            f"than chance would (tau-b {tau})"
        )

    order = f"order the {level}s most alike (tau-b {tau})"
    if shared == strongest or strongest == 1:
        conjunction = "and" if shared else "but"
        return f"{order} {conjunction} {agreement_on_strongest_units(closest)}"
    if 2 * shared >= strongest:
        return f"{order} and share {shared} of the {strongest} strongest"
    if shared:
        return f"{order} but share only {shared} of the {strongest} strongest"
    return f"{order} but share none of the {strongest} strongest"


def agreement_on_strongest_units(closest: ClosestMethods) -> str:
    """`agree on 4 of the 5 strongest words`."""
    shared, strongest, level = closest.shared, closest.strongest, closest.level
    if strongest == 1:
        verb = "agree on" if shared else "differ in"
        return f"{verb} the strongest {level}"
    if shared == strongest:
        return f"agree on the {strongest} strongest {level}s"
    return f"agree on {shared or 'none'} of the {strongest} strongest {level}s"


# -- what words and numbers mean ----------------------------------------------------------------------------


def agreement_footnotes(
    explanations: Sequence[Explanation], agreements: PairAgreements
) -> list[str]:
    """What the words and numbers of an agreement mean."""
    if all(agreement.tau is None for agreement in agreements.values()):
        return []
    units = explanations[0].units
    size = len(units)
    bound = least_tau_alike(size)
    sentences = []
    if bound <= 1:
        sentences.append(
            f"Alike: tau-b of {bound:.3f} or more, which unrelated orders of {size} {units.level}s rarely reach."
        )
        if len(explanations) > 2 and methods_apart(agreements, size):
            sentences.append(
                "Apart: alike to none, and sharing no more of the strongest with any than chance would."
            )
    if any(agreement.by_size for agreement in agreements.values()):
        sentences.append(agreement_note_on_sizes(names_of_unsigned_methods(explanations)))
    return sentences


def agreement_note_on_sizes(names: Sequence[str]) -> str:
    """Why methods are compared by size."""
    has, are = "have", "are"
    if len(names) == 1:
        has, are = "has", "is"
    subject = f"{join_method_names(names)} {has} no negative scores"
    return f"{subject} and {are} compared with the others by size, without signs."
