"""Records of what a result says besides its scores: prediction, certificate, steps of a search, grounding."""

from __future__ import annotations

from dataclasses import dataclass

from raison.core.errors import InputError
from raison.core.json_record import Record, records_field

__all__ = [
    "STATUSES",
    "Certificate",
    "Grounding",
    "PassageFinding",
    "PredictionSummary",
    "SearchStep",
]

STATUSES = ("complete", "budget", "interrupted", "impossible")


@dataclass(frozen=True, eq=False)
class PredictionSummary(Record):
    """What the model predicts for the whole text, where that answers the same question as the target."""

    text: str  # the predicted outcome
    is_target: bool  # the target is this outcome
    # of the predicted outcome; None where the model gives a plain value
    probability: float | None = None
    # what a regression or a function gives; None where there is a probability
    value: float | None = None
    target_probability: float | None = None
    top: tuple[tuple[str, float], ...] = ()  # the best outcomes with their probabilities or values

    def validate(self) -> None:
        top = []
        for outcome, value in self.top:
            top.append((str(outcome), float(value)))
        object.__setattr__(self, "top", tuple(top))


@dataclass(frozen=True, eq=False)
class Certificate(Record):
    """What was proved about a rationale, evaluated anew and apart from the search that found it."""

    rule: str  # when a part counts as enough, e.g. probability(tau=0.9)
    sufficient: bool
    size: int  # units of the rationale
    irreducible: bool | None = None  # no unit can be spared; None: not looked at
    optimal: bool = False  # proved: no sufficient set is smaller
    lower_bound: int = 0  # no sufficient set has fewer units
    kept_tokens: int | None = None  # of the context, what cannot be removed included
    context_tokens: int | None = None
    # the target is what the model predicts from the whole context
    is_prediction: bool | None = None
    status: str = "complete"  # complete | budget | interrupted | impossible
    value: float | None = None  # of the target, given the rationale alone
    full_value: float | None = None  # given the whole context
    probability: float | None = None
    full_probability: float | None = None
    evaluations: int | None = None  # sets that the search asked about
    search_tokens: int | None = None  # that the search pushed through the model
    check_tokens: int | None = None  # that the independent check pushed through the model

    def validate(self) -> None:
        if self.status not in STATUSES:
            known = ", ".join(STATUSES)
            raise InputError(f"The status of a certificate is one of {known}, not {self.status!r}.")


@dataclass(frozen=True, eq=False)
class SearchStep(Record):
    """One step of a search: which units joined or left, and what the set is worth now."""

    action: str  # start | add | remove | swap
    size: int
    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    units: tuple[int, ...] = ()  # the set after the step
    value: float | None = None
    probability: float | None = None
    sufficient: bool = False
    candidates: tuple[tuple[int, float], ...] = ()  # (unit, value) of the best single changes
    level: str = ""  # passage | sentence | … at which a hierarchical search was

    def validate(self) -> None:
        candidates = []
        for unit, value in self.candidates:
            candidates.append((int(unit), float(value)))
        object.__setattr__(self, "candidates", tuple(candidates))


@dataclass(frozen=True, eq=False)
class PassageFinding(Record):
    """A passage of a prompt, and what it is to the answer."""

    name: str
    start: int  # first character in the prompt
    end: int
    selected: bool  # the answer rests on a part of it
    necessary: bool  # without it alone the answer changes


@dataclass(frozen=True, eq=False)
class Grounding(Record):
    """What an answer over passages rests on."""

    question: str
    answer: str
    needs_context: bool
    statement: str  # the finding in a sentence
    passages: tuple[PassageFinding, ...] = records_field("PassageFinding", default=())
    # without each of them alone the answer changes
    necessary_units: tuple[int, ...] = ()
