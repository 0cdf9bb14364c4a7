"""Runs as the page lists them."""

from __future__ import annotations

import json

from raison.core.records import Explanation
from raison.runs.driver import run
from raison.runs.run_spec import RunSpec
from raison.testing import tiny_hf
from raison.web.runs import RunFolders
from tests.helpers.serving import served
from tests.helpers.web_client import SCRIPT, result_of


def test_runs_with_half_characters_can_be_read(models, tmp_path):
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    rows = [{"text": "a lovely \ud800 film"}, {"text": "a lovely film", "label": "\ud800"}]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run(
        tmp_path / "run",
        RunSpec(str(tmp_path / "model"), str(tmp_path / "data.jsonl"), ("leave_one_out",)),
    )
    with served(models, RunFolders({"r": str(tmp_path / "run")})) as client:
        told = result_of(client.get("/api/runs/r"))
        assert told["found"] == 2 and {row["text"] for row in told["rows"]} >= {"a lovely film"}
        assert client.get("/api/runs/r/" + "9" * 4000).status_code == 400
        assert len(client.get("/api/runs/r/" + "9" * 4000).text) < 200


def test_runs_are_sorted_and_filtered(client):
    told = result_of(
        client.get(
            "/api/runs/done", params={"sort": "comprehensiveness", "method": "leave_one_out"}
        )
    )
    values = [row["numbers"]["comprehensiveness"] for row in told["rows"]]
    assert told["found"] == 9 and values == sorted(values)
    told = result_of(client.get("/api/runs/done", params={"find": "SCRIPT", "down": True}))
    assert told["found"] == 2 and told["rows"][0]["text"] == SCRIPT
    one = result_of(client.get(f"/api/runs/done/{told['rows'][0]['index']}"))
    assert [Explanation.from_dict(each).method for each in one["explanations"]] == [
        "leave_one_out",
        "random",
    ]
    told = result_of(client.get("/api/runs/done", params={"start": 4, "count": 3}))
    assert len(told["rows"]) == 3 and told["found"] == 18
    for path in (
        "/api/runs/other",
        "/api/runs/done/999",
        "/api/runs/done?sort=none",
        "/api/runs/done?count=0",
    ):
        assert client.get(path).status_code == 400
    assert client.get("/api/runs/done/x").status_code == 422
    assert client.get("/api/runs/done?count=1e3").json()["error"].startswith("count is refused")
