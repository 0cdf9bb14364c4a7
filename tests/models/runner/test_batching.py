"""How questions become batches, against an oracle that looks at one row at a time."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raison.core.records import Encoding, Target
from raison.models.protocol import Budget
from raison.models.runner.batching import chunks, pieces, streams_of_batch_piece

fuzz = settings(max_examples=150, deadline=None, derandomize=True)


def encoding(size, fixed=(), source=None):
    """Plain tokens; with `source`, that many of them are the source of an encoder-decoder."""
    two = source is not None
    segment = [0] * source + [1] * (size - source) if two else [0] * size
    return Encoding(
        ids=np.arange(100, 100 + size),
        tokens=tuple(f"t{i}" for i in range(size)),
        segments=("source", "prefix") if two else ("text",),
        texts=("", "") if two else ("",),
        segment=segment,
        start=[-1] * size,
        end=[-1] * size,
        positions=[*range(source), *range(size - source)] if two else range(size),
        fixed=[t in fixed for t in range(size)],
    )


# -- the oracle: one row, one token at a time -------------------------------------------------------


def row_of(encoding, target, keep, delete):
    """Per stream [(axis position, visible)] of one row."""
    streams = [[]] if encoding.segments[0] != "source" else [[], []]
    for t in range(len(encoding)):
        read, kept = True, bool(keep[t]) or bool(encoding.fixed[t])
        if target is not None:
            if target.kind in ("token", "text"):
                read = t < target.positions[-1]  # nothing behind the last row is read
                kept = kept or t >= target.positions[0] or t in [p - 1 for p in target.positions]
            else:
                kept = kept or t in target.positions
        if read and (kept or not delete):
            stream = 0 if len(streams) == 1 or encoding.segment[t] == 0 else 1
            streams[stream].append((t, kept))
    return streams


def rows_of(piece):
    """The rows of a piece in the oracle's form, with their number in the question."""
    for n in range(len(piece)):
        yield (
            int(piece.which[n]),
            [
                list(zip(index[n].tolist(), visible[n].tolist(), strict=True))
                for index, visible in zip(piece.index, piece.visible, strict=True)
            ],
        )


@st.composite
def questions(draw, two=None):
    size = draw(st.integers(1, 7))
    two = draw(st.booleans()) if two is None else two
    source = draw(st.integers(0, size - 1)) if two else None
    some = encoding(size, draw(st.sets(st.integers(0, size - 1), max_size=2)), source)
    kind = draw(st.sampled_from(["none", "label", "tag", "token", "text"]))
    kind = draw(st.sampled_from(["token", "text"])) if two else kind
    if kind == "none":
        target = None
    elif kind == "label":
        target = Target("label", (1,))
    elif kind == "tag":
        target = Target("tag", (1,), (draw(st.integers(0, size - 1)),))
    else:
        first = draw(st.integers((source or 0) + 1, size))
        count = 1 if kind == "token" else draw(st.integers(1, size - first + 1))
        target = Target(kind, range(count), range(first, first + count))
    count = draw(st.integers(0, 6))
    keep = draw(
        st.lists(
            st.lists(st.booleans(), min_size=size, max_size=size), min_size=count, max_size=count
        )
    )
    return some, target, np.array(keep, dtype=bool).reshape(count, size)


# -- pieces -----------------------------------------------------------------------------------------


@fuzz
@given(questions(), st.booleans())
def test_pieces_hold_each_row_once_and_as_the_oracle_says(question, delete):
    some, target, keep = question
    found = {}
    for piece in pieces(3, some, target, keep, delete):
        assert (
            piece.owner == 3
            and piece.encoding is some
            and piece.target is target
            and len(piece) > 0
        )
        assert piece.lengths == tuple(index.shape[1] for index in piece.index)
        assert all(
            index.shape == visible.shape
            for index, visible in zip(piece.index, piece.visible, strict=True)
        )
        assert all(visible.dtype == bool for visible in piece.visible)
        for row, streams in rows_of(piece):
            assert row not in found
            found[row] = streams
    assert found == {row: row_of(some, target, keep[row], delete) for row in range(len(keep))}


@fuzz
@given(questions(), st.booleans())
def test_pieces_differ_in_length_and_keep_the_order_of_rows(question, delete):
    some, target, keep = question
    found = list(pieces(0, some, target, keep, delete))
    assert len({piece.lengths for piece in found}) == len(found)
    for piece in found:
        assert (np.diff(piece.which) > 0).all()
        assert all(
            (np.diff(index, axis=1) > 0).all() for index in piece.index
        )  # reading order within a row
    if not delete:
        assert len(found) == min(1, len(keep))


def test_pieces_by_hand():
    keep = np.array([[1, 0, 1, 0], [1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 1, 0]], bool)
    found = {p.lengths: p for p in pieces(0, encoding(4, fixed=(0,)), None, keep, True)}
    assert {k: p.which.tolist() for k, p in found.items()} == {(2,): [0, 3], (3,): [2], (4,): [1]}
    assert found[(2,)].index[0].tolist() == [[0, 2], [0, 2]] and found[(3,)].index[0].tolist() == [
        [0, 1, 2]
    ]
    (whole,) = pieces(0, encoding(4, fixed=(0,)), None, keep, False)
    assert whole.index[0].tolist() == [[0, 1, 2, 3]] * 4
    assert whole.visible[0].tolist() == [
        [True, False, True, False], [True] * 4, [True, True, True, False], [True, False, True, False]
    ]  # fmt: skip


def test_cutting_a_piece_cuts_every_array():
    (piece,) = pieces(
        5, encoding(4, source=2), Target("token", (1,), (4,)), np.ones((6, 4), bool), False
    )
    part = piece.cut(2, 99)
    assert (
        len(part) == 4
        and part.which.tolist() == [2, 3, 4, 5]
        and part.owner == 5
        and part.lengths == (2, 2)
    )
    assert all(array.shape == (4, 2) for array in (*part.index, *part.visible))


def test_streams():
    assert [s.tolist() for s in streams_of_batch_piece(encoding(3))] == [[0, 1, 2]]
    assert [s.tolist() for s in streams_of_batch_piece(encoding(5, source=2))] == [
        [0, 1],
        [2, 3, 4],
    ]
    assert [s.tolist() for s in streams_of_batch_piece(encoding(2, source=0))] == [[], [0, 1]]


def test_continuations_belong_to_the_decoder():
    longer = Encoding.from_dict(
        {**encoding(4, source=2).to_dict(), "segments": ["source", "prefix", "continuation"], "texts": ["", "", "x"],
         "segment": [0, 0, 1, 2]}
    )  # fmt: skip
    assert [s.tolist() for s in streams_of_batch_piece(longer)] == [[0, 1], [2, 3]]


def test_an_empty_source_is_an_empty_stream():
    some, target = encoding(4, source=3), Target("token", (1,), (4,))
    (piece,) = pieces(0, some, target, np.zeros((2, 4), bool), True)
    assert (
        piece.lengths == (0, 1)
        and piece.index[0].shape == (2, 0)
        and piece.index[1].tolist() == [[3], [3]]
    )
    (chunk,) = chunks([piece], Budget(), lambda lengths, columns: 1)
    assert chunk.lengths == (0, 1) and chunk.rows == 2 and chunk.tokens == 2
    assert chunk.fill(0, [piece.index[0]], -1).shape == (2, 0)
    assert chunk.local(piece, target.rows, 1).tolist() == [[0], [0]]


def test_no_rows_make_no_pieces():
    assert list(pieces(0, encoding(3), None, np.zeros((0, 3), bool), True)) == []
    assert list(chunks([], Budget(), lambda lengths, columns: 1)) == []


# -- chunks -----------------------------------------------------------------------------------------


def cost(lengths, columns):
    return 3 * max(lengths, default=1) ** 2 + 5 * columns + 1


@st.composite
def plans(draw):
    two = draw(st.booleans())
    asked = draw(st.lists(questions(two), max_size=5))
    delete = draw(st.booleans())
    padding = draw(st.sampled_from(["exact", "left", "right"]))
    budget = Budget(
        draw(st.sampled_from([1, 5, 12, 40, 4096])),
        draw(st.sampled_from([1, 60, 300, 10**9])),
        padding,
    )
    return asked, delete, budget


@fuzz
@given(plans())
def test_chunks_hold_every_row_once_within_the_budget(plan):
    asked, delete, budget = plan
    everything = [
        p
        for n, (some, target, keep) in enumerate(asked)
        for p in pieces(n, some, target, keep, delete)
    ]
    seen: Counter = Counter()
    for chunk in chunks(iter(everything), budget, cost):
        assert chunk.side == budget.padding and chunk.rows == sum(map(len, chunk.parts)) > 0
        longest = tuple(
            max(part.lengths[s] for part in chunk.parts) for s in range(len(chunk.lengths))
        )
        assert chunk.lengths == longest
        counts = {0 if part.target is None else len(part.target.ids) for part in chunk.parts}
        assert len(counts) == 1  # rows of one chunk have as many answers
        if chunk.rows > 1:  # a single row may exceed the budget: it has to run somehow
            assert chunk.rows * sum(chunk.lengths) <= budget.tokens
            assert chunk.rows * cost(chunk.lengths, counts.pop()) <= budget.bytes
        if budget.padding == "exact":
            assert all(part.lengths == chunk.lengths for part in chunk.parts)
        assert chunk.tokens == sum(len(streams[s]) for part in chunk.parts for _, streams in rows_of(part)
                                   for s in range(len(streams)))  # fmt: skip
        for part in chunk.parts:
            some, target, keep = asked[part.owner]
            for row, streams in rows_of(part):
                seen[part.owner, row] += 1
                assert streams == row_of(some, target, keep[row], delete)
    assert seen == Counter(
        {(n, row): 1 for n, (_, _, keep) in enumerate(asked) for row in range(len(keep))}
    )


@fuzz
@given(plans(), st.integers(-9, -1))
def test_padding_stands_on_the_right_side(plan, empty):
    asked, delete, budget = plan
    everything = [
        p
        for n, (some, target, keep) in enumerate(asked)
        for p in pieces(n, some, target, keep, delete)
    ]
    for chunk in chunks(everything, budget, cost):
        for stream, width in enumerate(chunk.lengths):
            ids = chunk.fill(
                stream, [part.encoding.ids[part.index[stream]] for part in chunk.parts], empty
            )
            flags = chunk.fill(stream, [part.visible[stream] for part in chunk.parts], False)
            assert ids.shape == flags.shape == (chunk.rows, width) and flags.dtype == bool
            assert budget.padding != "exact" or (ids != empty).all()
            row = 0
            for part in chunk.parts:
                for _, streams in rows_of(part):
                    wanted = [100 + t for t, _ in streams[stream]]
                    shown = [visible for _, visible in streams[stream]]
                    blank = [empty] * (width - len(wanted))
                    hidden = [False] * len(blank)
                    left = budget.padding == "left"
                    assert ids[row].tolist() == (blank + wanted if left else wanted + blank)
                    assert flags[row].tolist() == (hidden + shown if left else shown + hidden)
                    row += 1


@fuzz
@given(plans())
def test_rows_of_targets_are_found_in_their_columns(plan):
    asked, delete, budget = plan
    everything = [
        p
        for n, (some, target, keep) in enumerate(asked)
        for p in pieces(n, some, target, keep, delete)
    ]
    for chunk in chunks(everything, budget, cost):
        last = len(chunk.lengths) - 1
        ids = chunk.fill(last, [part.encoding.ids[part.index[last]] for part in chunk.parts], -1)
        row = 0
        for part in chunk.parts:
            rows = part.target.rows if part.target is not None else np.zeros(0, np.int64)
            local = chunk.local(part, rows, last) if len(rows) else np.zeros((len(part), 0), int)
            for n in range(len(part)):
                assert ids[row, local[n]].tolist() == (100 + rows).tolist()
                row += 1


def test_spread_repeats_a_value_for_each_row():
    one = list(pieces(0, encoding(3), Target("label", (1,)), np.ones((2, 3), bool), True))
    two = list(pieces(1, encoding(3), Target("label", (2,)), np.ones((1, 3), bool), True))
    (chunk,) = chunks(one + two, Budget(), cost)
    values = {0: np.array([1, 5]), 1: np.array([2, 6])}
    spread = chunk.spread([values[part.owner] for part in chunk.parts])
    owners = [part.owner for part in chunk.parts for _ in range(len(part))]
    assert spread.tolist() == [values[owner].tolist() for owner in owners]


@pytest.mark.parametrize(
    ("tokens", "sizes"), [(4096, [7]), (12, [4, 3]), (3, [1] * 7), (1, [1] * 7), (0, [1] * 7)]
)
def test_token_budgets_by_hand(tokens, sizes):
    """Seven rows of three tokens."""
    found = chunks(
        pieces(0, encoding(3), None, np.ones((7, 3), bool), True),
        Budget(tokens=tokens),
        lambda *_: 1,
    )
    assert [chunk.rows for chunk in found] == sizes


@pytest.mark.parametrize(
    ("limit", "sizes"), [(700, [7]), (399, [3, 3, 1]), (100, [1] * 7), (1, [1] * 7)]
)
def test_byte_budgets_by_hand(limit, sizes):
    """Seven rows of a hundred bytes."""
    found = chunks(
        pieces(0, encoding(3), None, np.ones((7, 3), bool), True),
        Budget(bytes=limit),
        lambda *_: 100,
    )
    assert [chunk.rows for chunk in found] == sizes


def test_exact_batches_join_questions_of_equal_length():
    sizes = (3, 4, 3)
    plan = [
        p
        for n, t in enumerate(sizes)
        for p in pieces(n, encoding(t), None, np.ones((2, t), bool), True)
    ]
    found = {
        chunk.lengths: [part.owner for part in chunk.parts]
        for chunk in chunks(plan, Budget(), cost)
    }
    assert found == {(3,): [0, 2], (4,): [1]}
    (one,) = chunks(plan, Budget(padding="left"), cost)
    assert one.lengths == (4,) and one.rows == 6


def test_targets_of_different_width_are_never_mixed():
    some = encoding(6)
    short, long = Target("token", (1,), (5,)), Target("text", (1, 2), (4, 5))
    plan = [
        p
        for n, t in enumerate((short, long, short))
        for p in pieces(n, some, t, np.ones((1, 6), bool), False)
    ]
    for padding in ("exact", "left", "right"):
        found = sorted(
            [part.owner for part in chunk.parts]
            for chunk in chunks(plan, Budget(padding=padding), cost)
        )
        assert found == [[0, 2], [1]]


def test_the_cost_is_asked_for_the_lengths_that_run():
    asked = []
    plan = list(
        pieces(
            0, encoding(3, source=1), Target("text", (1, 2), (2, 3)), np.ones((2, 3), bool), False
        )
    )
    list(chunks(plan, Budget(), lambda lengths, columns: asked.append((lengths, columns)) or 1))
    assert set(asked) == {((1, 2), 2)}
