"""The records: frozen, validated, and what a target may see."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raison.core.errors import InputError
from raison.core.records import Example, Record, Slot, Span, Target, Units
from tests.helpers.records import SMALL, encoding, explanation, fuzz, targets, units

# -- small records, made by hand --------------------------------------------------------------------


def test_every_record_is_tested_here():
    homes = ("raison.core.example", "raison.core.records")
    assert {name for name, cls in Record.kinds.items() if cls.__module__ in homes} == set(SMALL)


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
    one, two, three = (
        encoding(ids=ids),
        Example("text", meta=meta),
        explanation(scores=scores, parts=parts),
    )
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
    assert (
        len(Example("some text", slots=(Slot("b", 3, 5), Slot("a", 0, 3))).slots) == 2
    )  # touching is no overlap


def test_slots_must_lie_within_the_text():
    assert Example("text", slots=(Slot("a", 0, 4),)).slots[0].end == 4
    with pytest.raises(InputError, match="'a' ends behind the text"):
        Example("text", slots=(Slot("a", 0, 5),))


def test_slot_of_white_space_is_empty():
    with pytest.raises(InputError, match="The slot 'a' is empty"):
        Example("some text", slots=(Slot("a", 4, 5),))


@pytest.mark.parametrize(
    "name", ["tokens", "segment", "start", "end", "positions", "fixed", "types"]
)
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


@pytest.mark.parametrize(
    "of", [[-1, 0, 1, 1, -1], [-1, 0, 1, 3, -1], [-1, -1, -1, -1, -1], [0, 1, 2, 3, 3]]
)
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
    with pytest.raises(
        InputError, match=r"'yes' and 'not at all' differ in length \(1 and 2 tokens\)"
    ):
        Target("token", (1,), (3,), "yes", contrast=(1, 2), contrast_text="not at all")


@pytest.mark.parametrize(
    ("ids", "positions"), [((1,), ()), ((), ()), ((1, 2), (3,)), ((1,), (3, 4))]
)
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


def marks(mask):
    return "".join("x" if m else "." for m in mask)


# -- targets: what may be seen, what may be removed (the encoding: specials at 0 and 4) --------------


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
    assert (
        (free <= aimed.scope(size)).all()
        and not (free & some.fixed).any()
        and not free[aimed.rows].any()
    )
    assert not some.fixed.flags.writeable


def test_explanation_scope_and_tokens():
    about = explanation(target=Target("token", (7,), (3,)))
    assert marks(about.scope) == "xxx.." and about.tokens == ("good", "film", ".")
