"""Runs in folders and at URLs."""

from __future__ import annotations

from raison.runs.driver import run
from raison.runs.storage import Local, place_of
from raison.runs.verify import verify_run
from tests.helpers.runs import spec_of


def test_runs_at_a_url(folder, done):
    status = run("memory://raison-test/r", spec_of(folder))
    assert status.state == "done"
    place = place_of("memory://raison-test/r")
    assert verify_run(place).whole and verify_run(place).records == 120
    first = sorted(place.names("shards"))[0]
    assert place.get(f"shards/{first}") == (done / "shards" / first).read_bytes()


def test_a_file_url_is_a_folder(copied):
    for kind in ("file://", "local://"):
        place = place_of(f"{kind}{copied}")
        assert isinstance(place, Local) and place.root == copied
