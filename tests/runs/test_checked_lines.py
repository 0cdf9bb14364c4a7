"""Lines tell whether they are whole."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raison.core.errors import InputError
from raison.runs import checked_lines

on_a_busy_machine = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # no clock decides


def test_lines_tell_their_damage():
    data = checked_lines.pack_lines([{"a": 1}, {"b": "ü \ud83d"}, {"c": [1.5, None]}], [7])
    found = checked_lines.read_checked_lines(data, "f")
    assert (
        found.whole
        and found.shards == [7]
        and [list(r) for r in found.records()] == [["a"], ["b"], ["c"]]
    )
    for cut in range(1, len(data)):
        torn = checked_lines.read_checked_lines(data[:cut], "f")
        assert not torn.whole and torn.damage[-1].torn, cut
        assert len(torn.bodies) == data[:cut].count(b"\n")  # what stands before the cut is whole
    rng = random.Random(0)
    for _ in range(300):
        place, bit = rng.randrange(len(data)), 1 << rng.randrange(8)
        flipped = bytearray(data)
        flipped[place] ^= bit
        assert not checked_lines.read_checked_lines(bytes(flipped), "f").whole, place
    assert not checked_lines.read_checked_lines(data + data, "f").whole
    newer = checked_lines.pack_lines([], [0]).replace(b'"schema":1', b'"schema":9')
    body = newer[len(checked_lines.HEAD) + 16 + len(checked_lines.MIDDLE) : -2]
    newer = (
        checked_lines.HEAD
        + checked_lines.checksum_of_line(body)
        + checked_lines.MIDDLE
        + body
        + b"}\n"
    )
    with pytest.raises(InputError, match=r"written by a newer raison \(schema 9"):
        checked_lines.read_checked_lines(newer, "f")


@on_a_busy_machine
@given(
    st.lists(
        st.dictionaries(
            st.text(max_size=4), st.text() | st.integers() | st.floats(allow_nan=False)
        ),
        max_size=5,
    ),
    st.data(),
)
def test_any_record_comes_back_and_any_cut_or_flip_is_told(records, data):
    records = [
        {"r": record} for record in records
    ]  # as all records of a store do, these begin with a known field
    try:
        whole = checked_lines.pack_lines(records, [3])
    except ValueError:  # infinite numbers are refused, not written
        return
    found = checked_lines.read_checked_lines(whole, "f")
    assert found.whole and list(found.records()) == records and found.shards == [3]
    at = data.draw(st.integers(0, len(whole) - 1))
    cut = checked_lines.read_checked_lines(whole[:at], "f")
    assert not cut.whole and list(cut.records()) == records[: len(cut.bodies)]
    flipped = bytearray(whole)
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    assert not checked_lines.read_checked_lines(bytes(flipped), "f").whole
