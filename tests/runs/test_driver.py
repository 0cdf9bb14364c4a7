"""Runs from their beginning to their end; nothing lost, nothing twice."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import raison
from raison.cli.app import app
from raison.core.errors import InputError, RaisonError, out_of_memory
from raison.core.records import Example
from raison.runs.driver import run
from raison.runs.plan import plan_header_of
from raison.runs.run_report import evaluation_of_run
from raison.runs.run_spec import Means
from raison.runs.status import status_of_run
from raison.runs.storage import Unwritten, place_of
from raison.runs.store import done_shards, records_of_run
from raison.runs.verify import verify_run
from raison.studies.evaluate_methods import evaluate
from tests.helpers.runs import METHODS, parquet_of, shards_of, spec_of


def test_a_run_is_what_explain_and_evaluate_say(folder, done):
    model = raison.load(str(folder / "model"))
    header = plan_header_of(place_of(done))
    assert header.texts == 60 and header.twice == 1 and header.shards > 3
    by_method: dict[str, dict[str, list[float]]] = {name: {} for name in METHODS}
    for record in records_of_run(place_of(done)):
        by_method[record.method][record.example.text] = record.explanations[0]["scores"]
    for name in METHODS:
        assert len(by_method[name]) == 60
        for text, scores in list(by_method[name].items())[:10]:
            np.testing.assert_allclose(
                raison.explain(model, text, name).scores, scores, rtol=1e-4, atol=1e-5
            )
    made = evaluation_of_run(place_of(done))
    texts = [Example(seen.text) for seen in made.texts]
    direct = evaluate(model, texts, METHODS, ["comprehensiveness"])
    for name in METHODS:
        mine, other = made.cell(name, "comprehensiveness"), direct.cell(name, "comprehensiveness")
        assert mine.value == pytest.approx(other.value, rel=1e-4) and mine.low == pytest.approx(
            other.low, rel=1e-3
        )
    assert "1 texts stand there more than once" in " ".join(made.notes)


def test_all_targets_and_searches(folder, tmp_path):
    run(tmp_path / "r", spec_of(folder, methods=("greedy",), target="all", metrics=(), limit=8))
    found = list(records_of_run(place_of(tmp_path / "r")))
    assert len(found) == 8 and {len(record.explanations) for record in found} == {3}
    assert all(each["selected"] is not None for record in found for each in record.explanations)


def test_a_run_goes_on_where_shards_are_missing(folder, done, tmp_path):
    run(tmp_path / "r", spec_of(folder))
    for name in sorted((tmp_path / "r" / "shards").iterdir())[::2]:
        name.unlink()
    assert verify_run(place_of(tmp_path / "r")).missing
    assert (
        status_of_run(place_of(tmp_path / "r")).shards_done < plan_header_of(place_of(done)).shards
    )
    with pytest.raises(InputError, match="go on with it \\(--resume\\)"):
        run(tmp_path / "r", spec_of(folder))
    run(tmp_path / "r", resume=True)
    assert parquet_of(tmp_path / "r") == parquet_of(done)
    with pytest.raises(InputError, match="a run with another units"):
        run(tmp_path / "r", spec_of(folder, units="token"), resume=True)


def test_full_disks_and_readonly_folders_are_told(folder, done, tmp_path, monkeypatch):
    plain = os.replace
    calls = {"count": 0}

    def full(source, target):
        if "shards" in str(target):
            calls["count"] += 1
            if calls["count"] == 3:
                raise OSError(28, "No space left on device")
        return plain(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(
        Unwritten, match=r"No space left on device\): mend that, and resume the run"
    ):
        run(tmp_path / "r", spec_of(folder))
    monkeypatch.undo()
    assert len(done_shards(place_of(tmp_path / "r"))) == 2
    assert status_of_run(place_of(tmp_path / "r")).state in ("failed", "stopped")
    run(tmp_path / "r", resume=True)
    assert parquet_of(tmp_path / "r") == parquet_of(done)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(Unwritten, match="can't be written"):
        run(blocked / "r", spec_of(folder))


def test_clocks_may_jump(folder, done, tmp_path, monkeypatch):
    now = iter(range(10**9, 0, -3600))
    monkeypatch.setattr(time, "time", lambda: next(now))
    assert run(tmp_path / "r", spec_of(folder)).state == "done"
    monkeypatch.undo()
    assert parquet_of(tmp_path / "r") == parquet_of(done)


def test_failures_are_not_forgotten_and_can_be_tried_again(folder, done, tmp_path, monkeypatch):
    from raison.runs.worker import Worker

    plain = Worker.explain

    def tired(self, texts):
        if any(text.index == 3 for text in texts):
            raise RuntimeError("could not do it")
        return plain(self, texts)

    with monkeypatch.context() as patched:
        patched.setattr(Worker, "explain", tired)
        assert run(tmp_path / "r", spec_of(folder)).failed == len(METHODS)
    assert run(tmp_path / "r", resume=True).failed == len(METHODS)
    assert run(tmp_path / "r", resume=True, retry=True).failed == 0
    assert parquet_of(tmp_path / "r") == parquet_of(done)
    assert out_of_memory(RuntimeError("could not create a primitive descriptor"))


def test_what_can_not_work_is_told_before_anything_is_written(folder, tmp_path):
    with pytest.raises(RaisonError, match="removal"):
        run(tmp_path / "a", spec_of(folder, removal="foo"))
    with pytest.raises(RaisonError):
        run(tmp_path / "b", spec_of(folder, model=str(tmp_path / "none")))
    for name in ("a", "b"):  # so that the folder is free for a spec that works
        run(tmp_path / name, spec_of(folder, limit=5))
    for wrong, why in (({"methods": 5}, "list of names"), ({"skip_broken": "no"}, "true or false")):
        with pytest.raises(InputError, match=why):
            spec_of(folder, **wrong)
    none = str(tmp_path / "mistyped")
    for command in ("repair", "compact"):
        told = CliRunner().invoke(app, ["store", command, none])
        assert told.exit_code != 0 and not Path(none).exists()


def test_a_refused_retry_moves_nothing(folder, tmp_path):
    (tmp_path / "texts.jsonl").write_text('{"text": "a \\ud800 film"}\n{"text": "a dull story"}\n')
    place = tmp_path / "run"
    assert run(place, spec_of(folder, data=str(tmp_path / "texts.jsonl"), metrics=())).failed
    before = shards_of(place)
    with pytest.raises(InputError, match="another threads"):
        run(place, means=Means(threads=2), resume=True, retry=True)
    assert shards_of(place) == before
