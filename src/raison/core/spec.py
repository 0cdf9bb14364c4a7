"""Spec, the one notation for everything that has a name and parameters, parsed and formatted:
`integrated_gradients(steps=64)`.

The same string is typed on the command line, stored in every result and used in run files. It is read
by a grammar, never evaluated.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from raison.core.errors import InputError

__all__ = ["Spec", "SpecValue", "index_in_spec"]

SpecValue: TypeAlias = "str | int | float | Spec | tuple[SpecValue, ...] | None"


@dataclass(frozen=True)
class Spec:
    """A registry name with keyword parameters; parameters may be specs themselves."""

    name: str
    params: Mapping[str, SpecValue] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.params:
            return self.name
        params = []
        for key in sorted(self.params):
            value = format_value(self.params[key])
            params.append(f"{key}={value}")
        inside = ", ".join(params)
        return f"{self.name}({inside})"

    def __hash__(self) -> int:
        return hash(str(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spec):
            return False
        return str(self) == str(other)

    @classmethod
    def parse(cls, text: str, dots: bool = False) -> Spec:
        """Read `name` or `name(key=value, ...)`; with `dots` a value may be `question.stem`, as a column or a file."""
        try:
            expression = ast.parse(text.strip(), mode="eval")
            spec = parse_value(expression.body, dots=dots)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            spec = None
        if not isinstance(spec, Spec):
            raise InputError(
                f"{text!r} is not a name with parameters: write it like  name  or  name(key=value)."
            )
        return spec

    def to_json(self) -> str:
        return str(self)

    from_json = parse


def parse_value(node: ast.AST, *, nested: bool = False, dots: bool = False) -> SpecValue:
    """The value of a literal, a name or a call with keyword arguments; anything else is refused."""
    match node:
        case ast.Constant(value=str() | int() | float() | None as literal):
            return literal
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = parse_value(operand, nested=True)
            if isinstance(value, (int, float)):
                return -value
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(parse_value(item, nested=True, dots=dots) for item in items)
        case ast.Name(id=name):
            return Spec(name)
        case ast.Attribute() if nested and dots:
            return Spec(dotted_name(node))
        case ast.Call(func=ast.Name(id=name), args=[], keywords=keywords):
            return Spec(name, parse_params(keywords, dots=dots))
    raise ValueError("not a spec")


def parse_params(keywords: list[ast.keyword], *, dots: bool) -> dict[str, SpecValue]:
    """Keyword arguments by name; none twice, and no **."""
    params: dict[str, SpecValue] = {}
    for keyword in keywords:
        if keyword.arg is None or keyword.arg in params:
            raise ValueError("not a spec")
        params[keyword.arg] = parse_value(keyword.value, nested=True, dots=dots)
    return params


def dotted_name(node: ast.expr) -> str:
    """The words of `question.stem`, as the name of a nested column or of a file."""
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(node.value)}.{node.attr}"
    if isinstance(node, ast.Name):
        return node.id
    raise ValueError("not a spec")


def format_value(value: object) -> str:
    """The text that `parse_value` turns into the same value."""
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        value = value.tolist()
    if isinstance(value, (tuple, list)):
        inside = ", ".join(map(format_value, value))
        if len(value) == 1:
            inside += ","
        return f"({inside})"
    if value == math.inf:
        return "1e999"  # the literal that overflows to it; `inf` would be a name
    if value == -math.inf:
        return "-1e999"
    if isinstance(value, Spec):
        return str(value)
    return repr(value)


def index_in_spec(digits: str, count: int) -> int | None:
    """The number that digits write, if it is an index below `count`; None for anything else, such as ²."""
    is_too_long = len(digits) >= 10
    if is_too_long or not digits.isdecimal():
        return None
    index = int(digits)
    if index >= count:
        return None
    return index
