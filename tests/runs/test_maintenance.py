"""Mending and packing lose nothing."""

from __future__ import annotations

import json
import shutil

import pytest

from raison.core.errors import InputError
from raison.runs.driver import run
from raison.runs.maintenance import compact_shards, repair_run
from raison.runs.storage import Local, place_of
from raison.runs.verify import verify_run
from tests.helpers.runs import parquet_of, shards_of, spec_of


def test_compacting_loses_nothing_even_if_it_is_killed(folder, done, tmp_path, monkeypatch):
    place = tmp_path / "r"
    run(place, spec_of(folder))
    where = place_of(place)
    monkeypatch.setattr(
        Local, "delete", lambda self, name: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        compact_shards(where)
    monkeypatch.undo()
    assert verify_run(where).whole and verify_run(where).records == 120  # there twice, read once
    before, after = compact_shards(where)
    assert after == 1 and len(list((place / "shards").iterdir())) == 1 and before >= 1
    assert parquet_of(place) == parquet_of(done)
    assert run(place, resume=True).state == "done"


def test_compacting_never_takes_a_name_that_is_taken(copied, done):
    away = copied / "away"
    away.mkdir()
    late = shards_of(copied)[2:]
    for path in late:
        path.rename(away / path.name)
    compact_shards(place_of(copied))
    for path in late:
        (away / path.name).rename(path)
    compact_shards(place_of(copied))
    first, second = shards_of(copied)
    first.unlink()  # as if it had been put aside
    run(copied, resume=True)
    compact_shards(place_of(copied))
    assert (
        second in shards_of(copied)
        and verify_run(place_of(copied)).records == verify_run(place_of(done)).records
    )
    assert parquet_of(copied) == parquet_of(done)


def test_what_verify_finds_repair_mends(copied, done):
    first, second = shards_of(copied)[:2]
    first.write_bytes(second.read_bytes())
    (copied / "shards" / "000001 copy.jsonl").write_bytes(b"x")
    assert {each.file for each in verify_run(place_of(copied)).damage} >= {
        f"shards/{first.name}",
        "shards/000001 copy.jsonl",
    }
    repair_run(place_of(copied))
    run(copied, resume=True)
    assert verify_run(place_of(copied)).whole and parquet_of(copied) == parquet_of(done)


def test_compacting_keeps_the_only_good_copies(copied, done):
    compact_shards(place_of(copied))
    for path in shards_of(done):
        shutil.copy(path, copied / "shards")
    packed = next((copied / "shards").glob("compact-*"))
    data = bytearray(packed.read_bytes())
    data[500] ^= 1
    packed.write_bytes(data)
    with pytest.raises(InputError, match="its checksum does not fit"):
        compact_shards(place_of(copied))
    repair_run(place_of(copied))
    assert verify_run(place_of(copied)).whole and parquet_of(copied) == parquet_of(done)


def test_a_changed_spec_moves_no_result(copied):
    told = json.loads((copied / "spec.json").read_text())
    (copied / "spec.json").write_text(json.dumps({**told, "seed": 7}))
    before = shards_of(copied)
    assert [each.file for each in verify_run(place_of(copied)).damage] == ["spec.json"]
    assert "nothing was moved" in repair_run(place_of(copied))[0] and shards_of(copied) == before
