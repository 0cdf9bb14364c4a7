"""Whoever imports raison finds a docstring and a type at each public name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.helpers.paths import SOURCE

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def public_definitions() -> Iterator[tuple[str, ast.AST]]:
    """Functions and classes that the `__all__` of their own module names, as `package/file.py:name`."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = names_in_all(tree)
        for node in tree.body:
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name in names:
                yield f"{path.relative_to(SOURCE)}:{node.name}", node


def names_in_all(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return []


def untyped_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [each.arg for each in parameters if each.annotation is None]


def test_each_public_name_has_a_docstring():
    silent = [
        place
        for place, node in public_definitions()
        if not is_overload(node) and not ast.get_docstring(node)
    ]
    assert silent == []


def test_each_public_function_is_typed():
    untyped = []
    for place, node in public_definitions():
        if isinstance(node, FUNCTIONS) and (node.returns is None or untyped_parameters(node)):
            untyped.append(place)
    assert untyped == []


def is_overload(node: ast.AST) -> bool:
    return isinstance(node, FUNCTIONS) and any(
        ast.unparse(each) == "overload" for each in node.decorator_list
    )


def test_each_name_of_the_package_can_be_imported():
    import raison

    for name in raison.__all__:
        assert getattr(raison, name).__doc__


def test_a_name_that_is_not_there_is_refused():
    import raison

    with pytest.raises(AttributeError, match="has no attribute 'explian'"):
        raison.explian  # noqa: B018 - it is asked for, no more
