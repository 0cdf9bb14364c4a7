"""The methods and metrics that an evaluation or a run names, built from their specs."""

from __future__ import annotations

from collections.abc import Sequence

from raison.core.errors import InputError
from raison.core.registry import methods as method_registry
from raison.core.registry import metrics as metric_registry
from raison.core.registry import searches as search_registry
from raison.core.spec import Spec
from raison.methods.base import Method
from raison.metrics.base import Metric

__all__ = ["build_method_or_search", "method_list", "metric_list"]


def method_list(methods: str | Method | Sequence[str | Spec | Method]) -> list[Method]:
    """Methods and searches by name; each may be named once."""
    named = [methods] if isinstance(methods, (str, Method)) else methods
    built = [build_method_or_search(each) for each in named]
    if not built:
        raise InputError("There is nothing to evaluate: name at least one method.")

    specs = []
    for method in built:
        specs.append(str(method.spec()))
    if twice := repeated_names_in_method_list(specs):
        raise InputError(f"{', '.join(twice)} is named twice: name every method once.")
    return built


def build_method_or_search(method: str | Spec | Method) -> Method:
    """The method of a spec; what is no method may be a search."""
    if isinstance(method, Method):
        return method
    if isinstance(method, Spec):
        name = method.name
    else:
        name = Spec.parse(method).name
    is_search = name in search_registry and name not in method_registry
    registry = search_registry if is_search else method_registry
    built: Method = registry.build(method)
    return built


def metric_list(metrics: str | Metric | Sequence[str | Spec | Metric]) -> list[Metric]:
    """Metrics by name; no number may be given by two of them."""
    named = [metrics] if isinstance(metrics, (str, Metric)) else metrics
    built: list[Metric] = []
    for each in named:
        built.append(each if isinstance(each, Metric) else metric_registry.build(each))
    if not built:
        raise InputError("There is nothing to measure: name at least one metric.")

    keys = [key.name for metric in built for key in metric.keys]
    if twice := repeated_names_in_method_list(keys):
        raise InputError(f"{', '.join(twice)} would be measured twice: name every metric once.")
    return built


def repeated_names_in_method_list(names: Sequence[str]) -> list[str]:
    """The names that occur more than once, in alphabetical order."""
    return sorted({name for name in names if names.count(name) > 1})
