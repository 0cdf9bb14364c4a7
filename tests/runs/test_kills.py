"""However often a run is killed, it gives the same bytes."""

from __future__ import annotations

import sys

import pytest

from raison.runs.driver import run
from raison.runs.storage import place_of
from raison.runs.verify import verify_run
from tests.helpers.runs import killed, parquet_of, spec_of, write_texts


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_kills_change_nothing(folder, done, tmp_path):
    place = tmp_path / "r"
    place.mkdir()
    (place / "spec.json").write_text(spec_of(folder).to_json())
    count = killed(folder, place, workers=2, kills=4, seed=1)
    assert count >= 2
    found = verify_run(place_of(place))
    assert found.whole and not found.missing and found.records == 120
    assert parquet_of(place) == parquet_of(done)


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_two_hundred_kills_change_nothing(folder, tmp_path):
    """2,000 explanations, 200 kills of drivers and workers, local and on Ray: every one there once, the same bytes."""
    write_texts(tmp_path / "data.csv", 1000)
    spec = spec_of(folder, data=str(tmp_path / "data.csv"), metrics=(), shard_tokens=400)
    run(tmp_path / "plain", spec)
    for name, kills, ray in (("pool", 140, False), ("ray", 60, True)):
        place = tmp_path / name
        count = round_ = 0
        while count < kills:  # a run that ends before enough kills is begun anew
            round_ += 1
            place = tmp_path / f"{name}-{round_}"
            place.mkdir()
            (place / "spec.json").write_text(spec.to_json())
            count += killed(folder, place, workers=2, kills=kills - count, seed=round_, ray=ray)
            found = verify_run(place_of(place))
            assert found.whole and not found.missing and found.records == 2000
            assert parquet_of(place) == parquet_of(tmp_path / "plain")
