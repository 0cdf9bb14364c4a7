"""How far a run is."""

from __future__ import annotations

import re
import threading

import pytest

from raison.core import progress
from raison.core.errors import InputError
from raison.runs.driver import run
from raison.runs.maintenance import compact_shards, repair_run
from raison.runs.run_lock import driver_lock
from raison.runs.run_spec import Means
from raison.runs.status import status_of_run
from raison.runs.storage import place_of
from raison.runs.store import records_of_run
from raison.runs.verify import verify_run
from tests.helpers.runs import METHODS, counts_of, shards_of, spec_of


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.full)])
def test_progress_is_told_within_a_shard(folder, tmp_path, workers):
    heard = []
    with progress.listen(lambda *told: heard.append(told)):
        run(
            tmp_path / "r",
            spec_of(folder, shard_tokens=10_000, chunk_tokens=40),
            Means(workers=workers),
        )
    counts = [
        done for done, total, what in heard if what.startswith("texts") or "texts a second" in what
    ]
    total = heard[-1][1]
    assert counts == sorted(counts) and counts[-1] == total
    if workers == 1:  # workers of their own may be done before anybody looks
        assert sum(0 < done < total for done in set(counts)) >= 3  # in the one shard that there is
    assert re.fullmatch(r"\S+ texts a second", heard[-1][2])


@pytest.mark.parametrize("means", [Means(), pytest.param(Means(workers=2), marks=pytest.mark.full)])
def test_all_explanations_are_counted_whenever_they_were_made(folder, tmp_path, means):
    spec = spec_of(folder, limit=12, metrics=(), shard_tokens=40)
    status = run(tmp_path / "r", spec, means)
    assert status.explanations == 12 * len(METHODS)
    for path in shards_of(tmp_path / "r")[:2]:
        path.unlink()
    left = status_of_run(place_of(tmp_path / "r"))
    assert left.explanations == sum(
        len(r.explanations) for r in records_of_run(place_of(tmp_path / "r"))
    )
    assert left.explanations < status.explanations
    for _ in range(2):  # the second time there is nothing to do
        assert run(tmp_path / "r", means=means, resume=True).explanations == 12 * len(METHODS)
        assert status_of_run(place_of(tmp_path / "r")).explanations == 12 * len(METHODS)
    compact_shards(place_of(tmp_path / "r"))
    (tmp_path / "r" / "status.json").unlink()
    assert status_of_run(place_of(tmp_path / "r")).explanations == 12 * len(METHODS)


def test_strange_files_of_status_and_spec(copied):
    for content in ("[]", "null", '"x"', '{"notices": 5}', "{"):
        (copied / "status.json").write_text(content)
        assert status_of_run(place_of(copied)).shards_done == len(shards_of(copied))
    (copied / "spec.json").write_text("null")
    with pytest.raises(InputError, match="spec of .* is damaged"):
        verify_run(place_of(copied))


def test_status_tells_what_is_there(copied):
    whole = status_of_run(place_of(copied))
    assert whole.state == "done" and whole.texts_done == whole.texts
    shards_of(copied)[0].write_bytes(b"")
    repair_run(place_of(copied))
    told = status_of_run(place_of(copied))
    assert told.state == "stopped" and told.shards_done == whole.shards - 1
    assert told.texts_done == whole.texts - counts_of(copied)[0] and told.seconds_left is None


def test_asking_for_the_status_refuses_no_driver(copied):
    import fcntl

    file = open(copied / "lock")  # noqa: SIM115
    fcntl.flock(file, fcntl.LOCK_SH)
    threading.Timer(0.06, file.close).start()
    with driver_lock(place_of(copied)):
        pass
