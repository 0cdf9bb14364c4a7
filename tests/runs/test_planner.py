"""How a corpus is dealt into shards."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raison.core.errors import InputError
from raison.core.records import Example
from raison.runs.driver import run
from raison.runs.plan import PlannedText, plan_header_of, shard_of
from raison.runs.planner import ShardDealer, chunks_of_corpus
from raison.runs.run_spec import RunSpec
from raison.runs.storage import place_of
from tests.helpers.runs import spec_of

on_a_busy_machine = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # no clock decides


@on_a_busy_machine
@given(st.lists(st.integers(1, 300), min_size=1, max_size=60), st.integers(1, 2000))
def test_any_shape_is_dealt_into_chunks_that_fit(sizes, most):
    texts = [PlannedText(n, tokens, Example("x")) for n, tokens in enumerate(sizes)]
    chunks = chunks_of_corpus(texts, most)
    assert [n for chunk in chunks for n in chunk] == list(range(len(texts)))
    for chunk in chunks:
        assert len(chunk) == 1 or sum(sizes[n] for n in chunk) <= most
    for one, next_one in pairwise(chunks):  # none could have taken the first of the next
        assert sum(sizes[n] for n in (*one, next_one[0])) > most


def test_plans_are_dealt_by_tokens(folder, done):
    place = place_of(done)
    header = plan_header_of(place)
    seen: list[int] = []
    for number in range(header.shards):
        shard = shard_of(place, number)
        assert sum(text.tokens for text in shard.texts) <= 250 or len(shard.texts) == 1
        for chunk in shard.chunks:
            assert sum(shard.texts[k].tokens for k in chunk) <= 80 or len(chunk) == 1
        assert [k for chunk in shard.chunks for k in chunk] == list(range(len(shard.texts)))
        lengths = [text.tokens for text in shard.texts]
        assert lengths == sorted(lengths, reverse=True)
        seen += [text.index for text in shard.texts]
    assert sorted(seen) == list(range(60))


def test_labels_that_are_no_numbers_are_broken_records(folder, tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text(
        '{"text": "a film", "label": NaN}\n{"text": "dull", "meta": {"x": NaN}, "y": Infinity}\n'
    )
    with pytest.raises(InputError, match=r"label of an example is nan, which is no number"):
        run(tmp_path / "one", spec_of(folder, data=str(path), metrics=()))
    ended = run(tmp_path / "two", spec_of(folder, data=str(path), metrics=(), skip_broken=True))
    assert (ended.state, ended.texts_done) == ("done", 1)
    with pytest.raises(InputError, match="target of an example is inf"):
        Example("a film", target=float("inf"))


def test_planning_many_texts_takes_a_time_for_each(tmp_path):
    """Twice as many texts take about twice as long, whatever the size of a shard."""
    texts = [PlannedText(k, 5, Example("a film", id=str(k))) for k in range(40_000)]

    def spent(count: int) -> float:
        dealer = ShardDealer(place_of(tmp_path), RunSpec("m", "d", shard_tokens=10**9))
        start = time.process_time()
        dealer.deal(texts[:count])
        return time.process_time() - start

    assert min(spent(40_000) for _ in range(3)) < 12 * max(
        1e-3, min(spent(10_000) for _ in range(3))
    )
