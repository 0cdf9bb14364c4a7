"""Methods for tests that are not about how well they sample."""

from __future__ import annotations

from dataclasses import fields

from raison.core.registry import methods
from raison.core.spec import Spec

__all__ = ["fitting", "light", "rough"]

# promises do not depend on how often a method draws; the defaults have their turn in the long version
FEWER = {"samples": 120, "permutations": 4, "steps": 8}


def light(name: str) -> str:
    """The method with fewer samples or steps, where it takes more of them or as many as it likes."""
    found = {item.name: item.default for item in fields(methods[name])}
    fewer = {
        key: few
        for key, few in FEWER.items()
        if key in found and (found[key] is None or found[key] > few)
    }
    return str(Spec(name, fewer))


def rough(name: str) -> bool:
    """Whether float32 shows: relevance and finite differences are divided by small numbers again and again."""
    return "lrp" in name or name in ("transformer_attribution", "deeplift")


def fitting(model) -> list[str]:
    """Names of the methods whose needs the model offers."""
    return [name for name in methods if methods.build(name).needs <= model.offers]
