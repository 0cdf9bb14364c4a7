"""The spec of a run (`RunSpec`: its results depend on nothing else) and the means by which it runs (`Means`)."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypedDict

from raison.core import limits
from raison.core.errors import InputError
from raison.core.from_settings import dataclass_from_settings
from raison.core.parameters import check_choice, check_integer
from raison.core.units import LEVELS

__all__ = ["Means", "RunSpec", "read_run_spec", "spec_with_changes"]

DOTS = 64  # in a line of a spec
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'')
TARGETS = ("predicted", "gold", "given", "all")


@dataclass(frozen=True)
class RunSpec:
    """Model × data × methods × units × targets × metrics."""

    model: str
    data: str
    methods: tuple[str, ...] = ("leave_one_out",)  # methods and searches
    metrics: tuple[str, ...] = ()
    split: str | None = None
    limit: int | None = None
    target: str = "predicted"  # or gold, given, all
    units: str = "word"
    removal: str | None = None
    seed: int = 0
    skip_broken: bool = False
    shard_tokens: int = 16_384  # of the texts of a shard, which is done whole or not at all
    chunk_tokens: int = 2_048  # of the texts that are explained together

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", tuple_of_names_in_spec("methods", self.methods))
        object.__setattr__(self, "metrics", tuple_of_names_in_spec("metrics", self.metrics))
        for name, value in (("model", self.model), ("data", self.data)):
            if not is_name_in_spec(value):
                raise InputError(f"A run needs a {name}: name one.")
        if not self.methods:
            raise InputError("A run needs at least one method: name one of `raison ls methods`.")
        check_choice("target", self.target, TARGETS)
        check_choice("units", self.units, LEVELS)
        for name, optional in (("split", self.split), ("removal", self.removal)):
            if optional is not None and not isinstance(optional, str):
                raise InputError(f"{name} is a name, not {optional!r}.")
        if not isinstance(self.skip_broken, bool):
            raise InputError(f"skip_broken is true or false, not {self.skip_broken!r}.")
        check_integer("seed", self.seed, 0)
        check_integer("shard_tokens", self.shard_tokens, 1)
        check_integer("chunk_tokens", self.chunk_tokens, 1)
        if self.limit is not None:
            check_integer("limit", self.limit, 1)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def of(cls, settings: Mapping[str, object], where: str) -> RunSpec:
        """The spec of settings by name; what is wrong with them is said of `where` they stand."""
        return dataclass_from_settings(cls, settings, where)

    def settings_that_differ(self, other: RunSpec) -> list[str]:
        """Names of the settings in which two specs differ."""
        mine = asdict(self)
        others = asdict(other)
        return [name for name in mine if mine[name] != others[name]]


def is_name_in_spec(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def tuple_of_names_in_spec(setting: str, value: object) -> tuple[str, ...]:
    """One name or a list of names as a tuple."""
    names = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not all(is_name_in_spec(name) for name in names):
        raise InputError(f"{setting} is a list of names, such as leave_one_out.")
    return names


class LoadOptions(TypedDict):
    """Options of `raison.load`."""

    device: str | None
    allow_pickle: bool
    trust_remote_code: bool


@dataclass(frozen=True)
class Means:
    """Workers, threads and limits."""

    workers: int = 1  # processes; 1: in this one, unless there is a time limit
    threads: int = 1  # of each worker
    timeout: float | None = None  # seconds for one text by all methods
    memory: int | None = None  # megabytes beyond the model, of each worker
    data_dir: str | None = None
    device: str | None = None  # of workers that are no Ray's
    allow_pickle: bool = False
    trust_remote_code: bool = False
    ray: str | None = None  # address of a cluster; "local": a Ray of its own; None: no Ray
    gpus: float = 0.0  # of each Ray worker

    def __post_init__(self) -> None:
        for name, value, most in (
            ("workers", self.workers, 100_000),
            ("threads", self.threads, 1_024),
        ):
            check_integer(name, value, 1)
            if value > most:
                raise InputError(f"{name} is at most {most}, not {value}.")
        if self.timeout is not None and not self.timeout > 0:
            raise InputError(f"timeout is a number of seconds above 0, not {self.timeout}.")
        if self.memory is not None:
            check_integer("memory", self.memory, 1)
            if self.memory > 10**9:
                raise InputError(
                    f"memory is a number of megabytes up to a milliard, not {self.memory}."
                )
        if not self.gpus >= 0:
            raise InputError(f"gpus is a share of a GPU from 0 up, not {self.gpus}.")
        if self.device is not None and self.ray is not None:
            raise InputError(
                "Ray puts its workers on devices itself: give gpus (--gpus 1) instead of a device."
            )

    @property
    def load_options(self) -> LoadOptions:
        """How a worker opens its model."""
        return {
            "device": self.device,
            "allow_pickle": self.allow_pickle,
            "trust_remote_code": self.trust_remote_code,
        }

    @property
    def in_this_process(self) -> bool:
        """Whether the driver does the work itself."""
        alone = self.workers == 1 and self.timeout is None and self.memory is None
        return alone and self.ray is None


def spec_with_changes(spec: RunSpec, changes: Mapping[str, object]) -> RunSpec:
    """A spec with some settings given otherwise."""
    return RunSpec.of({**asdict(spec), **changes}, "The command")


def read_run_spec(path: Path, **changes: object) -> RunSpec:
    """The spec of a TOML file, with some settings given otherwise; None changes nothing."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with path.open("rb") as file:
            text = limits.read_at_most(file, limits.SPEC, repr(str(path))).decode("utf-8")
        check_keys_of_spec(text)
        settings = tomllib.loads(text)
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}: check the path.") from None
    except (
        OSError,
        ValueError,
        RecursionError,
    ) as error:  # no TOML, no UTF-8, or a number that is too long
        raise InputError(
            f"{str(path)!r} is no TOML ({str(error).splitlines()[0]}): mend it."
        ) from None
    for name, value in changes.items():
        if value is not None:
            settings[name] = value
    return RunSpec.of(settings, repr(str(path)))


def check_keys_of_spec(text: str) -> None:
    """Refuse a.b.c.… with more parts than any key has: the parser's memory grows with the square of their number."""
    for number, line in enumerate(text.split("\n"), 1):
        if QUOTED.sub("", line).count(".") > DOTS:
            raise ValueError(f"line {number} has more than {DOTS} dots outside of quotes")
