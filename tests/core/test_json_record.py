"""Records in JSON: lossless, equal by content, refused in a sentence."""

from __future__ import annotations

import dataclasses
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raison
from raison.core.errors import InputError
from raison.core.findings import (
    STATUSES,
    Certificate,
    Grounding,
    PassageFinding,
    PredictionSummary,
    SearchStep,
)
from raison.core.records import Encoding, Example, Explanation, Record, Slot, Span, Units
from raison.testing import tiny_model
from tests.helpers.records import SMALL, explanation, fuzz, numbers, spans, targets, texts, written

reals = st.floats(allow_nan=False, allow_infinity=False)


free_json = st.recursive(
    st.none() | st.booleans() | st.integers() | reals | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def examples(draw):
    text = draw(written)
    slots = (Slot(draw(texts), 0, 1),) if draw(st.booleans()) else ()
    pair, label = draw(st.none() | written), draw(free_json)
    return Example(text, pair, draw(texts), draw(free_json), label, tuple(draw(st.lists(spans, max_size=2))), slots,
                   draw(st.dictionaries(texts, free_json, max_size=3)))  # fmt: skip


@st.composite
def encodings(draw, size=None):
    size = draw(st.integers(0, 6)) if size is None else size
    column = lambda values: st.lists(values, min_size=size, max_size=size)  # noqa: E731
    count = draw(st.integers(1, 3))
    names = st.lists(texts, min_size=count, max_size=count)
    return Encoding(
        ids=draw(column(numbers)),
        tokens=draw(column(texts)),
        segments=draw(names),
        texts=draw(names),
        segment=draw(column(st.integers(0, count - 1))),
        start=draw(column(numbers)),
        end=draw(column(numbers)),
        positions=draw(column(numbers)),
        fixed=draw(column(st.booleans())),
        types=draw(st.none() | column(numbers)),
        slots=tuple(
            draw(st.lists(st.builds(Slot, texts, st.just(0), st.integers(1, 9)), max_size=2))
        ),
        truncated=draw(st.integers(0, 9)),
        id=draw(texts),
    )


@st.composite
def groupings(draw, size=None):
    size = draw(st.integers(0, 6)) if size is None else size
    count = draw(st.integers(0, size))
    of = draw(st.permutations([*range(count), *[-1] * (size - count)]))
    names = draw(st.lists(texts, min_size=count, max_size=count))
    return Units(
        draw(texts), of, names, [(draw(numbers), draw(numbers), draw(numbers)) for _ in names]
    )


def tuples_of(values):
    return st.lists(values, max_size=2).map(tuple)


maybe_real, maybe_count = st.none() | reals, st.none() | st.integers(0, 99)


predictions = st.builds(
    PredictionSummary,
    texts,
    st.booleans(),
    maybe_real,
    maybe_real,
    maybe_real,
    tuples_of(st.tuples(texts, reals)),
)


certificates = st.builds(
    Certificate, texts, st.booleans(), st.integers(0, 9), st.none() | st.booleans(), st.booleans(), st.integers(0, 9),
    maybe_count, maybe_count, st.none() | st.booleans(), st.sampled_from(STATUSES), maybe_real, maybe_real, maybe_real,
    maybe_real, maybe_count, maybe_count, maybe_count,
)  # fmt: skip


steps = st.builds(
    SearchStep, texts, st.integers(0, 9), tuples_of(numbers), tuples_of(numbers), tuples_of(numbers), maybe_real,
    maybe_real, st.booleans(), tuples_of(st.tuples(numbers, reals)), texts,
)  # fmt: skip


passages = st.builds(
    PassageFinding, texts, st.integers(0, 9), st.integers(0, 9), st.booleans(), st.booleans()
)


groundings = st.builds(
    Grounding, texts, texts, st.booleans(), texts, tuples_of(passages), tuples_of(numbers)
)


@st.composite
def explanations(draw):
    size = draw(st.integers(0, 4))
    grouped = draw(groupings(size))
    per_unit = lambda values: st.lists(values, min_size=len(grouped), max_size=len(grouped))  # noqa: E731
    return Explanation(
        draw(encodings(size)), grouped, draw(targets()), draw(per_unit(reals)), draw(texts), draw(texts),
        draw(st.none() | texts), draw(st.none() | per_unit(st.booleans())),
        draw(st.none() | st.permutations(range(len(grouped)))),
        prediction=draw(st.none() | predictions),
        certificate=draw(st.none() | certificates),
        steps=tuple(draw(st.lists(steps, max_size=2))),
        grounding=draw(st.none() | groundings),
        notes=tuple(draw(st.lists(texts, max_size=2))),
        parts=draw(st.dictionaries(texts, free_json, max_size=2)),
        artifacts=draw(st.dictionaries(texts, texts, max_size=2)),
        diagnostics=draw(st.dictionaries(texts, free_json, max_size=2)),
    )  # fmt: skip


RANDOM = {
    "Span": spans,
    "Slot": st.builds(Slot, texts, st.integers(0, 9), st.integers(10, 20)),
    "Example": examples(),
    "Encoding": encodings(),
    "Units": groupings(),
    "Target": targets(),
    "PredictionSummary": predictions,
    "Certificate": certificates,
    "SearchStep": steps,
    "Grounding": groundings,
    "Explanation": explanations(),
}


def exactly(one, two):
    """Equal field by field, with types, shapes and dtypes: stricter than ==."""
    assert type(one) is type(two)
    if isinstance(one, np.ndarray):
        assert one.dtype == two.dtype and one.shape == two.shape and (one == two).all()
    elif isinstance(one, Record):
        for item in dataclasses.fields(one):
            exactly(getattr(one, item.name), getattr(two, item.name))
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            exactly(a, b)
    elif isinstance(one, dict):
        assert one.keys() == two.keys()
        for key in one:
            exactly(one[key], two[key])
    else:
        assert one == two and repr(one) == repr(two)  # repr: 0.0 is not -0.0


# -- JSON -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RANDOM)
def test_json_is_lossless(kind):
    @fuzz
    @given(RANDOM[kind])
    def check(record):
        text = record.to_json()
        text.encode("utf-8")  # can be written to any file
        again = type(record).from_json(text)
        exactly(record, again)
        assert again == record and hash(again) == hash(record) and again.to_json() == text
        assert (
            type(record).from_json(json.dumps(json.loads(text))) == record
        )  # ASCII escapes say the same

    check()


@pytest.mark.parametrize("kind", SMALL)
def test_records_survive_pickle(kind):
    record = SMALL[kind]()
    assert pickle.loads(pickle.dumps(record)) == record


def test_numpy_content_becomes_plain():
    meta = {
        "array": np.arange(2),
        "real": np.float32(0.5),
        "flag": np.bool_(True),
        "deep": [(np.int64(3),)],
        5: "key",
    }
    example = Example("text", target=np.int64(2), meta=meta)
    assert json.loads(example.to_json())["meta"] == {
        "array": [0, 1], "real": 0.5, "flag": True, "deep": [[3]], "5": "key"
    }  # fmt: skip
    assert Example.from_json(example.to_json()) == example


def test_lone_surrogates_are_carried():
    example = Example("a \ud800 b")
    assert Example.from_json(example.to_json()).text == "a \ud800 b"
    assert hash(example) == hash(Example("a \ud800 b"))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), {1, 2}, object(), b"bytes"])
def test_what_json_cannot_hold_is_refused_with_a_sentence(bad):
    with pytest.raises(InputError, match="holds what JSON can't"):
        Example("text", meta={"a": bad}).to_json()


@pytest.mark.parametrize("kind", SMALL)
def test_fields_of_a_newer_version_are_refused(kind):
    record = SMALL[kind]()
    data = {**record.to_dict(), "zeta": 1, "alpha": 2}
    sentence = rf"This {kind} record has unknown fields \(alpha, zeta\).*newer raison; update"
    with pytest.raises(InputError, match=sentence):
        type(record).from_dict(data)


def test_new_fields_deep_inside_are_refused_too():
    data = explanation().to_dict()
    data["target"]["mood"] = "good"
    with pytest.raises(InputError, match=r"This Target record has unknown fields \(mood\)"):
        Explanation.from_dict(data)


@pytest.mark.parametrize("kind", SMALL)
def test_missing_fields_are_refused(kind):
    cls = type(SMALL[kind]())
    with pytest.raises(InputError, match=f"not a complete {kind} record"):
        cls.from_json("{}")


@pytest.mark.parametrize("text", ["", "{", "nonsense", '{"text": }', "{'text': 'a'}"])
def test_what_is_not_json_is_refused(text):
    with pytest.raises(InputError, match=r"This is not JSON .* write it with Example.to_json"):
        Example.from_json(text)


@pytest.mark.parametrize("text", ["[]", "3", "null", '"text"', "true"])
def test_json_that_is_no_record_is_refused(text):
    with pytest.raises(InputError, match="This JSON holds no Example record"):
        Example.from_json(text)


@pytest.mark.parametrize(
    "change",
    [
        {"encoding": 5}, {"encoding": []}, {"units": "x"}, {"scores": ["a", "b", "c"]}, {"scores": [None] * 3},
        {"scores": [[1], [2, 3], 4]}, {"order": [2**80]},
    ],
)  # fmt: skip
def test_fields_of_the_wrong_type_are_refused(change):
    with pytest.raises(InputError):
        Explanation.from_dict({**explanation().to_dict(), **change})


@pytest.mark.parametrize("gold", [5, [5], "ab", [{"start": "0", "end": 1}], [{"start": 0}]])
def test_nested_records_of_the_wrong_type_are_refused(gold):
    with pytest.raises(InputError):
        Example.from_dict({"text": "text", "gold": gold})


# -- equality ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SMALL)
def test_equal_by_content(kind):
    one, two = SMALL[kind](), SMALL[kind]()
    assert one is not two and one == two and hash(one) == hash(two) and len({one, two}) == 1
    assert one != one.to_dict() and one != "text" and one is not None


def test_every_field_counts():
    for kind, make in SMALL.items():
        record = make()
        changes = {
            "Span": {"start": 0, "end": 3, "segment": ""},
            "Slot": {"name": "n", "start": 1, "end": 2},
            "Example": {"text": "other", "pair": None, "id": "8", "target": 2, "label": None, "gold": [], "slots": [],
                        "meta": {}},
            "Encoding": {"ids": [0] * 5, "tokens": ["a"] * 5, "segments": ["first"], "texts": ["b"], "start": [0] * 5,
                         "end": [1] * 5, "positions": [0] * 5, "fixed": [False] * 5, "types": None, "slots": [],
                         "truncated": 0, "id": ""},
            "Units": {"level": "token", "of": [0, 1, 2, 2, -1], "names": ["a", "b", "c"], "spans": [[0, 0, 1]] * 3},
            "Target": {"kind": "tag", "ids": [4, 2], "positions": [1, 2], "text": "", "output": "logit",
                       "contrast": None, "contrast_text": ""},
            "Explanation": {"scores": [0, 0, 0], "method": "m", "model": "n", "removal": "mask", "selected": None,
                            "order": None, "parts": {}, "artifacts": {}, "diagnostics": {"a": 1}},
        }[kind]  # fmt: skip
        for name, value in changes.items():
            other = type(record).from_dict({**record.to_dict(), name: value})
            assert other != record and other.content() != record.content(), (kind, name)


def test_equal_records_have_equal_hashes_whatever_python_thinks_of_numbers():
    variants = [
        Example("text", target=value)
        for value in (1, True, 1.0, "1", [1], None, 0, False, 0.0, -0.0)
    ]
    assert len({example.content() for example in variants}) == len(variants)
    for one in variants:
        for two in variants:
            assert (one == two) == (one is two)


def test_the_order_of_keys_does_not_matter():
    one, two = Example("t", meta={"a": 1, "b": 2}), Example("t", meta={"b": 2, "a": 1})
    assert one == two and hash(one) == hash(two)


def test_records_of_two_kinds_are_never_equal():
    @dataclasses.dataclass(frozen=True, eq=False)
    class Other(Record):
        start: int
        end: int
        segment: str = ""

    try:
        assert Other(1, 2) != Span(1, 2)
    finally:
        del Record.kinds["Other"]


def test_content_is_the_same_in_another_process():
    code = "from raison.core.records import Example; print(Example('漢 👍', meta={'b': 1, 'a': 2.5}).content())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == Example("漢 👍", meta={"a": 2.5, "b": 1}).content()


def test_records_import_neither_torch_nor_transformers():
    code = (
        "import sys, raison.core.records, raison.core.units, raison.core.spec, raison.core.registry; "
        "heavy = {'torch', 'transformers', 'tokenizers', 'rich', 'typer'}; "
        "print(sorted({m.split('.')[0] for m in sys.modules} & heavy))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


TEXT = "The old town lies on a hill"


def test_equal_results_are_equal_whatever_they_cost():
    model = tiny_model("bert", "classification")
    one, other = (raison.explain(model, TEXT) for _ in range(2))
    assert one == other and hash(one) == hash(other) and one.cost["cpu_seconds"] >= 0
    assert raison.Explanation.from_json(one.to_json()).cost == one.cost
