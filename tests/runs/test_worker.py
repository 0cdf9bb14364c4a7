"""Texts that do not fit into memory or can not be read."""

from __future__ import annotations

from raison.core.errors import InputError
from raison.runs.driver import run
from raison.runs.result_records import Failure
from raison.runs.storage import place_of
from raison.runs.store import records_of_run
from tests.helpers.runs import spec_of


def test_too_little_memory_takes_fewer_texts(folder, done, tmp_path, monkeypatch):
    from raison.runs.worker import Worker

    plain = Worker.explain

    def greedy(self, texts):
        if len(texts) > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return plain(self, texts)

    monkeypatch.setattr(Worker, "explain", greedy)
    status = run(tmp_path / "r", spec_of(folder))
    assert status.failed == 0 and "half as many were taken" in status.notices[-1]
    assert len(list(records_of_run(place_of(tmp_path / "r")))) == 120


def test_texts_that_can_not_be_read_are_recorded(folder, tmp_path, monkeypatch):
    from raison.runs.worker import Worker

    plain = Worker.explain

    def picky(self, texts):
        if any("7" in text.example.text for text in texts):
            raise InputError("The text has a seven.")
        return plain(self, texts)

    monkeypatch.setattr(Worker, "explain", picky)
    run(tmp_path / "r", spec_of(folder))
    failed = [r for r in records_of_run(place_of(tmp_path / "r")) if r.failure is not None]
    assert failed and all(r.failure == Failure("The text has a seven.", tries=1) for r in failed)
    assert all("7" in r.example.text for r in failed)
