"""One notation for names and parameters: written, read back, and nothing else."""

from __future__ import annotations

import keyword
import math
import os
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raison.core.errors import InputError
from raison.core.spec import Spec

fuzz = settings(max_examples=200, deadline=None, derandomize=True)


names = st.from_regex(r"[a-z_][a-z0-9_]{0,10}", fullmatch=True).filter(
    lambda n: not keyword.iskeyword(n)
)


plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=12)
    | st.text(st.characters(exclude_categories=[]), max_size=4)
)


values = st.recursive(
    plain | names.map(Spec),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.builds(Spec, names, st.dictionaries(names, inner, max_size=3))
    ),
    max_leaves=8,
)


specs = st.builds(Spec, names, st.dictionaries(names, values, max_size=4))


def same(one: Any, two: Any) -> None:
    """Equal values of equal types, all the way down."""
    assert type(one) is type(two)
    if isinstance(one, Spec):
        assert one.name == two.name and one.params.keys() == two.params.keys()
        for key in one.params:
            same(one.params[key], two.params[key])
    elif isinstance(one, tuple):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            same(a, b)
    else:
        assert repr(one) == repr(two)


@fuzz
@given(specs)
def test_what_is_written_is_read_back(spec):
    again = Spec.parse(str(spec))
    same(again, spec)
    assert again == spec and hash(again) == hash(spec) and str(again) == str(spec)
    assert Spec.from_json(spec.to_json()) == spec
    str(spec).encode("utf-8")  # can be stored anywhere


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("random", "random"),
        ("  random ( ) ", "random"),
        ("f(b=2,a=1)", "f(a=1, b=2)"),
        ("f(a='x', b=\"y\")", "f(a='x', b='y')"),
        ("f(a=x)", "f(a=x)"),
        ("f(a=x())", "f(a=x)"),
        ("f(a=[1,2])", "f(a=(1, 2))"),
        ("f(a=(1,))", "f(a=(1,))"),
        ("f(a=())", "f(a=())"),
        ("f(a=1_000, b=0x10, c=1e3, d=.5)", "f(a=1000, b=16, c=1000.0, d=0.5)"),
        ("f(a=-1, b=-2.5, c=--3)", "f(a=-1, b=-2.5, c=3)"),
        ("f(a=True, b=None)", "f(a=True, b=None)"),
        ("f(a=1e999, b=-1e999)", "f(a=1e999, b=-1e999)"),
        ("f(m=g(z=1, y=h(k=(1, q))), a=0)", "f(a=0, m=g(y=h(k=(1, q)), z=1))"),
        ("f(\n  a=1,\n  b=2,\n)", "f(a=1, b=2)"),
    ],
)
def test_canonical_form(text, canonical):
    assert str(Spec.parse(text)) == canonical
    assert str(Spec.parse(canonical)) == canonical
    assert Spec.parse(text) == Spec.parse(canonical)


def test_infinity_is_written_so_that_it_can_be_read():
    assert Spec.parse(str(Spec("f", {"a": math.inf, "b": -math.inf}))).params == {
        "a": math.inf,
        "b": -math.inf,
    }


def test_lists_and_numpy_are_written_plainly():
    params = {
        "a": [1, Spec("g")],
        "b": np.float64(0.5),
        "c": np.int64(3),
        "d": np.arange(2),
        "e": np.bool_(True),
    }
    assert str(Spec("f", params)) == "f(a=(1, g), b=0.5, c=3, d=(0, 1), e=True)"
    assert Spec.parse(str(Spec("f", params))) == Spec("f", params)


def test_specs_differ_by_name_and_by_every_parameter():
    different = [
        "f",
        "g",
        "f(a=1)",
        "f(a=1.0)",
        "f(a=True)",
        "f(a='1')",
        "f(a=x)",
        "f(a='x')",
        "f(b=1)",
        "f(a=(1,))",
    ]
    assert len({Spec.parse(text) for text in different}) == len(different)
    assert Spec("f") != "f"


class Alarm:
    """Goes off when anything in a spec is run."""

    rung = False

    def __call__(self, *args, **kwargs):
        Alarm.rung = True


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "3", "'text'", "None", "(f, g)", "-f", "f g", "f(", "f)", "f(a=)", "f(a=1", "f=1", "f;g", "f\ng",
        "f\x00", "\ud800", "f(a='\ud800')", "import os", "f(a=1)\nimport os",
        "__import__('os')", "__import__('os').system('true')", "f(a=__import__('os'))", "eval('1')", "f(1)", "f(g)",
        "f(*a)", "f(**a)", "f(**{'a': 1})", "f(a=1, **{'b': 2})", "f(a=1, a=2)",
        "lambda: 1", "f(a=lambda: 1)", "f(a=lambda x=alarm(): x)", "f(a=f'{alarm()}')",
        "a.b", "f(a=b.c)", "a.b(c=1)", "f(a=1)(b=2)", "f()()", "f(a=b[0])", "f(a=b[:])",
        "[x for x in y]", "f(a=[x for x in y])", "f(a={x for x in y})", "f(a=(x for x in y))", "f(a={1: 2})",
        "f(a={1})",
        "f(a=1+1)", "f(a=9**9**9)", "f(a=not b)", "f(a=~1)", "f(a=+1)", "f(a=-'x')", "f(a=-b)", "f(a=b and c)",
        "f(a=b if c else d)", "f(a=(b := 1))", "f(a=1 < 2)", "f(a=*b)", "f(a=await b)", "f(a=(yield))",
        "f(a=...)", "f(a=b'x')", "f(a=1j)",
    ],
)  # fmt: skip
def test_anything_else_is_refused_and_nothing_is_run(text, monkeypatch):
    import builtins

    monkeypatch.setattr(builtins, "alarm", Alarm(), raising=False)
    monkeypatch.setattr(os, "system", Alarm())
    with pytest.raises(
        InputError,
        match=r"is not a name with parameters: write it like  name  or  name\(key=value\)",
    ):
        Spec.parse(text)
    assert not Alarm.rung


@pytest.mark.parametrize(
    "text",
    [
        "f(a=" * 20000 + "1" + ")" * 20000,
        "(" * 50000,
        "f(a=" + "-" * 200000 + "1)",
        "f(a=" + "[" * 5000 + "]" * 5000 + ")",
        "f(a=" + "9" * 100000 + ")",
        "a" + ".a" * 50000,
    ],
    ids=["calls", "parentheses", "minus", "lists", "digits", "attributes"],
)
def test_huge_nesting_is_refused_not_fatal(text):
    start = time.process_time()
    with pytest.raises(InputError):
        Spec.parse(text)
    assert time.process_time() - start < 5


@fuzz
@given(st.text(st.sampled_from("fg(a=1,)'\".-[]{}*: \n\\x0#"), max_size=14) | st.text(max_size=12))
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")
def test_any_text_is_a_spec_or_an_input_error(text):
    try:
        spec = Spec.parse(text)
    except InputError:
        return
    assert Spec.parse(str(spec)) == spec
