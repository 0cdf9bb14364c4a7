"""One notation for everything that has a name and parameters: `integrated_gradients(steps=64)`.

The same string is typed on the command line, stored in every result and used in run files. It is read
by a grammar, never evaluated.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from raison.core.errors import InputError

__all__ = ["Spec", "between", "one_of", "place_of", "whole"]


@dataclass(frozen=True)
class Spec:
    """A registry name with keyword parameters; parameters may be specs themselves."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        inside = ", ".join(f"{k}={write(v)}" for k, v in sorted(self.params.items()))
        return f"{self.name}({inside})" if inside else self.name

    def __hash__(self) -> int:
        return hash(str(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and str(self) == str(other)

    @classmethod
    def parse(cls, text: str, dots: bool = False) -> Spec:
        """Read `name` or `name(key=value, ...)`; with `dots` a value may be `question.stem`, as a column or a file."""
        try:
            node = ast.parse(text.strip(), mode="eval").body
            spec = read(node, dots=dots)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            spec = None
        if not isinstance(spec, Spec):
            raise InputError(f"{text!r} is not a name with parameters: write it like  name  or  name(key=value).")
        return spec

    def to_json(self) -> str:
        return str(self)

    from_json = parse


def read(node: ast.AST, nested: bool = False, dots: bool = False) -> Any:
    """The value of a literal, a name or a call with keyword arguments; anything else is refused."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float, type(None))):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = read(node.operand, True)
        if isinstance(value, (int, float)):
            return -value
    if isinstance(node, (ast.Tuple, ast.List)):
        return tuple(read(item, True, dots) for item in node.elts)
    if isinstance(node, ast.Name):
        return Spec(node.id)
    if nested and dots and isinstance(node, ast.Attribute):
        return Spec(dotted(node))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        params = {str(k.arg): read(k.value, True, dots) for k in node.keywords}
        if len(params) == len(node.keywords) and all(k.arg for k in node.keywords):  # none twice, no **
            return Spec(node.func.id, params)
    raise ValueError("not a spec")


def dotted(node: ast.expr) -> str:
    """The words of `question.stem`, as the name of a nested column or of a file."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    if isinstance(node, ast.Name):
        return node.id
    raise ValueError("not a spec")


def write(value: Any) -> str:
    """The text that `read` turns into the same value."""
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        value = value.tolist()
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(write, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, float) and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"  # the literal that overflows to it; `inf` would be a name
    return str(value) if isinstance(value, Spec) else repr(value)


def whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    """Refuse a parameter that is not a whole number from `least` up (to `most`)."""
    number = isinstance(value, int) and not isinstance(value, bool)
    if not number or value < least or (most is not None and value > most):
        reach = f"{least} up" if most is None else f"{least} to {most}"
        raise InputError(f"{name} is a whole number from {reach}, not {value}.")


def one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Refuse a parameter that is none of the words it may be."""
    if value not in known:
        raise InputError(f"{name} is {', '.join(known[:-1])} or {known[-1]}, not {value!r}.")


def between(name: str, value: Any, low: float, high: float = math.inf) -> None:
    """Refuse a parameter that is not a number above `low` and up to `high`."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not low < value <= high or math.isinf(value):
        top = "" if math.isinf(high) else f" and at most {high:g}"
        raise InputError(f"{name} is a number above {low:g}{top}, not {value}.")


def place_of(written: str, count: int) -> int | None:
    """A number in digits that names one of `count` places; None for anything else, such as ² or a number too long."""
    small = written.isdecimal() and len(written) < 10
    return int(written) if small and int(written) < count else None
