"""Damage is found and named."""

from __future__ import annotations

import json
import shutil

import pytest

from raison.core.errors import InputError
from raison.runs import checked_lines
from raison.runs.driver import run
from raison.runs.maintenance import compact_shards, repair_run
from raison.runs.plan import plan_header_of
from raison.runs.run_report import evaluation_of_run
from raison.runs.run_spec import RunSpec
from raison.runs.status import status_of_run
from raison.runs.storage import place_of
from raison.runs.store import records_of_run
from raison.runs.verify import verify_run
from tests.helpers.runs import parquet_of, shards_of, spec_of


def test_damage_is_named_and_made_again(folder, done, tmp_path):
    place = tmp_path / "r"
    run(place, spec_of(folder))
    names = sorted((place / "shards").iterdir())
    data = bytearray(names[0].read_bytes())
    data[len(data) // 2] ^= 1
    names[0].write_bytes(bytes(data))
    names[1].write_bytes(names[1].read_bytes()[:-40])  # torn
    found = verify_run(place_of(place))
    assert {each.file for each in found.damage} == {f"shards/{name.name}" for name in names[:2]}
    with pytest.raises(
        InputError, match="is damaged: its checksum does not fit.*raison store repair"
    ):
        list(records_of_run(place_of(place)))
    said = repair_run(place_of(place))
    assert (
        len(said) == 2
        and "its end was cut off" in said[1]
        and (place / "damaged" / names[0].name).is_file()
    )
    run(place, resume=True)
    assert verify_run(place_of(place)).whole and parquet_of(place) == parquet_of(done)


def test_the_same_text_with_another_label_is_no_damage(folder, tmp_path):
    (tmp_path / "a.csv").write_text(
        "text,label\ngood film,positive\ngood film,negative\nbad film,negative\n"
    )
    data = f"{tmp_path / 'a.csv'}(text=text, label=label)"
    run(tmp_path / "r", RunSpec(str(folder / "model"), data, ("gradient_norm",)))
    found = verify_run(place_of(tmp_path / "r"))
    assert found.whole and found.records == 3


def test_a_shard_of_another_run_is_told(folder, copied, done, other):
    shutil.copy(other / "shards" / "000000.jsonl", copied / "shards" / "000000.jsonl")
    found = verify_run(place_of(copied))
    assert {each.file for each in found.damage} == {"shards/000000.jsonl"}
    for wanted in (
        lambda: list(records_of_run(place_of(copied))),
        lambda: evaluation_of_run(place_of(copied)),
    ):
        with pytest.raises(InputError, match="raison store repair"):
            wanted()
    assert "damaged/" in repair_run(place_of(copied))[0]
    run(copied, resume=True)
    assert parquet_of(copied) == parquet_of(done)


def test_a_shard_of_the_right_size_is_held_against_the_plan(copied, done):
    path = shards_of(copied)[0]
    found = list(checked_lines.read_checked_lines(path.read_bytes(), "x").records())
    path.write_bytes(checked_lines.pack_lines(found[::-1], [0]))
    damage = verify_run(place_of(copied)).damage
    assert {each.file for each in damage} == {"shards/000000.jsonl"} and "what the plan has" in str(
        damage[0]
    )


def test_a_shard_beyond_the_plan_is_told(copied):
    found = checked_lines.read_checked_lines(shards_of(copied)[0].read_bytes(), "x")
    (copied / "shards" / "000099.jsonl").write_bytes(
        checked_lines.pack_lines(found.records(), [99])
    )
    assert "the plan has none of that number" in str(verify_run(place_of(copied)).damage[0])
    assert status_of_run(place_of(copied)).shards_done == plan_header_of(place_of(copied)).shards
    with pytest.raises(InputError, match=r"holds a shard 99.*raison store repair"):
        run(copied, resume=True)
    with pytest.raises(InputError, match="none of that number"):
        compact_shards(place_of(copied))
    repair_run(place_of(copied))
    assert verify_run(place_of(copied)).whole and run(copied, resume=True).state == "done"


def test_verify_reads_headers_and_costs_too(copied, done):
    cost = next((copied / "costs").glob("*.jsonl"))
    data = bytearray(cost.read_bytes())
    data[40] ^= 1
    cost.write_bytes(data)
    assert [each.file for each in verify_run(place_of(copied)).damage] == [f"costs/{cost.name}"]
    assert "what these results took is lost" in repair_run(place_of(copied))[0]
    assert verify_run(place_of(copied)).whole and parquet_of(copied) == parquet_of(done)
    header = copied / "plan" / "header.json"
    told = json.loads(header.read_text())
    header.write_text(json.dumps({**told, "gold_share": 0.5}))
    with pytest.raises(InputError, match=r"plan .* is damaged"):
        verify_run(place_of(copied))
    header.unlink()
    assert "plan/header.json" in [each.file for each in verify_run(place_of(copied)).damage]
    with pytest.raises(InputError, match="has results but no plan"):
        status_of_run(place_of(copied))
