"""The recipe behind P1, on a small set of texts and a tiny encoder."""

from __future__ import annotations

import copy
import lzma
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from raison.core.records import Example, Span
from raison.models.load import load
from raison.studies.reproduce.experiments import state_homogeneity as study
from raison.studies.reproduce.recipe_lines import LINES, read_recipe_lines
from raison.studies.reproduce.run_suite import reproduce
from raison.studies.reproduce.suite import suites
from raison.testing import tiny_hf
from tests.helpers.small_classifiers import BAD, GOOD, reviews

SUITES = [suite for suite in suites().values() if suite.experiment == "rationalizers"]


def with_gold(example: Example) -> Example:
    at, spans = 0, []
    for word in example.text.split(" "):
        if word in (*GOOD, *BAD):
            spans.append(Span(at, at + len(word)))
        at += len(word) + 1
    return replace(example, gold=tuple(spans))


def test_every_model_of_a_suite_is_made_by_the_recipe(open_recipe):
    open_recipe("parts")
    recipe = open_recipe("rationalizers")
    known = {(job.data, job.name) for jobs in recipe.parts().values() for job in jobs}
    assert len(SUITES) == 7
    for suite in SUITES:
        for run in suite.runs:
            for title, name in suite.methods.items():
                kind, _, method = name.partition(":")
                assert (run.data, kind) in known, (suite.name, run.name, title)
                assert not method or method == "random" or method in recipe.POST_HOC


def test_the_recipe_trains_judges_and_goes_on(tmp_path, monkeypatch, capsys, open_recipe):
    open_recipe("ordinary")
    open_recipe("parts")
    recipe = open_recipe("rationalizers")
    hf, tokenizer = tiny_hf("bert", "classification")
    copy.deepcopy(hf).float().save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    data = [with_gold(e) for e in reviews(120)]
    monkeypatch.setattr(recipe, "BASE", str(tmp_path / "base"))
    monkeypatch.setattr(recipe, "FEW", 5)
    monkeypatch.setattr(recipe, "material", lambda job, place: (data, data[:20], 0))
    in_front = lambda examples, place, seed: [replace(e, text="it is " + e.text) for e in examples]  # noqa: E731
    monkeypatch.setattr(recipe, "disturbed", lambda *given: {"front": in_front(*given)})
    quick = {"epochs": 2, "batch": 16, "bfloat16": False, "lr": 1e-3}
    frame = {"blocks": 1, "pruning": 1, "full_text": "predictor"}
    jobs = [
        recipe.Job("sst", "plmr", "plmr", frame, quick),
        recipe.Job("sst", "whole", "whole", frame, quick),
        recipe.Job("sst", "ordinary", "ordinary", {}, quick),
        recipe.Job("sst", "short", "short", {"blocks": 1}, quick),
    ]
    monkeypatch.setattr(recipe, "parts", lambda: {"one": jobs})
    monkeypatch.setattr(
        "sys.argv", ["x", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--seeds", "2"]
    )
    assert recipe.main() == 0
    lines = read_recipe_lines(tmp_path / "out")
    told = lines["sst", "whole"][1]
    assert len(told["said"]) == 20 and len(told["more"]["front"]) == 20 == len(
        told["more"]["every_token"]
    )
    row = {key: values[0] for key, values in told["picked"]["own"].items()}
    assert (
        row["both"] <= min(row["kept"], row["marked"])
        and 0 < row["kept"] <= row["words"]
        and not row["cut"]
    )
    ordinary = lines["sst", "ordinary"][0]
    assert (
        len(ordinary["picked"]["gradient_norm"]["kept"]) == 20
        and len(ordinary["picked"]["refined"]["kept"]) == 5
    )
    whole = lines["sst", "whole"][0]["picked"]["own"]["kept"]
    for name, picked in ordinary[
        "picked"
    ].items():  # as long as those of the rationalizer of the same seed
        assert picked["kept"] == whole[: len(picked["kept"])], name
    said = capsys.readouterr().out
    assert "sst whole 1: accuracy" in said and "ordinary refined 0: F1" in said
    assert recipe.main() == 0 and "accuracy" not in capsys.readouterr().out  # nothing is made again

    packed = tmp_path / "packed.jsonl.xz"
    packed.write_bytes(lzma.compress((tmp_path / "out" / LINES).read_bytes()))
    outcomes = reproduce("P1-post-hoc", models={"rationalizers": str(packed)})[1]
    found = outcomes[0].evaluation
    seeds = [lines["sst", "whole"][k] for k in (0, 1)]
    both, kept, marked = (
        sum(sum(s["picked"]["own"][key]) for s in seeds) for key in ("both", "kept", "marked")
    )
    assert found.cell("whole-encoder predictor", "rationale_f1").value == pytest.approx(
        2 * both / (kept + marked)
    )
    right = np.mean([s["said"] for s in seeds])
    assert found.cell("whole-encoder predictor", "accuracy").value == pytest.approx(right)
    model = load(
        tmp_path / "out" / "sst" / "whole" / "seed-1"
    )  # as somebody asks it who knows no recipe
    answers = model.predict(model.encode([Example(e.text) for e in data[:20]]))
    assert seeds[1]["said"] == [
        int(p.target.text == e.label) for p, e in zip(answers, data, strict=False)
    ]
    assert found.cell("refined search", "rationale_f1").value is not None
    robust = reproduce("P1-robustness", models={"rationalizers": str(tmp_path / "out")})[1][
        0
    ].evaluation
    front = [lines["sst", "ordinary"][k]["more"]["front"] for k in (0, 1)]
    assert robust.cell("ordinary model", "front").value == pytest.approx(np.mean(front))
    assert "Not made yet: RNP, two encoders." in robust.notes
    variants = reproduce("P1-variants", models={"rationalizers": str(tmp_path / "out")})[1][
        0
    ].evaluation
    alone = np.mean([lines["sst", "short"][k]["said"] for k in (0, 1)])
    assert variants.cell("PLMR's predictor alone, all tokens", "accuracy").value == pytest.approx(
        alone
    )
    assert variants.cell("PLMR's predictor alone, all tokens", "rationale_f1").value is None
    weights = load_file(tmp_path / "out" / "sst" / "short" / "seed-0" / "model.safetensors")
    blocks = {name.split(".")[3] for name in weights if ".layer." in name}
    assert len(blocks) == hf.config.num_hidden_layers - 1
    encoder, _ = study.encoder_for_homogeneity(
        tmp_path / "out", "sst/ordinary/seed-0"
    )  # trained, not the base; every block of it
    stored = load_file(tmp_path / "out" / "sst" / "ordinary" / "seed-0" / "model.safetensors")
    for name, weight in encoder.state_dict().items():
        assert "pooler" in name or torch.equal(weight, stored[f"bert.{name}"]), name
    before = hf.bert.encoder.layer[0].output.dense.weight
    assert not torch.equal(stored["bert.encoder.layer.0.output.dense.weight"], before)
    selecting, _ = study.encoder_for_homogeneity(tmp_path / "out", "sst/plmr/seed-0")
    assert len(selecting.encoder.layer) == hf.config.num_hidden_layers


def test_pairs_and_grades(tmp_path, monkeypatch, open_recipe):
    open_recipe("parts")
    recipe = open_recipe("rationalizers")
    hf, tokenizer = tiny_hf("bert", "classification")
    copy.deepcopy(hf).float().save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    pairs = [
        replace(e, pair=other.text)
        for e, other in zip(reviews(64), reviews(64, seed=1), strict=True)
    ]
    grades = [replace(e, label=str(0.75 if e.label == "positive" else 0.25)) for e in reviews(64)]
    parts = {"pairs": (pairs, pairs[:20], 0), "scores": (grades, grades[:20], 0)}
    monkeypatch.setattr(recipe, "BASE", str(tmp_path / "base"))
    monkeypatch.setattr(recipe, "material", lambda job, place: parts[job])
    quick = {"epochs": 2, "batch": 16, "bfloat16": False, "lr": 1e-3}
    frame = {"blocks": 1, "pruning": 1, "full_text": "predictor"}
    jobs = [
        recipe.Job("pairs", "whole", "whole", {**frame, "sparsity": (0.2, 0.5)}, quick, seeds=1),
        recipe.Job("scores", "whole", "whole", frame, quick, seeds=1),
    ]
    monkeypatch.setattr(recipe, "parts", lambda: {"one": jobs})
    monkeypatch.setattr("sys.argv", ["x", "--data", str(tmp_path), "--out", str(tmp_path / "out")])
    assert recipe.main() == 0
    of_pairs, of_grades = (
        o.evaluation for o in reproduce("P1-beyond", models={"rationalizers": tmp_path / "out"})[1]
    )
    model = load(tmp_path / "out" / "pairs" / "whole" / "seed-0")
    encodings = model.encode([Example(e.text, e.pair) for e in pairs[:20]])
    for number, key in enumerate(("sparsity_first", "sparsity_second")):
        inside = [(e.segment == number) & (e.start >= 0) for e in encodings]
        kept = sum(
            own[rows].sum() for own, rows in zip(model.selected(encodings), inside, strict=True)
        )
        share = of_pairs.cell("whole-encoder predictor", key).value
        assert share == pytest.approx(kept / sum(rows.sum() for rows in inside))
    row = of_grades.cell
    assert row("whole-encoder predictor", "of_mean").value == pytest.approx(0.0625, abs=0.005)
    assert (
        row("whole-encoder predictor", "error").value
        != row("whole-encoder predictor", "of_mean").value
    )


def test_what_disturbs_keeps_marked_words(open_recipe, monkeypatch):
    open_recipe("parts")
    recipe = open_recipe("rationalizers")
    examples = [with_gold(e) for e in reviews(30)]
    prose = [Example(" ".join(["a"] * 20))]
    monkeypatch.setattr(
        recipe, "open_dataset", lambda *a, **k: type("Read", (), {"examples": prose})()
    )
    found = recipe.disturbed(examples, None, 0)
    assert set(found) == {"front", "behind", "words"}
    changed = 0
    for before, after in zip(examples, found["words"], strict=True):
        one, other = before.text.split(), after.text.split()
        assert len(one) == len(other) and after.label == before.label
        assert all(a == b for a, b in zip(one, other, strict=True) if a in (*GOOD, *BAD))
        changed += one != other
    assert changed > 20
    assert found["front"][0].text.endswith(examples[0].text) and found["behind"][0].text.startswith(
        examples[0].text
    )
