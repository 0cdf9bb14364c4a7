"""What the page must know to ask: models, methods, searches and rules with their parameters, from the registries."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from raison.core.errors import RaisonError
from raison.core.registry import Registry, methods, rules, searches
from raison.core.spec import Spec, format_value
from raison.models.protocol import Model

__all__ = ["about_model", "catalogue"]


def catalogue() -> dict[str, list[dict[str, Any]]]:
    """Every method, search and rule, as a form can show it."""
    return {"methods": shelf(methods), "searches": shelf(searches), "rules": shelf(rules)}


def shelf(registry: Registry[Any]) -> list[dict[str, Any]]:
    found = []
    for name in registry:
        entry = registry[name]
        about = (entry.__doc__ or "").strip().splitlines()
        found.append(
            {
                "name": name,
                "about": about[0] if about else "",
                "paper": getattr(entry, "paper", ""),
                "parameters": [
                    parameter(each) for each in fields(entry) if each.init and not each.metadata.get("file")
                ],
            }
        )
    return found


def parameter(field: Any) -> dict[str, Any]:
    """One input of a form; what is not a number or a switch is written as in a spec."""
    default = None if field.default is MISSING else field.default
    kind = "switch" if isinstance(default, bool) else "number" if isinstance(default, (int, float)) else "text"
    if isinstance(default, (tuple, list, Spec)):
        default = format_value(default)
    return {"name": field.name, "kind": kind, "default": default}


def about_model(model: Model) -> dict[str, Any]:
    """A model in the page's list."""
    return {
        "name": model.name,
        "task": model.task,
        "writes": model.generates,
        "labels": list(model.labels[:200]),
        "removals": list(model.removals),
        "methods": [name for name in methods if works(name, model.offers)],
        "heads": {"attention", "gradients"} <= model.offers,
        "own": "own" in model.offers,
    }


def works(name: str, offers: frozenset[str]) -> bool:
    """Whether a method can be used as it is on what a model offers."""
    try:
        return bool(methods.build(name).needs <= offers)
    except RaisonError:
        return False
