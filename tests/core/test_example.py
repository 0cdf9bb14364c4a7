"""Prompts made of a template: slots, and what may be wrong with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raison.core.errors import InputError
from raison.core.records import Example
from tests.helpers.records import fuzz, texts, written


def named(example):
    return [(s.name, example.text[s.start : s.end]) for s in example.slots]


def test_template_fills_slots():
    example = Example.from_template(
        "Q: {question}\nA: {answer}!", answer="Yes", question="Is 漢 👩🏽‍🚀?"
    )
    assert example.text == "Q: Is 漢 👩🏽‍🚀?\nA: Yes!"
    assert named(example) == [("question", "Is 漢 👩🏽‍🚀?"), ("answer", "Yes")]


def test_template_keeps_literal_braces():
    example = Example.from_template('{{"q": "{q}"}} {{}} }}{{', q="{q} {{")
    assert example.text == '{"q": "{q} {{"} {} }{'
    assert named(example) == [("q", "{q} {{")]


def test_template_may_touch_and_repeat_slots():
    example = Example.from_template("{a}{b}{a}", a="one", b="two")
    assert named(example) == [("a", "one"), ("b", "two"), ("a", "one")]


def test_template_without_slots_is_plain_text():
    assert Example.from_template("plain") == Example("plain")


def test_template_names_its_missing_part():
    with pytest.raises(InputError, match=r"names \{answer\}, but no such part"):
        Example.from_template("{question} {answer}", question="Why?")
    with pytest.raises(InputError, match=r"names \{\}, but no such part"):
        Example.from_template("{}", question="Why?")


def test_template_names_its_unused_parts():
    with pytest.raises(InputError, match="no slot for a, z"):
        Example.from_template("{question}", question="Why?", z="1", a="2")


@pytest.mark.parametrize("empty", ["", "  ", "\n"])
def test_template_refuses_empty_slots(empty):
    with pytest.raises(InputError, match="The slot 'q' is empty"):
        Example.from_template("Q: {q} A:", q=empty)


@pytest.mark.parametrize("broken", ["{", "}", "{q", "q}", "{q!}", "{q:{"])
def test_template_must_be_well_formed(broken):
    with pytest.raises(InputError, match=r"can't be read .*write slots as \{name\}"):
        Example.from_template(broken, q="x")


@pytest.mark.parametrize("formatted", ["{q:>10}", "{q!r}", "{q!s:5}"])
def test_template_refuses_formats_rather_than_ignoring_them(formatted):
    with pytest.raises(InputError, match=r"formats \{q\}"):
        Example.from_template(formatted, q="x")


@pytest.mark.parametrize("attack", ["{q.__class__}", "{q[0]}", "{0}"])
def test_template_never_looks_inside_a_part(attack):
    with pytest.raises(InputError, match="no such part"):
        Example.from_template(attack, q="x")


@pytest.mark.parametrize("part", [3, None, ["a"], b"b"])
def test_template_parts_are_strings(part):
    with pytest.raises(InputError, match="The part 'q' must be a string"):
        Example.from_template("{q}", q=part)


@fuzz
@given(st.lists(texts, min_size=1, max_size=4), st.lists(written, min_size=1, max_size=3))
def test_template_slots_are_where_they_say(literals, values):
    parts = {f"p{i}": value for i, value in enumerate(values)}
    quoted = [t.replace("{", "{{").replace("}", "}}") for t in literals]
    template = "".join(f"{quoted[i % len(quoted)]}{{{name}}}" for i, name in enumerate(parts))
    example = Example.from_template(template, **parts)
    assert example.text == "".join(
        literals[i % len(literals)] + value for i, value in enumerate(values)
    )
    assert named(example) == list(parts.items())
