"""A damaged plan is told."""

from __future__ import annotations

import json

import pytest

from raison.core.errors import InputError
from raison.runs.driver import run
from raison.runs.maintenance import repair_run
from raison.runs.storage import place_of
from raison.runs.verify import verify_run
from tests.helpers.runs import shards_of


def test_a_damaged_plan_is_told(copied):
    plans = sorted((copied / "plan").glob("0*.jsonl"))
    plans[1].write_bytes(plans[0].read_bytes())
    assert [each.file for each in verify_run(place_of(copied)).damage] == [f"plan/{plans[1].name}"]
    assert "can't be mended" in repair_run(place_of(copied))[0]
    shards_of(copied)[1].unlink()
    with pytest.raises(InputError, match="damaged .*another shard's"):
        run(copied, resume=True)
    header = copied / "plan" / "header.json"
    told = json.loads(header.read_text())
    header.write_text(json.dumps({**told, "shards": 2}))
    with pytest.raises(InputError, match="The plan of .* is damaged"):
        run(copied, resume=True)
    header.unlink()
    with pytest.raises(InputError, match="results but no plan"):
        run(copied, resume=True)
