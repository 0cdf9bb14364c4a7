"""What a suite is: a table or figure of a paper as a TOML file (suites/*.toml) of runs, methods, values and claims."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from raison.core.errors import InputError
from raison.core.evaluation import MethodAxis
from raison.core.registry import suggest

__all__ = ["Across", "Claim", "Run", "Suite", "suite_named", "suites"]


@dataclass(frozen=True)
class Run:
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
    settings: dict[str, Any] = field(default_factory=dict)  # of the suite's experiment
    paper: dict[str, dict[str, float]] = field(default_factory=dict)  # number -> method -> value in the paper
    about: str = ""  # what differs here


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, as a comparison: the first is better than the second."""

    text: str
    first: str  # titles of methods
    second: str
    key: str


@dataclass(frozen=True)
class Across:
    """A claim about two runs: a method of the first is better than a method of the second, on the texts of both."""

    text: str
    first: tuple[str, str]  # name of a run, title of a method
    second: tuple[str, str]
    key: str


@dataclass(frozen=True)
class Suite:
    """A table or figure of a paper."""

    name: str
    title: str
    paper: str
    methods: dict[str, str]  # title -> spec
    runs: tuple[Run, ...]
    metrics: tuple[str, ...] = ()
    experiment: str = ""  # what is done instead of measuring methods by metrics (studies/experiments)
    claims: tuple[Claim, ...] = ()
    across: tuple[Across, ...] = ()
    differs: tuple[str, ...] = ()
    target: str = "gold"
    units: str = "token"
    removal: str | None = "mask_token"
    seeds: dict[str, int] = field(default_factory=dict)  # methods that are run with several seeds and averaged
    figures: tuple[str, ...] = ()  # curves (aopc_curve), or numbers along the methods (aopc), one panel each
    axis: MethodAxis | None = None  # where methods stand below numbers along them; None: side by side
    together: bool = False  # the curves of all runs in one picture, named by their runs
    missing: tuple[str, ...] = ()  # what can't be run here, with the command that runs it elsewhere


def suites() -> dict[str, Suite]:
    """All suites by name."""
    try:
        import tomllib
    except ImportError:  # before Python 3.11
        import tomli as tomllib  # type: ignore[no-redef]

    found = {}
    for file in sorted(files("raison.studies.reproduce").joinpath("suites").iterdir(), key=lambda f: f.name):
        if file.name.endswith(".toml"):
            data = tomllib.loads(file.read_text(encoding="utf-8"))
            runs = tuple(Run(**run) for run in data.pop("run"))
            claims = tuple(Claim(**claim) for claim in data.pop("claim", []))
            across = tuple(
                Across(**{**claim, "first": tuple(claim["first"]), "second": tuple(claim["second"])})
                for claim in data.pop("across", [])
            )
            axis = MethodAxis(**data.pop("axis")) if "axis" in data else None
            lists = {key: tuple(value) for key, value in data.items() if isinstance(value, list)}
            suite = Suite(runs=runs, claims=claims, across=across, axis=axis, **{**data, **lists})
            found[suite.name] = suite
    return found


def suite_named(name: str) -> Suite:
    known = suites()
    if name not in known:
        raise InputError(f"There is no suite {name!r}.{suggest(name, list(known))} There are: {', '.join(known)}.")
    return known[name]
