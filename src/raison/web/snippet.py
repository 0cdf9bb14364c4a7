"""A request as the Python that gives the same result."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["snippet"]

WIDTH = 100  # characters of a call that stands in one line


def snippet(
    verb: str, model: str, positional: tuple[object, ...], keywords: Mapping[str, object]
) -> str:
    """Lines to paste; keywords that are None stand nowhere."""
    arguments = [repr(value) for value in positional]
    arguments += [f"{key}={value!r}" for key, value in keywords.items() if value is not None]
    call = f"raison.{verb}(model, {', '.join(arguments)})"
    if len(call) > WIDTH:
        lines = "".join(f"    {argument},\n" for argument in ("model", *arguments))
        call = f"raison.{verb}(\n{lines})"
    return f"import raison\n\nmodel = raison.load({model!r})\nresult = {call}\n"
