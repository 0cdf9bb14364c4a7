"""Registry: names that users type, and the methods, searches, rules, families, metrics and data sets behind them.

An entry registers itself where it is defined, with a decorator. The first lookup imports every module of
the registry's package and every installed entry point, so that adding a method, family, metric or data
set is one file and no other edit.
"""

from __future__ import annotations

import importlib
import pkgutil
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, cast

from raison.core.errors import InputError, UnknownName, suggest_name
from raison.core.spec import Spec, SpecValue

__all__ = [
    "Registry",
    "datasets",
    "families",
    "loaders",
    "methods",
    "metrics",
    "rules",
    "searches",
    "suggest_name",
]

NUMBERS = ("int", "float", int, float)  # types of parameters, as annotations may write them
TEXTS = ("str", "str | None", str, str | None)

T = TypeVar("T")


class Named(Protocol):
    """A class that knows the name that users type."""

    name: ClassVar[str]


C = TypeVar("C", bound=type[Named])


def place_of_registry_entry(entry: object) -> tuple[str | None, str | None]:
    """Where an entry was defined."""
    return getattr(entry, "__module__", None), getattr(entry, "__qualname__", None)


def modules_to_register(package: str) -> list[str]:
    """Names of all modules of a package; none where the package does not exist."""
    try:
        path = importlib.import_module(package).__path__
    except ModuleNotFoundError as error:
        if not f"{package}.".startswith(f"{error.name}."):
            raise
        return []
    return [module.name for module in pkgutil.walk_packages(path, package + ".")]


class Registry(Generic[T]):
    """A table from names to entries that fills itself on the first look."""

    def __init__(self, kind: str, *packages: str, shelf: str = "", listed: bool = True):
        self.kind = kind  # what an entry is called in a sentence
        self.packages = packages
        self.shelf = shelf or packages[0].rpartition(".")[2]  # what `raison ls` calls it
        self.listed = listed
        self._entries: dict[str, T] = {}
        self.broken: list[str] = []  # sentences about plug-ins that could not be imported
        self._scanned = False
        self._lock = threading.RLock()

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator: put the entry under `name`; two entries of one name are a programmer's error."""

        def add(entry: T) -> T:
            old = self._entries.get(name)
            if old is not None:
                place = place_of_registry_entry(entry)
                # the same place twice is a module that was loaded again
                if place_of_registry_entry(old) != place:
                    raise ValueError(f"two entries called {name!r} in the registry of {self.kind}s")
            self._entries[name] = entry
            return entry

        return add

    def named(self, name: str) -> Callable[[C], C]:
        """Decorator for a class: as `register`, and the class knows the name that users type."""

        def add(cls: C) -> C:
            cls.name = name
            self.register(name)(cast("T", cls))
            return cls

        return add

    def _scan(self) -> None:
        with self._lock:
            if self._scanned:
                return
            for package in self.packages:
                for module in modules_to_register(package):
                    importlib.import_module(module)
                for point in entry_points(group=package):
                    self._load(point)
            self._scanned = True

    def _load(self, point: EntryPoint) -> None:
        try:
            point.load()
        except Exception as error:  # somebody else's mistake must not take raison with it
            self.broken.append(
                f"The plug-in {point.name!r} ({point.value}) can't be imported ({error}): update or uninstall it."
            )

    def __iter__(self) -> Iterator[str]:
        self._scan()
        return iter(sorted(self._entries))

    def __contains__(self, name: object) -> bool:
        self._scan()
        return name in self._entries

    def __getitem__(self, name: str) -> T:
        self._scan()
        if name not in self._entries:
            hint = suggest_name(name, list(self))
            where = " ".join([self.where_listed(), *self.broken])
            raise UnknownName(f"There is no {self.kind} called {name!r}.{hint} {where}")
        return self._entries[name]

    def where_listed(self) -> str:
        """A sentence that tells which names there are, or the command that does."""
        if self.listed:
            return f"`raison ls {self.shelf}` lists them all."
        return f"There are {', '.join(self)}."

    def build(self, spec: str | Spec) -> Any:
        """The entry of a spec, called with the spec's parameters."""
        if isinstance(spec, str):
            spec = Spec.parse(spec)
        if not isinstance(spec, Spec):
            where = self.where_listed()
            if self.listed:
                where = f"name one of `raison ls {self.shelf}`."
            raise InputError(f"{spec!r} is no {self.kind}: {where}")
        entry: Any = self[spec.name]
        types = {}
        if is_dataclass(entry):
            types = {item.name: item.type for item in fields(entry)}
        params = {}
        for key, value in spec.params.items():
            params[key] = self.checked_parameter(spec.name, key, value, types)
        try:
            return entry(**params)
        except (TypeError, ValueError) as error:
            raise InputError(f"{spec} can't be used: {error}.") from None

    def checked_parameter(
        self, name: str, key: str, value: SpecValue, types: Mapping[str, object]
    ) -> SpecValue:
        """A parameter of the entry `name` as its type wants it; `InputError` where there is none of this name."""
        if key not in types:
            options = ", ".join(types) or "none"
            hint = suggest_name(key, list(types))
            raise InputError(
                f"The {self.kind} {name!r} has no parameter {key!r}.{hint} It takes: {options}."
            )
        if types[key] in NUMBERS and isinstance(value, (Spec, str)):
            raise InputError(f"{key} of the {self.kind} {name!r} is a number, not {value}.")
        if types[key] in TEXTS and isinstance(value, Spec) and not value.params:
            return value.name  # a bare word is text where text is wanted: variant=paper
        return value


# What an entry is, its package knows: methods are classes of `raison.methods.base.Method`, and so on. These packages
# import torch, so they can't be named here, where `raison ls` looks.
Entries: TypeAlias = Registry[Any]

methods: Entries = Registry("method", "raison.methods")
searches: Entries = Registry("search", "raison.rationales", shelf="searches")
rules: Entries = Registry("sufficiency rule", "raison.rationales", shelf="rules")
families: Entries = Registry("model family", "raison.models.families", listed=False)
loaders: Entries = Registry(
    "model loader", "raison.attention_models", "raison.rationalizers", listed=False
)
metrics: Entries = Registry("metric", "raison.metrics")
datasets: Entries = Registry("data set", "raison.datasets")
