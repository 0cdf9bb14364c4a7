"""What a run that goes on must have in common with its beginning."""

from __future__ import annotations

import copy
import json
import shutil

import pytest
from typer.testing import CliRunner

from raison.cli.app import app
from raison.core.errors import InputError, ModelError
from raison.runs.driver import run
from raison.runs.plan import plan_header_bytes
from raison.runs.run_spec import Means
from raison.runs.storage import place_of
from raison.runs.verify import verify_run
from raison.testing import tiny_hf
from tests.helpers.runs import parquet_of, shards_of, spec_of


def test_another_model_or_library_is_refused(folder, tmp_path):
    place = tmp_path / "r"
    run(place, spec_of(folder))
    shard = next((place / "shards").iterdir())
    shard.unlink()
    told = json.loads((place / "environment.json").read_text())
    for name, value in (("torch", "1.0"), ("model", "0" * 32)):
        (place / "environment.json").write_text(json.dumps({**told, name: value}))
        with pytest.raises(InputError, match=f"begun with another {name}"):
            run(place, resume=True)
    with pytest.raises(ModelError, match="another model than the run was begun with"):
        run(place, resume=True, means=Means(workers=2))
    (place / "environment.json").write_text(json.dumps(told))
    assert run(place, resume=True).state == "done"


@pytest.mark.parametrize("data", [b"", b"garbage", b"[]", b"null", None])
def test_a_lost_environment_is_told(copied, data):
    path = copied / "environment.json"
    path.unlink() if data is None else path.write_bytes(data)
    shards_of(copied)[0].unlink()
    for action in (
        lambda: verify_run(place_of(copied)),
        lambda: run(copied, resume=True, means=Means(workers=2)),
    ):
        with pytest.raises(InputError, match="environment.json .* missing or damaged"):
            action()


def test_a_moved_model_and_moved_data_are_known_by_what_they_hold(folder, done, tmp_path):
    first, then = tmp_path / "first", tmp_path / "then"
    for place in (first, then):
        place.mkdir()
    shutil.copytree(folder / "model", first / "model")
    shutil.copy(folder / "data.csv", first / "data.csv")
    run(tmp_path / "r", spec_of(first))
    (first / "model").rename(then / "renamed")
    (first / "data.csv").rename(then / "texts.csv")
    moved = spec_of(folder, model=str(then / "renamed"), data=str(then / "texts.csv"))
    missing = shards_of(tmp_path / "r")[:2]
    for path in missing:
        path.unlink()

    for means in (Means(), Means(workers=2)):  # where it was, it is missed; the way out is told
        with pytest.raises(
            ModelError,
            match=r"There is no model folder .*go on with --resume -m and its new place\.$",
        ):
            run(tmp_path / "r", resume=True, means=means)
    words = ["run", "--out", str(tmp_path / "r"), "--resume", "-m", moved.model, "-d", moved.data]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    missing[0].unlink()
    assert run(tmp_path / "r", resume=True).state == "done"  # it is known there from now on
    found = verify_run(place_of(tmp_path / "r"))
    assert found.whole and not found.missing
    assert parquet_of(tmp_path / "r") == parquet_of(done)


def test_another_model_or_other_data_in_a_new_place_are_refused(folder, copied, tmp_path):
    shards_of(copied)[0].unlink()
    hf, tokenizer = tiny_hf("bert", "classification")
    other = copy.deepcopy(hf).float()
    next(other.parameters()).data[0, 0] += 1
    other.save_pretrained(tmp_path / "other")
    tokenizer.save_pretrained(tmp_path / "other")
    rows = (folder / "data.csv").read_text().splitlines()
    for name, lines_ in (
        ("longer", [*rows, "one more,positive"]),
        ("turned", [rows[0], *rows[:0:-1]]),
    ):
        (tmp_path / f"{name}.csv").write_text("\n".join(lines_))
    before = {path.name: path.read_bytes() for path in copied.glob("*.json")}
    for means in (Means(), Means(workers=2)):
        with pytest.raises(InputError, match="begun with another model"):
            run(copied, spec_of(folder, model=str(tmp_path / "other")), means, resume=True)
    for name in ("longer", "turned"):
        data = str(tmp_path / f"{name}.csv")
        with pytest.raises(InputError, match="holds other texts than"):
            run(copied, spec_of(folder, data=data), resume=True)
    with pytest.raises(InputError, match="another seed"):
        run(copied, spec_of(folder, model=str(tmp_path / "other"), seed=3), resume=True)
    with pytest.raises(InputError, match="is a run with another units"):
        told = CliRunner().invoke(
            app, ["run", "--out", str(copied), "--resume", "--units", "token"]
        )
        raise InputError(told.output)
    assert {path.name: path.read_bytes() for path in copied.glob("*.json")} == before


def test_a_plan_without_a_fingerprint_is_of_an_earlier_raison(folder, copied):
    path = copied / "plan" / "header.json"
    told = json.loads(path.read_text())
    path.write_bytes(
        plan_header_bytes({k: v for k, v in told.items() if k not in ("sum", "fingerprint")})
    )
    assert run(copied, resume=True).state == "done"
    with pytest.raises(InputError, match="before raison kept a fingerprint"):
        run(copied, spec_of(folder, data=str(copied / "none.csv")), resume=True)


def test_a_lost_spec_is_told(folder, copied):
    (copied / "spec.json").unlink()
    for resume in (False, True):
        with pytest.raises(InputError, match=r"spec.json .* is missing: put it back"):
            run(copied, spec_of(folder, methods=("occlusion",)), resume=resume)
