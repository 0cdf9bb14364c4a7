"""Registries: one file is enough, names are suggested, parameters are checked."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import sys
import threading
from dataclasses import dataclass, field, make_dataclass
from typing import Any, ClassVar, Optional

import pytest

from raison.core import registry as registries
from raison.core.errors import InputError, UnknownName
from raison.core.registry import Registry, suggest_name
from raison.core.spec import Spec

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
    assert not any(
        m.startswith(package + ".") for m in sys.modules
    )  # nothing is imported before the first look
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
        (
            "integrated_gradient",
            ["integrated_gradients", "random"],
            " Did you mean 'integrated_gradients'?",
        ),
        ("qqq", ["integrated_gradients", "random"], ""),
        ("", ["random"], ""),
        ("random", [], ""),
    ],
)
def test_suggestions(typed, known, expected):
    assert suggest_name(typed, known) == suggest_name(typed, iter(known)) == expected


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
    assert shop.build("drill(inner=word)").inner == Spec(
        "word"
    )  # a bare word elsewhere is a spec without parameters


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


@pytest.mark.parametrize(
    "value", ["no_such_plugin_package:thing", "raison.core.spec:no_such_thing"]
)
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
    (folder.parent / f"{package}_plugin.py").write_text(
        ENTRY.format(package=package, name="hammer", cls="Rival")
    )
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
            file.write(
                "\nimport time; time.sleep(0.005)\n"
            )  # a slow import, so that the threads meet in it
    seen: list[Any] = []
    gate = threading.Barrier(8)

    def look(number):
        gate.wait()
        try:
            seen.append(
                list(tools) if number % 2 else [tools[f"tool_{n:02}"] for n in range(count)]
            )
        except BaseException as error:
            seen.append(error)

    threads = [threading.Thread(target=look, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert len(seen) == 8 and all(
        isinstance(found, list) and len(found) == count for found in seen
    ), seen


def test_an_entry_may_look_around_while_it_is_imported(room):
    tools, folder, package = room
    put(folder, package, "a.py", "first")
    (folder / "b.py").write_text(f"from {package}_room import tools\nknown = list(tools)\n")
    put(folder, package, "c.py", "last")
    assert list(tools) == ["first", "last"]


def test_the_real_registries_fill_themselves():
    assert {"random", "leave_one_out"} <= set(registries.methods) and {"bert", "llama"} <= set(
        registries.families
    )
    for name in registries.methods:
        assert str(registries.methods.build(name).spec()) == name
