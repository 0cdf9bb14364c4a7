"""Specs are read by a grammar and never evaluated; registries fill themselves and answer in sentences."""

from __future__ import annotations

import importlib
import importlib.metadata
import keyword
import math
import os
import re
import sys
import threading
import time
from dataclasses import dataclass, field, make_dataclass
from typing import Any, ClassVar, Optional

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raison.core import registry as registries
from raison.core.errors import InputError, UnknownName
from raison.core.registry import Registry, suggest
from raison.core.spec import Spec

fuzz = settings(max_examples=200, deadline=None, derandomize=True)

# -- reading and writing ----------------------------------------------------------------------------

names = st.from_regex(r"[a-z_][a-z0-9_]{0,10}", fullmatch=True).filter(lambda n: not keyword.iskeyword(n))
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
        st.lists(inner, max_size=3).map(tuple) | st.builds(Spec, names, st.dictionaries(names, inner, max_size=3))
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
    assert Spec.parse(str(Spec("f", {"a": math.inf, "b": -math.inf}))).params == {"a": math.inf, "b": -math.inf}


def test_lists_and_numpy_are_written_plainly():
    params = {"a": [1, Spec("g")], "b": np.float64(0.5), "c": np.int64(3), "d": np.arange(2), "e": np.bool_(True)}
    assert str(Spec("f", params)) == "f(a=(1, g), b=0.5, c=3, d=(0, 1), e=True)"
    assert Spec.parse(str(Spec("f", params))) == Spec("f", params)


def test_specs_differ_by_name_and_by_every_parameter():
    different = ["f", "g", "f(a=1)", "f(a=1.0)", "f(a=True)", "f(a='1')", "f(a=x)", "f(a='x')", "f(b=1)", "f(a=(1,))"]
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
    with pytest.raises(InputError, match=r"is not a name with parameters: write it like  name  or  name\(key=value\)"):
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


# -- registries -------------------------------------------------------------------------------------

ROOM = """
from raison.core.registry import Registry
tools = Registry("tool", "{package}")
"""
ENTRY = '''
from dataclasses import dataclass
from {package}_room import tools

@tools.register("{name}")
@dataclass(frozen=True)
class {cls}:
    """Does something."""
    steps: int = 3
'''


@pytest.fixture
def room(tmp_path, monkeypatch, request):
    """A package for entries beside a module that holds its registry; returns (registry, folder, name)."""
    package = "room_" + str(abs(hash(request.node.nodeid)))
    folder = tmp_path / package
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (tmp_path / f"{package}_room.py").write_text(ROOM.format(package=package))
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield importlib.import_module(f"{package}_room").tools, folder, package
    for name in [m for m in sys.modules if m.startswith(package)]:
        del sys.modules[name]


def put(folder, package, file, name, cls="Tool"):
    path = folder / file
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(ENTRY.format(package=package, name=name, cls=cls))


def test_one_file_is_enough(room):
    tools, folder, package = room
    put(folder, package, "hammer.py", "hammer")
    assert not any(m.startswith(package + ".") for m in sys.modules)  # nothing is imported before the first look
    assert list(tools) == ["hammer"] and "hammer" in tools and "saw" not in tools
    assert tools.build("hammer(steps=5)").steps == 5 and tools["hammer"].__name__ == "Tool"


def test_sub_packages_are_scanned_and_names_are_sorted(room):
    tools, folder, package = room
    put(folder, package, "zeta.py", "a_tool")
    put(folder, package, "deep/inner.py", "z_tool")
    (folder / "deep" / "__init__.py").write_text("")
    put(folder, package, "alpha.py", "m_tool")
    assert list(tools) == ["a_tool", "m_tool", "z_tool"]


def test_two_files_of_one_name_are_an_error(room):
    tools, folder, package = room
    put(folder, package, "one.py", "hammer")
    put(folder, package, "two.py", "hammer")
    with pytest.raises(ValueError, match="two entries called 'hammer' in the registry of tools"):
        list(tools)


def test_two_classes_of_one_name_in_one_file_are_an_error():
    tools: Registry = Registry("tool", "no.such.room")
    tools.register("hammer")(type("One", (), {}))
    with pytest.raises(ValueError, match="two entries called 'hammer'"):
        tools.register("hammer")(type("Two", (), {}))
    assert tools["hammer"].__name__ == "One"


def test_a_reloaded_module_replaces_its_entry(room):
    tools, folder, package = room
    put(folder, package, "one.py", "hammer")
    old = tools["hammer"]
    importlib.reload(sys.modules[f"{package}.one"])
    assert tools["hammer"] is not old and list(tools) == ["hammer"]


def test_a_broken_file_is_not_swallowed(room):
    tools, folder, _ = room
    (folder / "broken.py").write_text("import no_such_module_at_all")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
            list(tools)


def test_a_package_that_cannot_be_imported_is_not_taken_for_an_empty_room(room):
    tools, folder, package = room
    # a name that begins like the package is another package
    (folder / "__init__.py").write_text(f"import {package[:6]}")
    with pytest.raises(ModuleNotFoundError, match=package[:6]):
        list(tools)


def test_an_empty_room_has_no_entries():
    assert list(Registry("tool", "raison.no_such_room")) == []
    assert list(Registry("tool", "no_such_package.at.all")) == []


def test_unknown_names_get_a_suggestion(room):
    tools, folder, package = room
    put(folder, package, "one.py", "hammer")
    with pytest.raises(UnknownName) as error:
        tools["hamer"]
    assert str(error.value) == (
        f"There is no tool called 'hamer'. Did you mean 'hammer'? `raison ls {package}` lists them all."
    )
    with pytest.raises(UnknownName) as error:
        tools.build("xyzzy(steps=1)")
    assert "Did you mean" not in str(error.value) and "no tool called 'xyzzy'." in str(error.value)


@pytest.mark.parametrize(
    ("typed", "known", "expected"),
    [
        ("integrated_gradient", ["integrated_gradients", "random"], " Did you mean 'integrated_gradients'?"),
        ("qqq", ["integrated_gradients", "random"], ""),
        ("", ["random"], ""),
        ("random", [], ""),
    ],
)
def test_suggestions(typed, known, expected):
    assert suggest(typed, known) == suggest(typed, iter(known)) == expected


@dataclass(frozen=True)
class Drill:
    """A tool with every kind of parameter."""

    paper: ClassVar[str] = "none"
    steps: int = 3
    variant: str = "paper"
    note: str | None = None
    inner: Any = None
    sizes: tuple = ()

    def __post_init__(self):
        if self.steps < 1:
            raise ValueError("steps must be positive")
        if self.steps > 99:
            raise InputError("Too many steps: use fewer.")


# a plug-in's tool whose annotations are types, as without `from __future__ import annotations`
Bare = make_dataclass(
    "Bare",
    [
        ("one", str, ""),
        ("two", Optional[str], None),
        ("three", str | None, None),
        ("four", int, 0),
        ("hidden", int, field(default=7, init=False)),
    ],
)


@pytest.fixture
def shop():
    tools: Registry = Registry("tool", "raison.no_such_room")
    tools.register("drill")(Drill)
    tools.register("bare")(Bare)
    tools.register("function")(len)
    return tools


def test_build_takes_text_specs_and_parameters(shop):
    assert shop.build("drill") == Drill() == shop.build(Spec("drill"))
    assert shop.build("drill(steps=5, sizes=[1, 2])") == Drill(steps=5, sizes=(1, 2))


def test_bare_words_are_text_where_text_is_wanted(shop):
    assert shop.build("drill(variant=code, note=short)") == Drill(variant="code", note="short")
    assert shop.build("drill(variant='code')") == shop.build("drill(variant=code)")
    assert shop.build("bare(one=a, two=b, three=c)") == Bare("a", "b", "c")


def test_nested_specs_arrive_as_specs(shop):
    inner = shop.build("drill(inner=drill(steps=2, inner=random))").inner
    assert inner == Spec("drill", {"steps": 2, "inner": Spec("random")})
    assert shop.build(inner) == Drill(steps=2, inner=Spec("random"))
    assert shop.build("drill(inner=word)").inner == Spec("word")  # a bare word elsewhere is a spec without parameters


def test_unknown_parameters_are_named_with_what_there_is(shop):
    with pytest.raises(InputError) as error:
        shop.build("drill(step=5)")
    assert str(error.value) == (
        "The tool 'drill' has no parameter 'step'. Did you mean 'steps'? It takes: steps, variant, note, inner, sizes."
    )
    with pytest.raises(InputError, match="has no parameter 'paper'"):  # class data is no parameter
        shop.build("drill(paper=other)")
    with pytest.raises(InputError, match=r"has no parameter 'x'\. It takes: none"):
        shop.build("function(x=1)")


def test_bad_values_are_reported_with_the_spec(shop):
    with pytest.raises(InputError, match=r"drill\(steps=0\) can't be used: steps must be positive"):
        shop.build("drill(steps=0)")
    with pytest.raises(InputError, match="steps of the tool 'drill' is a number, not many"):
        shop.build("drill(steps='many')")
    with pytest.raises(InputError, match=r"^Too many steps: use fewer\.$"):
        shop.build("drill(steps=100)")
    with pytest.raises(InputError, match="can't be used"):
        shop.build("bare(hidden=1)")


def test_plug_ins_are_loaded(shop, monkeypatch):
    point = importlib.metadata.EntryPoint("extra", f"{__name__}:Bare", "raison.no_such_room")
    asked = []
    monkeypatch.setattr(registries, "entry_points", lambda group: asked.append(group) or [point])
    assert "drill" in shop and asked == ["raison.no_such_room"]


@pytest.mark.parametrize("value", ["no_such_plugin_package:thing", "raison.core.spec:no_such_thing"])
def test_a_broken_plug_in_is_named(shop, monkeypatch, value):
    point = importlib.metadata.EntryPoint("extra", value, "raison.no_such_room")
    monkeypatch.setattr(registries, "entry_points", lambda group: [point])
    sentence = rf"The plug-in 'extra' \({value}\) can't be imported .*update or uninstall it"
    assert "drill" in list(shop)  # all else works
    assert re.match(sentence, shop.broken[0]) and len(shop.broken) == 1
    with pytest.raises(UnknownName, match=sentence):
        shop["what it might have had"]


def test_a_plug_in_that_takes_a_known_name_is_named(room, monkeypatch):
    tools, folder, package = room
    put(folder, package, "one.py", "hammer")
    (folder.parent / f"{package}_plugin.py").write_text(ENTRY.format(package=package, name="hammer", cls="Rival"))
    importlib.invalidate_caches()
    point = importlib.metadata.EntryPoint("rival", f"{package}_plugin", package)
    monkeypatch.setattr(registries, "entry_points", lambda group: [point])
    assert list(tools) == ["hammer"] and tools["hammer"].__name__ != "Rival"
    assert re.match(r"The plug-in 'rival' .*two entries called 'hammer'", tools.broken[0])


def test_many_threads_see_the_whole_table(room):
    tools, folder, package = room
    count = 12
    for number in range(count):
        put(folder, package, f"m{number:02}.py", f"tool_{number:02}")
        with (folder / f"m{number:02}.py").open("a") as file:
            file.write("\nimport time; time.sleep(0.005)\n")  # a slow import, so that the threads meet in it
    seen: list[Any] = []
    gate = threading.Barrier(8)

    def look(number):
        gate.wait()
        try:
            seen.append(list(tools) if number % 2 else [tools[f"tool_{n:02}"] for n in range(count)])
        except BaseException as error:
            seen.append(error)

    threads = [threading.Thread(target=look, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert len(seen) == 8 and all(isinstance(found, list) and len(found) == count for found in seen), seen


def test_an_entry_may_look_around_while_it_is_imported(room):
    tools, folder, package = room
    put(folder, package, "a.py", "first")
    (folder / "b.py").write_text(f"from {package}_room import tools\nknown = list(tools)\n")
    put(folder, package, "c.py", "last")
    assert list(tools) == ["first", "last"]


def test_the_real_registries_fill_themselves():
    assert {"random", "leave_one_out"} <= set(registries.methods) and {"bert", "llama"} <= set(registries.families)
    for name in registries.methods:
        assert str(registries.methods.build(name).spec()) == name
