"""The catalogue for the page: models, methods, searches and rules with the fields of their forms."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, fields
from typing import Any

from raison.core.errors import RaisonError
from raison.core.registry import Registry, methods, rules, searches
from raison.core.spec import Spec, format_value
from raison.models.protocol import Model

__all__ = [
    "Catalogue",
    "CatalogueEntry",
    "FormField",
    "ModelEntry",
    "describe_model_in_catalogue",
    "read_catalogue",
]

LABELS = 200  # of a model that the page lists


@dataclass(frozen=True)
class FormField:
    """One input of a form; what is not a number or a switch is written as in a spec."""

    name: str
    kind: str  # switch | number | text
    default: object


@dataclass(frozen=True)
class CatalogueEntry:
    """A method, search or rule, as a form can show it."""

    name: str
    about: str  # the first line of its docstring
    paper: str
    parameters: list[FormField]


@dataclass(frozen=True)
class Catalogue:
    """Everything that can be asked for by name."""

    methods: list[CatalogueEntry]
    searches: list[CatalogueEntry]
    rules: list[CatalogueEntry]


@dataclass(frozen=True)
class ModelEntry:
    """A model in the page's list."""

    name: str
    task: str
    writes: bool
    labels: list[str]
    removals: list[str]
    methods: list[str]  # that can be used on what the model offers
    heads: bool
    own: bool


def read_catalogue() -> Catalogue:
    """Every method, search and rule that is registered."""
    return Catalogue(
        methods=catalogue_entries(methods),
        searches=catalogue_entries(searches),
        rules=catalogue_entries(rules),
    )


def catalogue_entries(registry: Registry[Any]) -> list[CatalogueEntry]:
    entries = []
    for name in registry:
        registered = registry[name]
        lines = (registered.__doc__ or "").strip().splitlines()
        settings = [
            field for field in fields(registered) if field.init and not field.metadata.get("file")
        ]
        entry = CatalogueEntry(
            name=name,
            about=lines[0] if lines else "",
            paper=getattr(registered, "paper", ""),
            parameters=[form_field(field) for field in settings],
        )
        entries.append(entry)
    return entries


def form_field(field: Field[Any]) -> FormField:
    """The input for one setting."""
    default = None if field.default is MISSING else field.default
    if isinstance(default, bool):
        return FormField(field.name, "switch", default)
    if isinstance(default, (int, float)):
        return FormField(field.name, "number", default)
    if isinstance(default, (tuple, list, Spec)):
        default = format_value(default)
    return FormField(field.name, "text", default)


def describe_model_in_catalogue(model: Model) -> ModelEntry:
    """A model as the page lists it."""
    return ModelEntry(
        name=model.name,
        task=model.task,
        writes=model.generates,
        labels=list(model.labels[:LABELS]),
        removals=list(model.removals),
        methods=[name for name in methods if method_works_on_model(name, model.offers)],
        heads={"attention", "gradients"} <= model.offers,
        own="own" in model.offers,
    )


def method_works_on_model(name: str, offers: frozenset[str]) -> bool:
    """Whether a method can be used as it is on what a model offers."""
    try:
        return bool(methods.build(name).needs <= offers)
    except RaisonError:
        return False
