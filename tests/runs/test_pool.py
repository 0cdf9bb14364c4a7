"""Workers give the same bytes as one process, and texts that end them are given up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raison.runs.driver import run
from raison.runs.query import query_run
from raison.runs.run_spec import Means
from raison.runs.storage import place_of
from raison.runs.store import records_of_run
from tests.helpers.runs import METHODS, parquet_of, spec_of


def test_workers_give_the_same_bytes(folder, done, tmp_path):
    status = run(tmp_path / "pool", spec_of(folder), Means(workers=2))
    assert status.state == "done" and status.texts_done == 60
    assert parquet_of(tmp_path / "pool") == parquet_of(done)
    names = sorted(path.name for path in (done / "shards").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "pool" / "shards").iterdir())
    for name in names:
        assert (done / "shards" / name).read_bytes() == (
            tmp_path / "pool" / "shards" / name
        ).read_bytes()


@pytest.mark.full
def test_a_poison_text_is_given_up_and_the_run_goes_on(folder, done, tmp_path, monkeypatch):
    """A method that ends its process at one text, and one that never comes back from another."""
    texts = [row.example.text for row in records_of_run(place_of(done)) if row.method == METHODS[0]]
    (tmp_path / "poison.py").write_text(
        "import os, time\n"
        "from raison.runs import worker\n"
        "plain = worker.Worker.explain\n"
        "def explain(self, texts):\n"
        f"    if any(t.example.text == {texts[5]!r} for t in texts): os._exit(3)\n"
        f"    if any(t.example.text == {texts[20]!r} for t in texts): time.sleep(60)\n"
        "    return plain(self, texts)\n"
        "worker.Worker.explain = explain\n"
    )
    from raison.runs import pool

    monkeypatch.setattr(pool, "serve_as_worker", poisoned_serve)
    monkeypatch.setenv("POISON", str(tmp_path / "poison.py"))
    status = run(tmp_path / "r", spec_of(folder, chunk_tokens=40), Means(workers=2, timeout=1.5))
    assert status.state == "done" and status.failed == 2 * len(METHODS)
    failed = {
        r.example.text: r.failure.reason
        for r in records_of_run(place_of(tmp_path / "r"))
        if r.failure is not None
    }
    assert failed == {texts[5]: "it ended with code 3", texts[20]: "it took too long"}
    assert len(list(records_of_run(place_of(tmp_path / "r")))) == 120
    rows = query_run(
        place_of(tmp_path / "r"), "select count(*) from explanations where failed is null"
    )[1]
    assert rows == [(116,)]


def poisoned_serve(pipe, where, spec, means):
    exec(compile(Path(os.environ["POISON"]).read_text(), "poison", "exec"), {})
    from raison.runs.pool import serve_as_worker

    serve_as_worker(pipe, where, spec, means)
