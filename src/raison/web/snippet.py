"""A request as the Python that gives the same result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["snippet"]


def snippet(verb: str, model: str, positional: tuple[Any, ...], request: Mapping[str, Any]) -> str:
    """Lines to paste; what is a default stands nowhere."""
    given = [*map(repr, positional), *(f"{key}={value!r}" for key, value in request.items() if value is not None)]
    inside = ", ".join(given)
    call = f"raison.{verb}(model, {inside})"
    if len(call) > 100:
        call = f"raison.{verb}(\n    model,\n    " + ",\n    ".join(given) + ",\n)"
    return f"import raison\n\nmodel = raison.load({model!r})\nresult = {call}\n"
