"""The recipe behind P2 and P3, on a small set of texts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from raison.studies.reproduce.recipe_lines import LINES, read_recipe_lines
from raison.studies.reproduce.suite import suites
from tests.helpers.paths import ROOT
from tests.helpers.small_classifiers import reviews

SUITES = [suite for suite in suites().values() if suite.experiment == "audits"]


def test_every_model_of_a_suite_is_made_by_the_recipe(open_recipe):
    open_recipe("parts")
    recipe = open_recipe("attention")
    known = {(job.data, job.name) for jobs in recipe.parts().values() for job in jobs}
    assert len(SUITES) > 10
    for suite in SUITES:
        for run in suite.runs:
            for title, name in suite.methods.items():
                missing = suite.name in ("P2-table1", "P2-table3", "P2-table6") and run.data == "ag"
                assert missing or (run.data, name.partition(":")[0]) in known, (
                    suite.name,
                    run.name,
                    title,
                )


def test_the_lines_that_are_kept_are_those_of_the_recipe(open_recipe):
    open_recipe("parts")
    known = {
        (job.data, job.name) for jobs in open_recipe("attention").parts().values() for job in jobs
    }
    kept = read_recipe_lines(ROOT / "benchmarks" / "results" / "attention.jsonl")
    assert len(kept["sst", "additive-base"]) == 8 and set(kept) <= known
    assert all(
        line["texts"] > 100 and 0 < line["numbers"]["f1"] <= 1
        for by in kept.values()
        for line in by.values()
    )


def test_the_recipe_trains_audits_and_judges_and_goes_on(
    tmp_path, monkeypatch, capsys, open_recipe
):
    open_recipe("parts")
    recipe = open_recipe("attention")
    data = tmp_path / "data.csv"
    data.write_text("text,label\n" + "\n".join(f"{e.text},{e.label}" for e in reviews(160)))
    glove = tmp_path / "glove.txt"
    words = sorted({word for e in reviews(160) for word in e.text.split()})
    rng = np.random.default_rng(0)
    glove.write_text(
        "\n".join(f"{w} {' '.join(f'{v:.3f}' for v in rng.normal(size=8))}" for w in words)
    )
    job = recipe.Job(
        "ag", "additive-tying", {}, {"tying": 0.01, "batch": 16, "epochs": 8, "lr": 1e-2}
    )
    monkeypatch.setattr(recipe, "DATA", {"ag": str(data)})
    more = [*recipe.quick([replace(job, name="quick")]), replace(job, name="wide", vectors="wider")]
    monkeypatch.setattr(recipe, "parts", lambda: {"one": [job, *more]})
    monkeypatch.setattr(recipe, "SEEDS", {"ag": 1})
    monkeypatch.setattr(
        "sys.argv",
        ["x", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--glove", str(glove)],
    )
    assert recipe.main() == 0
    folder = tmp_path / "out" / "ag" / "additive-tying" / "seed-0"
    found = json.loads((folder / "audit.json").read_text())
    assert found["count"] == 160 and found["f1"] > 0.5
    lines = tmp_path / "out" / LINES
    before = lines.read_bytes()
    (folder / "audit.json").unlink()
    assert (
        recipe.main() == 0 and lines.read_bytes() == before and not (folder / "audit.json").exists()
    )
    assert read_recipe_lines(lines)["ag", "additive-tying"][0]["numbers"]["f1"] == pytest.approx(
        found["f1"], abs=1e-6
    )
    deep = {"tau_gradient_words", "entropy_influence", "instance_jsd"}
    shallow = read_recipe_lines(lines)["ag", "quick"][0]["numbers"]
    assert deep <= set(
        read_recipe_lines(lines)["ag", "additive-tying"][0]["numbers"]
    ) and not deep & set(shallow)
    assert {"f1", "permuted", "information_frequent"} <= set(shallow) and (
        "ag",
        "wide",
    ) not in read_recipe_lines(lines)
    said = capsys.readouterr().out
    assert "F1" in said and "ag wide 0: left out, since it wants --wider" in said
