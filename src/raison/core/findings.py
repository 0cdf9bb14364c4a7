"""What a result says besides its scores: the prediction, the certificate, the path of a search, the passages."""

from __future__ import annotations

from dataclasses import dataclass, field

from raison.core.errors import InputError
from raison.core.json_record import Record, records

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
    probability: float | None = (
        None  # of the predicted outcome; None where the model gives a plain value
    )
    value: float | None = (
        None  # what a regression or a function gives; None where there is a probability
    )
    target_probability: float | None = None
    top: tuple[tuple[str, float], ...] = ()  # the best outcomes with their probabilities or values

    def validate(self) -> None:
        top = tuple((str(name), float(value)) for name, value in self.top)
        object.__setattr__(self, "top", top)


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
    is_prediction: bool | None = (
        None  # the target is what the model predicts from the whole context
    )
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
            raise InputError(
                f"The status of a certificate is one of {', '.join(STATUSES)}, not {self.status!r}."
            )


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
        candidates = tuple((int(unit), float(value)) for unit, value in self.candidates)
        object.__setattr__(self, "candidates", candidates)


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
    passages: tuple[PassageFinding, ...] = records("PassageFinding", default=())
    necessary_units: tuple[int, ...] = field(
        default=()
    )  # without each of them alone the answer changes
