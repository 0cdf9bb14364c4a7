"""What a suite is: a table or figure of a paper as a TOML file (suites/*.toml) of runs, methods, values and claims."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from importlib.resources import files

from raison.core.errors import InputError
from raison.core.evaluation import MethodAxis
from raison.core.json_record import JsonObject
from raison.core.registry import suggest_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["ClaimAcross", "RunMethod", "Suite", "SuiteClaim", "SuiteRun", "suite_named", "suites"]


@dataclass(frozen=True)
class SuiteRun:
    """One model on one data set."""

    name: str
    model: str
    data: str  # a data set, or a file of the model's folder: {model}/test.json.gz
    recipe: str = ""  # how the model is made, where raison does not ship it
    folder: bool = False  # the "model" is a folder of many, which the experiment reads itself
    split: str | None = None
    limit: int = 200
    shortest: int = 0  # tokens; shorter texts are left out, as the paper does
    longest: int = 128  # tokens; longer texts are left out, to keep it feasible
    label: str = ""  # only texts of this label
    least: float = 0.0  # only texts whose gold label has at least this probability
    prompt: str = ""  # how a language model is asked: a template with {question} and {context}
    settings: JsonObject = field(default_factory=dict)  # of the suite's experiment
    paper: dict[str, dict[str, float]] = field(
        default_factory=dict
    )  # number -> method -> value in the paper
    about: str = ""  # what differs here


@dataclass(frozen=True)
class SuiteClaim:
    """A sentence of the paper, as a comparison: the first is better than the second."""

    text: str
    first: str  # titles of methods
    second: str
    key: str


@dataclass(frozen=True)
class RunMethod:
    """A method in one run of a suite."""

    run: str  # name of the run
    method: str  # title of the method

    def __str__(self) -> str:
        return f"{self.run}: {self.method}"


@dataclass(frozen=True)
class ClaimAcross:
    """A claim about two runs: a method of the first is better than a method of the second, on the texts of both."""

    text: str
    first: RunMethod
    second: RunMethod
    key: str


@dataclass(frozen=True)
class Suite:
    """A table or figure of a paper."""

    name: str
    title: str
    paper: str
    methods: dict[str, str]  # title -> spec
    runs: tuple[SuiteRun, ...]
    metrics: tuple[str, ...] = ()
    # what is done instead of measuring methods by metrics (studies/experiments)
    experiment: str = ""
    claims: tuple[SuiteClaim, ...] = ()
    across: tuple[ClaimAcross, ...] = ()
    differs: tuple[str, ...] = ()
    target: str = "gold"
    units: str = "token"
    removal: str | None = "mask_token"
    seeds: dict[str, int] = field(
        default_factory=dict
    )  # methods that are run with several seeds and averaged
    figures: tuple[
        str, ...
    ] = ()  # curves (aopc_curve), or numbers along the methods (aopc), one panel each
    # where methods stand below numbers along them; None: side by side
    axis: MethodAxis | None = None
    together: bool = False  # the curves of all runs in one picture, named by their runs
    missing: tuple[str, ...] = ()  # what can't be run here, with the command that runs it elsewhere


def suites() -> dict[str, Suite]:
    """All suites by name."""
    found = {}
    for file in sorted(
        files("raison.studies.reproduce").joinpath("suites").iterdir(), key=lambda file: file.name
    ):
        if file.name.endswith(".toml"):
            suite = suite_of_toml(tomllib.loads(file.read_text(encoding="utf-8")))
            found[suite.name] = suite
    return found


def suite_of_toml(table: JsonObject) -> Suite:
    """The suite of a TOML file."""
    runs = [SuiteRun(**run) for run in table.pop("run")]
    claims = [SuiteClaim(**claim) for claim in table.pop("claim", [])]
    across = []
    for claim in table.pop("across", []):
        across.append(claim_across(**claim))
    axis = table.pop("axis", None)
    others: JsonObject = {}
    for key, value in table.items():
        others[key] = tuple(value) if isinstance(value, list) else value
    return Suite(
        runs=tuple(runs),
        claims=tuple(claims),
        across=tuple(across),
        axis=None if axis is None else MethodAxis(**axis),
        **others,
    )


def claim_across(text: str, first: list[str], second: list[str], key: str) -> ClaimAcross:
    """A claim about two runs, whose sides are [run, method] in TOML."""
    return ClaimAcross(text, RunMethod(*first), RunMethod(*second), key)


def suite_named(name: str) -> Suite:
    """The suite of this name; a misspelt one is refused with the nearest."""
    known = suites()
    if name not in known:
        raise InputError(
            f"There is no suite {name!r}.{suggest_name(name, list(known))} There are: {', '.join(known)}."
        )
    return known[name]
