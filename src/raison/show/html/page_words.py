"""What the page says about explanations, in words and numbers ready to be drawn: the page itself makes no sentence.

The records travel to the browser as they are; these words travel beside them (page_data.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.records import Explanation
from raison.show import certificate as proof
from raison.show.agreement import Agreement, agreement_of_pairs, count_of_strongest, least_tau_alike
from raison.show.consensus import (
    footnotes,
    measures_for,
    method_titles,
    signed_hundredths,
    statement_of_agreement,
)
from raison.show.difference import NO_DIFFERENCE, difference_of
from raison.show.matrix import CHOSEN, GIVEN, SPARED, Matrix, alarms_of, matrix
from raison.show.scale import has_negative
from raison.show.search_path import Step, excerpt, measure, path, runners_up
from raison.show.spans import selection
from raison.show.wording import (
    CURLY,
    clean,
    headline_parts,
    notes,
    percent,
    plural,
    provenance_facts,
    short,
    telling_diagnostics,
    value_name,
)

__all__ = [
    "ExplanationWords",
    "MatrixWords",
    "MethodsWords",
    "words_of_explanation",
    "words_of_matrix",
    "words_of_methods",
]

DOT = " · "
MINUS = "−"
MOST_RUNNERS_UP = 2  # named in a step
LONGEST_COLUMN, LONGEST_ROW, LONGEST_NAME = (
    24,
    28,
    48,
)  # characters of names in a matrix, and in what is said of a cell
STATES = {CHOSEN: "in the rationale", GIVEN: "given: read anyway", SPARED: "not needed"}


# -- one explanation ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExplanationWords:
    """What is said about one explanation."""

    outcome: str
    value: str  # its probability, or what a regression gives
    contrast: str
    facts: dict[str, str]  # how it came about, by name
    remarks: list[str]  # telling diagnostics in a line, then what a reader must know
    selected: str  # how many units were, where nothing was proved about them
    rationale: RationaleWords | None


@dataclass(frozen=True)
class RationaleWords:
    """What is said about a rationale besides its text."""

    warnings: list[str]
    size: str  # `3 of 9 tokens`
    names: str  # in the order chosen
    besides: str
    proof: list[str]
    effort: str
    roles: list[str]  # of the passages of a grounded answer
    path: PathWords | None


@dataclass(frozen=True)
class PathWords:
    """The path of the search as a table."""

    measure: str  # what the figures are
    runners_up: str  # the title of their column; empty where there are none
    rows: list[PathRow]
    excerpt: list[int | str]  # rows of the short table, and what stands for those left out


@dataclass(frozen=True)
class PathRow:
    number: str
    change: str
    size: int
    figure: str
    weight: float | None  # the length of the bar
    enough: bool
    runners_up: str


def words_of_explanation(explanation: Explanation) -> ExplanationWords:
    """All that the page says about one explanation."""
    heading = headline_parts(explanation, CURLY)
    diagnostics = DOT.join(telling_diagnostics(explanation))
    return ExplanationWords(
        outcome=heading.outcome,
        value=heading.value,
        contrast=heading.contrast,
        facts=facts_of(explanation),
        remarks=[remark for remark in [diagnostics, *notes(explanation)] if remark],
        selected=count_of_selected(explanation),
        rationale=words_of_rationale(explanation) if proof.is_rationale(explanation) else None,
    )


def count_of_selected(explanation: Explanation) -> str:
    if explanation.selected is None or explanation.certificate is not None:
        return ""
    units = plural(len(explanation.selected), explanation.units.level)
    count = f"{int(explanation.selected.sum())} of {units}"
    return f"rationale {count}" if selection(explanation) else f"{count} selected"


def facts_of(explanation: Explanation) -> dict[str, str]:
    """What the model predicts, where that is not the target, and how the explanation came about."""
    predicted = headline_parts(explanation, CURLY).predicted
    facts = {"predicted": predicted} if predicted else {}
    return facts | {"model": clean(explanation.model)} | provenance_facts(explanation)


def words_of_rationale(explanation: Explanation) -> RationaleWords:
    selected = proof.selection_in_words(explanation, quotes=CURLY)
    passages = () if explanation.grounding is None else explanation.grounding.passages
    return RationaleWords(
        warnings=proof.warnings(explanation),
        size=selected.size,
        names=" → ".join(selected.names),
        besides=selected.besides,
        proof=proof.proof_in_words(explanation),
        effort=DOT.join(proof.effort_in_words(explanation)),
        roles=[proof.role_in_answer(passage) for passage in passages],
        path=words_of_path(explanation) if explanation.steps else None,
    )


def words_of_path(explanation: Explanation) -> PathWords:
    steps = path(explanation)
    places = {id(step): place for place, step in enumerate(steps)}
    shown: list[int | str] = []
    for step in excerpt(steps):
        shown.append(
            f"⋮ {plural(step, 'step')} more" if isinstance(step, int) else places[id(step)]
        )
    has_runners_up = any(step.rivals for step in steps)
    return PathWords(
        measure=measure(explanation),
        runners_up=runners_up(explanation) if has_runners_up else "",
        rows=[row_of_step(step) for step in steps],
        excerpt=shown,
    )


def row_of_step(step: Step) -> PathRow:
    rivals = [f"{name} {with_minus(figure)}" for name, figure in step.rivals[:MOST_RUNNERS_UP]]
    return PathRow(
        number="" if step.number is None else str(step.number),
        change=step.change(MINUS),
        size=step.size,
        figure=with_minus(step.figure),
        weight=step.weight,
        enough=step.enough,
        runners_up=", ".join(rivals),
    )


def with_minus(figure: str) -> str:
    """A number with a minus that is as wide as a plus."""
    return figure.replace("-", MINUS)


# -- several methods ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MethodsWords:
    """What is said about several methods that explain the same thing."""

    names: list[str]
    facts: dict[str, str]  # that they share
    facts_of_methods: list[str]  # what each does not share, in a line
    statement: str
    colours: str  # what the colours mean
    measures: list[MeasureWords]
    pairs: list[PairWords]  # of every two methods, by their places, the smaller first
    footnotes: list[str]
    no_difference: str


@dataclass(frozen=True)
class MeasureWords:
    key: str
    title: str
    meaning: str


@dataclass(frozen=True)
class PairWords:
    """How far two methods agree, for the table, and what their difference is."""

    methods: tuple[int, int]
    comparable: bool  # neither is constant
    alike: bool
    cells: dict[str, PairCell]  # by measure
    difference: str  # what its numbers are


@dataclass(frozen=True)
class PairCell:
    figure: str
    size: float  # 0..1, how dark the cell is
    negative: bool


def words_of_methods(explanations: Sequence[Explanation]) -> MethodsWords:
    """All that the page says about several methods besides what it says about each."""
    names = method_titles(explanations)
    agreements = agreement_of_pairs([explanation.scores for explanation in explanations])
    size = len(explanations[0].units)
    bold = " Bold: alike." if least_tau_alike(size) <= 1 else ""
    measures = []
    for key, each in measures_for(size).items():
        measures.append(MeasureWords(key, each.title, f"{each.title}: {each.meaning}.{bold}"))

    return MethodsWords(
        names=names,
        facts=shared_facts(explanations[0]),
        facts_of_methods=[
            own_facts(each, name) for each, name in zip(explanations, names, strict=True)
        ],
        statement=statement_of_agreement(explanations, agreements),
        colours=meaning_of_colours(explanations),
        measures=measures,
        pairs=[words_of_pair(explanations, names, pair, agreements[pair]) for pair in agreements],
        footnotes=footnotes(explanations, agreements),
        no_difference=NO_DIFFERENCE,
    )


def shared_facts(explanation: Explanation) -> dict[str, str]:
    """How explanations came about that differ in their method only."""
    facts = facts_of(explanation)
    shared = {name: facts[name] for name in ("predicted", "model", "units") if name in facts}
    return shared | {"value": value_name(explanation.target)}


def own_facts(explanation: Explanation, name: str) -> str:
    facts = [] if explanation.method == name else [explanation.method]
    if explanation.removal:
        facts.append(f"removal: {explanation.removal}")
    return clean(DOT.join(facts))


def meaning_of_colours(explanations: Sequence[Explanation]) -> str:
    colours = "The deeper the orange, the higher the score"
    if any(has_negative(explanation.scores) for explanation in explanations):
        colours = "Orange speaks for the target, blue against it"
    has_selection = any(explanation.selected is not None for explanation in explanations)
    underlined = " Underlined: selected." if has_selection else ""
    return f"{colours}; full colour is each method's strongest score.{underlined}"


def words_of_pair(
    explanations: Sequence[Explanation],
    names: Sequence[str],
    pair: tuple[int, int],
    agreement: Agreement,
) -> PairWords:
    size = len(explanations[0].units)
    one, other = pair
    difference = difference_of(explanations[one], explanations[other], (names[one], names[other]))
    cells = {"tau": agreement.tau, "rho": agreement.rho, "r": agreement.r}
    return PairWords(
        methods=pair,
        comparable=agreement.tau is not None,
        alike=agreement.tau is not None and agreement.tau >= least_tau_alike(size),
        cells={"shared": cell_of_shared(agreement.shared, size)}
        | {measure: cell_of_correlation(value) for measure, value in cells.items()},
        difference=difference.meaning(),
    )


def cell_of_shared(shared: int | None, size: int) -> PairCell:
    if shared is None:
        return PairCell("–", 0.0, negative=False)
    return PairCell(str(shared), shared / count_of_strongest(size), negative=False)


def cell_of_correlation(value: float | None) -> PairCell:
    if value is None:
        return PairCell("–", 0.0, negative=False)
    return PairCell(with_minus(signed_hundredths(value)), abs(value), negative=value < 0)


# -- a matrix of rationales ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class MatrixWords:
    """Rationales of one text: what was predicted down, the context across."""

    title: str
    facts: dict[str, str]
    rows: list[MatrixRow]
    columns: list[MatrixColumn]
    legend: list[tuple[int, str]]  # states that occur, with their meaning
    alarms: list[tuple[str, str]]  # signs that occur, with their meaning
    states: list[str]  # the meaning of each state


@dataclass(frozen=True)
class MatrixRow:
    """One rationale; `place` is that of its record in the group."""

    place: int
    name: str
    outcome: str  # in quotes
    signs: str  # of its alarms
    summary: str
    label: str  # all of it, for who can't see the row
    cells: str  # the state of each column as a digit


@dataclass(frozen=True)
class MatrixColumn:
    name: str
    quoted: str
    token: int  # the first
    edge: bool  # another segment begins


def words_of_matrix(explanations: Sequence[Explanation]) -> MatrixWords:
    """All that the page draws of a matrix besides the details of its rows."""
    found = matrix(explanations)
    places = {id(explanation): place for place, explanation in enumerate(explanations)}
    rows = []
    for row, cells in zip(found.rows, found.cells.tolist(), strict=True):
        rows.append(row_of_matrix(row, places[id(row)], "".join(map(str, cells))))

    return MatrixWords(
        title=f"{len(explanations)} rationales of one text",
        facts=facts_of_matrix(found),
        rows=rows,
        columns=columns_of_matrix(found),
        legend=[(state, STATES[state]) for state in found.meanings()],
        alarms=[(alarm.sign, alarm.meaning) for alarm in found.alarms()],
        states=["", STATES[SPARED], STATES[GIVEN], STATES[CHOSEN]],
    )


def facts_of_matrix(found: Matrix) -> dict[str, str]:
    """How the rationales came about; their rules may differ."""
    facts = facts_of(found.rows[0])
    shared = {
        name: facts[name] for name in ("model", "method", "units", "removal") if name in facts
    }
    rules = list(dict.fromkeys(proof.certificate_of(row).rule for row in found.rows))
    name = "rule" if len(rules) == 1 else "rules"
    return shared | {name: clean(", ".join(rules))}


def row_of_matrix(explanation: Explanation, place: int, cells: str) -> MatrixRow:
    alarms = alarms_of(explanation)
    name = short(explanation.target.text, LONGEST_ROW)
    summary = summary_of_row(explanation)
    return MatrixRow(
        place=place,
        name=name,
        outcome=f"“{short(explanation.target.text, LONGEST_NAME)}”",
        signs="".join(alarm.sign for alarm in alarms),
        summary=summary,
        label="; ".join([f"“{name}”", summary, *(alarm.meaning for alarm in alarms)]),
        cells=cells,
    )


def summary_of_row(explanation: Explanation) -> str:
    """`row: 2 of 3 tokens, probability 50.0 % (80.0 % from all)`."""
    certificate = proof.certificate_of(explanation)
    summary = f"row: {proof.selection_in_words(explanation).size}"
    if certificate.probability is not None:
        summary += f", probability {percent(certificate.probability)}"
        if certificate.full_probability is not None:
            summary += f" ({percent(certificate.full_probability)} from all)"
    return summary


def columns_of_matrix(found: Matrix) -> list[MatrixColumn]:
    columns = []
    for place, column in enumerate(found.columns):
        columns.append(
            MatrixColumn(
                name=short(column.name, LONGEST_COLUMN),
                quoted=f"“{short(column.name, LONGEST_NAME)}”",
                token=column.tokens[0],
                edge=found.begins_segment(place),
            )
        )
    return columns
