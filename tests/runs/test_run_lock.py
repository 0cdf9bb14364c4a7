"""One driver for a run."""

from __future__ import annotations

import json
import threading
import time

import pytest

from raison.core import progress
from raison.core.errors import InputError
from raison.runs import run_lock
from raison.runs.driver import run
from raison.runs.run_lock import driver_lock
from raison.runs.storage import place_of
from tests.helpers.runs import spec_of


def test_a_second_driver_is_refused(folder, tmp_path):
    place = place_of(tmp_path / "r")
    with (
        driver_lock(place),
        pytest.raises(InputError, match="is being driven by process"),
        driver_lock(place_of(tmp_path / "r")),
    ):
        pass
    run(tmp_path / "r", spec_of(folder, limit=3))  # a lock that was let go is not in the way


def test_of_two_drivers_that_begin_at_once_one_is_refused(monkeypatch):
    monkeypatch.setattr(run_lock, "BEAT", 0.1)
    began, refused = [], []

    def drive() -> None:
        try:
            with driver_lock(place_of("memory://two/run")):
                began.append(1)
                time.sleep(0.6)
        except InputError:
            refused.append(1)

    for _ in range(3):
        began.clear()
        refused.clear()
        both = [threading.Thread(target=drive) for _ in range(2)]
        for each in both:
            each.start()
        for each in both:
            each.join()
        assert (len(began), len(refused)) == (1, 1)


def test_a_driver_that_slept_stops_and_leaves_the_lock(monkeypatch):
    monkeypatch.setattr(run_lock, "BEAT", 0.2)
    place = place_of("memory://slept/run")
    with pytest.raises(InputError, match="driven by another driver"), driver_lock(place):
        place.put("lock", b'{"owner": "somebody else", "beat": 0}')
        for _ in range(100):
            time.sleep(0.05)
            progress.check()  # as every batch does
    assert json.loads(place.get("lock"))["owner"] == "somebody else"
