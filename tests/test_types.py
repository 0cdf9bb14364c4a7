"""The records: frozen, validated, lossless in JSON, equal by content, and free of torch."""

from __future__ import annotations

import dataclasses
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raison.core.errors import InputError
from raison.core.findings import (
    STATUSES,
    Certificate,
    Grounding,
    PassageFinding,
    PredictionSummary,
    SearchStep,
)
from raison.core.records import Encoding, Example, Explanation, Record, Slot, Span, Target, Units

fuzz = settings(max_examples=80, deadline=None, derandomize=True)

# -- small records, made by hand --------------------------------------------------------------------


def encoding(size=5, **changes):
    """`[CLS] good film . [SEP]`, or as many plain tokens as wanted."""
    if size == 5:
        data = {
            "ids": [1, 10, 11, 12, 2],
            "tokens": ("[CLS]", "good", "film", ".", "[SEP]"),
            "segments": ("text",),
            "texts": ("good film.",),
            "segment": [0] * 5,
            "start": [-1, 0, 5, 9, -1],
            "end": [-1, 4, 9, 10, -1],
            "positions": range(5),
            "fixed": [True, False, False, False, True],
        }
    else:
        text = "x" * size
        data = {
            "ids": range(size),
            "tokens": tuple(text),
            "segments": ("text",),
            "texts": (text,),
            "segment": [0] * size,
            "start": range(size),
            "end": range(1, size + 1),
            "positions": range(size),
            "fixed": [False] * size,
        }
    return Encoding(**{**data, **changes})


def units(**changes):
    data = {
        "level": "word",
        "of": [-1, 0, 1, 2, -1],
        "names": ("good", "film", "."),
        "spans": ((0, 0, 4), (0, 5, 9), (0, 9, 10)),
    }
    return Units(**{**data, **changes})


def explanation(**changes):
    data = {
        "encoding": encoding(),
        "units": units(),
        "target": Target("label", (1,), text="positive"),
        "scores": [0.5, -0.25, 1e-300],
        "method": "random",
        "model": "tiny",
    }
    return Explanation(**{**data, **changes})


SMALL = {
    "Span": lambda: Span(1, 2, "pair"),
    "Slot": lambda: Slot("name", 0, 3),
    "Example": lambda: Example("a text", "its pair", "7", 1, "label", (Span(0, 1),), (Slot("s", 0, 1),), {"k": [1]}),
    "Encoding": lambda: encoding(types=[0] * 5, slots=(Slot("s", 0, 4),), truncated=3, id="e"),
    "Units": units,
    "Target": lambda: Target("text", (4, 5), (3, 4), "two words", "log_prob", (4, 7), "two others"),
    "Explanation": lambda: explanation(selected=[1, 0, 1], order=[2, 0], parts={"a": np.eye(2)}, artifacts={"h": "00"}),
}


def test_every_record_is_tested_here():
    assert {name for name, cls in Record.kinds.items() if cls.__module__ == "raison.core.records"} == set(SMALL)


# -- frozen -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SMALL)
def test_fields_cannot_be_assigned_or_deleted(kind):
    record = SMALL[kind]()
    for item in dataclasses.fields(record):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, item.name, None)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(record, item.name)


@pytest.mark.parametrize("kind", SMALL)
def test_arrays_are_read_only_and_lists_are_tuples(kind):
    record = SMALL[kind]()
    for item in dataclasses.fields(record):
        value = getattr(record, item.name)
        assert not isinstance(value, list)
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[...] = 0


def test_records_do_not_share_memory_with_the_caller():
    ids, meta, scores, parts = np.arange(5), {"a": [1]}, np.array([1.0, 2.0, 3.0]), {"x": [1.0]}
    one, two, three = encoding(ids=ids), Example("text", meta=meta), explanation(scores=scores, parts=parts)
    before = [r.content() for r in (one, two, three)]
    ids[0], scores[0] = 99, 99
    meta["a"].append(2)
    meta["b"] = parts["x"] = 0
    assert [r.content() for r in (one, two, three)] == before


# -- one sentence for each contradiction ------------------------------------------------------------


@pytest.mark.parametrize(("start", "end"), [(2, 2), (3, 2), (-1, 2)])
def test_span_must_be_a_range(start, end):
    with pytest.raises(InputError, match=r"0 <= start < end"):
        Span(start, end)


@pytest.mark.parametrize(("start", "end"), [(2, 2), (3, 2), (-1, 2)])
def test_slot_must_be_a_range(start, end):
    with pytest.raises(InputError, match="The slot 'name' is empty"):
        Slot("name", start, end)


@pytest.mark.parametrize("text", [None, 3, b"bytes", ["a"]])
def test_example_text_must_be_a_string(text):
    with pytest.raises(InputError, match="text of an example must be a string"):
        Example(text)


@pytest.mark.parametrize("pair", [3, b"bytes", ["a"]])
def test_example_pair_must_be_a_string(pair):
    with pytest.raises(InputError, match="pair of an example must be a string"):
        Example("text", pair)


@pytest.mark.parametrize("empty", ["", " ", "\n\t\u3000\u00a0"])
def test_example_needs_words(empty):
    with pytest.raises(InputError, match="The text is empty"):
        Example(empty)
    with pytest.raises(InputError, match="The pair is empty"):
        Example("text", empty)


def test_slots_must_not_overlap():
    with pytest.raises(InputError, match="'a' and 'b' overlap"):
        Example("some text", slots=(Slot("b", 2, 5), Slot("a", 0, 3)))
    with pytest.raises(InputError, match="overlap"):
        Example("some text", slots=(Slot("inner", 1, 2), Slot("outer", 0, 4)))
    assert len(Example("some text", slots=(Slot("b", 3, 5), Slot("a", 0, 3))).slots) == 2  # touching is no overlap


def test_slots_must_lie_within_the_text():
    assert Example("text", slots=(Slot("a", 0, 4),)).slots[0].end == 4
    with pytest.raises(InputError, match="'a' ends behind the text"):
        Example("text", slots=(Slot("a", 0, 5),))


def test_slot_of_white_space_is_empty():
    with pytest.raises(InputError, match="The slot 'a' is empty"):
        Example("some text", slots=(Slot("a", 4, 5),))


@pytest.mark.parametrize("name", ["tokens", "segment", "start", "end", "positions", "fixed", "types"])
def test_encoding_needs_one_value_per_token(name):
    with pytest.raises(InputError, match=f"An encoding of 5 tokens has 4 {name}"):
        encoding(**{name: ("a",) * 4 if name == "tokens" else [0] * 4})


def test_encoding_needs_one_text_per_segment():
    with pytest.raises(InputError, match="one text for each segment"):
        encoding(segments=("first", "second"))


@pytest.mark.parametrize("stray", [1, -1])
def test_encoding_refuses_tokens_of_unknown_segments(stray):
    with pytest.raises(InputError, match="another segment"):
        encoding(segment=[0, 0, stray, 0, 0])


def test_units_need_a_name_and_a_span_each():
    with pytest.raises(InputError, match="one name and one span each"):
        units(names=("good", "film"))


def test_spans_of_units_are_triples():
    with pytest.raises(InputError, match="three numbers"):
        units(spans=((0, 4), (5, 9), (9, 10)))


@pytest.mark.parametrize("of", [[-1, 0, 1, 1, -1], [-1, 0, 1, 3, -1], [-1, -1, -1, -1, -1], [0, 1, 2, 3, 3]])
def test_units_are_numbered_without_holes(of):
    with pytest.raises(InputError, match="Every unit must have at least one token"):
        units(of=of)


def test_units_below_minus_one_are_refused():
    # -2 would silently mean the last unit in `keep`
    with pytest.raises(InputError, match="or -1 for none"):
        units(of=[-2, 0, 1, 2, -1])


def test_target_kind_and_output_are_known():
    with pytest.raises(InputError, match="label, tag, span, token, text"):
        Target("word", (1,))
    with pytest.raises(InputError, match="logit, log_prob, prob"):
        Target("label", (1,), output="probability")


def test_contrast_has_the_length_of_the_target():
    with pytest.raises(InputError, match=r"'yes' and 'not at all' differ in length \(1 and 2 tokens\)"):
        Target("token", (1,), (3,), "yes", contrast=(1, 2), contrast_text="not at all")


@pytest.mark.parametrize(("ids", "positions"), [((1,), ()), ((), ()), ((1, 2), (3,)), ((1,), (3, 4))])
def test_written_target_needs_a_position_per_token(ids, positions):
    for kind in ("token", "text"):
        with pytest.raises(InputError, match="one position for each"):
            Target(kind, ids, positions)


def test_target_must_have_something_to_be_read_from():
    with pytest.raises(InputError, match="before the first token"):
        Target("token", (1,), (0,))
    with pytest.raises(InputError, match="before the first token"):
        Target("tag", (1,), (-1,))
    assert Target("tag", (1,), (0,)).rows.tolist() == [0]


def test_scores_fit_the_units():
    with pytest.raises(InputError, match="2 scores of random do not fit 3 units"):
        explanation(scores=[1, 2])


def test_units_fit_the_encoding():
    with pytest.raises(InputError, match="Units of 5 tokens do not fit 4 tokens"):
        explanation(encoding=encoding(4))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_scores_are_finite(bad):
    with pytest.raises(InputError, match="NaN or infinite"):
        explanation(scores=[0, bad, 1])


def test_selection_fits_the_units():
    with pytest.raises(InputError, match="A selection of 2 does not fit 3 units"):
        explanation(selected=[True, False])


@pytest.mark.parametrize("order", [[0, 0], [3], [-1], [0, 1, 2, 1]])
def test_order_names_units_at_most_once(order):
    with pytest.raises(InputError, match="at most once"):
        explanation(order=order)


# -- JSON -------------------------------------------------------------------------------------------

HOSTILE = (
    "👩🏽‍🚀", "🇩🇪", "1️⃣", "漢字", "かな", "한글", "ไทย", "नमस्ते", "שלום", "مرحبا", "\u0301", "\u200d", "\u202e", "\ufeff",
    "\x00", "\x1f", "\u2028", "\u2029", '"', "\\", "</script>", "\U0010ffff", "e\u0301", "ﬁ", "\n", "\r\n", "\t", " ",
)  # fmt: skip
texts = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=5), max_size=6).map("".join)
written = texts.map(lambda t: "x" + t)  # never empty
numbers = st.integers(-(2**62), 2**62)
reals = st.floats(allow_nan=False, allow_infinity=False)
free_json = st.recursive(
    st.none() | st.booleans() | st.integers() | reals | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
spans = st.tuples(st.integers(0, 50), st.integers(1, 50), texts).map(lambda s: Span(s[0], s[0] + s[1], s[2]))


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
        slots=tuple(draw(st.lists(st.builds(Slot, texts, st.just(0), st.integers(1, 9)), max_size=2))),
        truncated=draw(st.integers(0, 9)),
        id=draw(texts),
    )


@st.composite
def groupings(draw, size=None):
    size = draw(st.integers(0, 6)) if size is None else size
    count = draw(st.integers(0, size))
    of = draw(st.permutations([*range(count), *[-1] * (size - count)]))
    names = draw(st.lists(texts, min_size=count, max_size=count))
    return Units(draw(texts), of, names, [(draw(numbers), draw(numbers), draw(numbers)) for _ in names])


@st.composite
def targets(draw):
    kind = draw(st.sampled_from(["label", "tag", "span", "token", "text"]))
    ids = draw(st.lists(numbers, min_size=1, max_size=3))
    positions = draw(st.lists(st.integers(1, 99), min_size=len(ids), max_size=len(ids)))
    rival = draw(st.none() | st.tuples(*(st.just(i) for i in ids[:-1]), numbers))  # only the last token may differ
    output = draw(st.sampled_from(["logit", "log_prob", "prob"] if len(ids) == 1 else ["logit", "log_prob"]))
    return Target(kind, ids, positions, draw(texts), output, rival, draw(texts))


def tuples_of(values):
    return st.lists(values, max_size=2).map(tuple)


maybe_real, maybe_count = st.none() | reals, st.none() | st.integers(0, 99)
predictions = st.builds(
    PredictionSummary, texts, st.booleans(), maybe_real, maybe_real, maybe_real, tuples_of(st.tuples(texts, reals))
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
passages = st.builds(PassageFinding, texts, st.integers(0, 9), st.integers(0, 9), st.booleans(), st.booleans())
groundings = st.builds(Grounding, texts, texts, st.booleans(), texts, tuples_of(passages), tuples_of(numbers))


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
        assert type(record).from_json(json.dumps(json.loads(text))) == record  # ASCII escapes say the same

    check()


@pytest.mark.parametrize("kind", SMALL)
def test_records_survive_pickle(kind):
    record = SMALL[kind]()
    assert pickle.loads(pickle.dumps(record)) == record


def test_numpy_content_becomes_plain():
    meta = {"array": np.arange(2), "real": np.float32(0.5), "flag": np.bool_(True), "deep": [(np.int64(3),)], 5: "key"}
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
    variants = [Example("text", target=value) for value in (1, True, 1.0, "1", [1], None, 0, False, 0.0, -0.0)]
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


# -- templates --------------------------------------------------------------------------------------


def named(example):
    return [(s.name, example.text[s.start : s.end]) for s in example.slots]


def test_template_fills_slots():
    example = Example.from_template("Q: {question}\nA: {answer}!", answer="Yes", question="Is 漢 👩🏽‍🚀?")
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
    assert example.text == "".join(literals[i % len(literals)] + value for i, value in enumerate(values))
    assert named(example) == list(parts.items())


# -- encodings and units ----------------------------------------------------------------------------


def test_text_of_a_token_is_its_characters_or_its_name():
    two = encoding(
        segments=("first", "second"), texts=("good film", "naïve 👍🏽!"), segment=[0, 0, 1, 1, 1],
        start=[-1, 0, 0, 6, -1], end=[-1, 4, 5, 8, -1],
    )  # fmt: skip
    assert [two.text_of(t) for t in range(5)] == ["[CLS]", "good", "naïve", "👍🏽", "[SEP]"]
    assert len(two) == 5


def test_keep_keeps_what_is_no_unit():
    some = units()
    assert some.keep(np.array([True, False, True])).tolist() == [True, True, False, True, True]
    assert some.keep(np.zeros(3, bool)).tolist() == [True, False, False, False, True]


def test_keep_works_on_any_number_of_axes():
    some = units(of=[1, 0, 1, 2, -1])
    chosen = np.array([[[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [1, 1, 1]]], bool)
    kept = some.keep(chosen)
    assert kept.shape == (2, 2, 5) and kept.dtype == bool
    for index in np.ndindex(2, 2):
        assert kept[index].tolist() == [chosen[index][u] if u >= 0 else True for u in some.of]
    assert some.keep(np.zeros((0, 3), bool)).shape == (0, 5)


def test_keep_without_units_keeps_everything():
    none = Units("word", [-1, -1], (), ())
    assert len(none) == 0 and none.keep(np.zeros(0, bool)).tolist() == [True, True]


# -- targets: what may be seen, what may be removed (the encoding: specials at 0 and 4) --------------


def marks(mask):
    return "".join("x" if m else "." for m in mask)


@pytest.mark.parametrize(
    ("target", "rows", "scope", "inputs", "given", "free"),
    [
        (Target("label", (1,)), [], "xxxxx", "xxxxx", "x...x", ".xxx."),
        (Target("tag", (2,), (2,)), [2], "xxxxx", "xxxxx", "x.x.x", ".x.x."),
        (Target("span", (1, 3), (1, 3)), [1, 3], "xxxxx", "xxxxx", "xx.xx", "..x.."),
        # the next token: read off the last row, which must run
        (Target("token", (7,), (5,)), [4], "xxxxx", "xxxxx", "x...x", ".xxx."),
        # token 3 of the text: it sees 0..2 and is read off row 2
        (Target("token", (7,), (3,)), [2], "xxx..", "xxx..", "x.x..", ".x..."),
        (Target("token", (7,), (1,)), [0], "x....", "x....", "x....", "....."),
        # tokens 2..3: token 3 is predicted with token 2 in sight, which nobody may remove
        (Target("text", (7, 8), (2, 3)), [1, 2], "xx...", "xxx..", "xxx..", "....."),
        (Target("text", (7, 8, 9), (3, 4, 5)), [2, 3, 4], "xxx..", "xxxxx", "x.xxx", ".x..."),
    ],
)
def test_target_by_hand(target, rows, scope, inputs, given, free):
    some = encoding()
    assert target.rows.tolist() == rows and target.rows.dtype == np.int64
    assert marks(target.scope(5)) == scope
    assert marks(target.inputs(5)) == inputs
    assert marks(target.given(some)) == given
    assert marks(target.free(some)) == free
    assert target.generated == (target.kind in ("token", "text"))


@fuzz
@given(targets(), st.integers(1, 12), st.data())
def test_what_is_given_and_what_is_free_partition_the_inputs(target, size, data):
    first = data.draw(st.integers(1, size))
    last = data.draw(st.integers(0, size - 1))
    count = len(target.ids)
    places = range(first, first + count) if target.generated else [last] * count
    if target.generated and first + count > size + 1:
        return  # a target's own tokens stand on the axis, but for the last
    aimed = Target.from_dict({**target.to_dict(), "positions": list(places)})
    some = encoding(size, fixed=data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    given_, free, inputs = aimed.given(some), aimed.free(some), aimed.inputs(size)
    assert not (given_ & free).any() and ((given_ | free) == inputs).all()
    assert (free <= aimed.scope(size)).all() and not (free & some.fixed).any() and not free[aimed.rows].any()
    assert not some.fixed.flags.writeable


def test_explanation_scope_and_tokens():
    about = explanation(target=Target("token", (7,), (3,)))
    assert marks(about.scope) == "xxx.." and about.tokens == ("good", "film", ".")
