"""The recipe behind P1, on a small set of texts and a tiny encoder, and the tables that are read from it."""

from __future__ import annotations

import copy
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from raison.core.errors import InputError
from raison.core.records import Example, Span
from raison.models.load import load
from raison.studies.reproduce.experiments import homogeneity as study
from raison.studies.reproduce.recipe_lines import LINES, add_line, read_lines
from raison.studies.reproduce.run import reproduce
from raison.studies.reproduce.suite import suites
from raison.testing import tiny_hf
from tests.test_attention_classifier import BAD, GOOD, reviews

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
    monkeypatch.setattr("sys.argv", ["x", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--seeds", "2"])
    assert recipe.main() == 0
    lines = read_lines(tmp_path / "out")
    told = lines["sst", "whole"][1]
    assert len(told["said"]) == 20 and len(told["more"]["front"]) == 20 == len(told["more"]["every_token"])
    row = {key: values[0] for key, values in told["picked"]["own"].items()}
    assert row["both"] <= min(row["kept"], row["marked"]) and 0 < row["kept"] <= row["words"] and not row["cut"]
    ordinary = lines["sst", "ordinary"][0]
    assert len(ordinary["picked"]["gradient_norm"]["kept"]) == 20 and len(ordinary["picked"]["refined"]["kept"]) == 5
    whole = lines["sst", "whole"][0]["picked"]["own"]["kept"]
    for name, picked in ordinary["picked"].items():  # as long as those of the rationalizer of the same seed
        assert picked["kept"] == whole[: len(picked["kept"])], name
    said = capsys.readouterr().out
    assert "sst whole 1: accuracy" in said and "ordinary refined 0: F1" in said
    assert recipe.main() == 0 and "accuracy" not in capsys.readouterr().out  # nothing is made again

    packed = tmp_path / "packed.jsonl.xz"
    packed.write_bytes(lzma.compress((tmp_path / "out" / LINES).read_bytes()))
    outcomes = reproduce("P1-post-hoc", models={"rationalizers": str(packed)})[1]
    found = outcomes[0].evaluation
    seeds = [lines["sst", "whole"][k] for k in (0, 1)]
    both, kept, marked = (sum(sum(s["picked"]["own"][key]) for s in seeds) for key in ("both", "kept", "marked"))
    assert found.cell("whole-encoder predictor", "rationale_f1").value == pytest.approx(2 * both / (kept + marked))
    right = np.mean([s["said"] for s in seeds])
    assert found.cell("whole-encoder predictor", "accuracy").value == pytest.approx(right)
    model = load(tmp_path / "out" / "sst" / "whole" / "seed-1")  # as somebody asks it who knows no recipe
    answers = model.predict(model.encode([Example(e.text) for e in data[:20]]))
    assert seeds[1]["said"] == [int(p.target.text == e.label) for p, e in zip(answers, data, strict=False)]
    assert found.cell("refined search", "rationale_f1").value is not None
    robust = reproduce("P1-robustness", models={"rationalizers": str(tmp_path / "out")})[1][0].evaluation
    front = [lines["sst", "ordinary"][k]["more"]["front"] for k in (0, 1)]
    assert robust.cell("ordinary model", "front").value == pytest.approx(np.mean(front))
    assert "Not made yet: RNP, two encoders." in robust.notes
    variants = reproduce("P1-variants", models={"rationalizers": str(tmp_path / "out")})[1][0].evaluation
    alone = np.mean([lines["sst", "short"][k]["said"] for k in (0, 1)])
    assert variants.cell("PLMR's predictor alone, all tokens", "accuracy").value == pytest.approx(alone)
    assert variants.cell("PLMR's predictor alone, all tokens", "rationale_f1").value is None
    weights = load_file(tmp_path / "out" / "sst" / "short" / "seed-0" / "model.safetensors")
    blocks = {name.split(".")[3] for name in weights if ".layer." in name}
    assert len(blocks) == hf.config.num_hidden_layers - 1
    encoder, _ = study.encoder_of(tmp_path / "out", "sst/ordinary/seed-0")  # trained, not the base; every block of it
    stored = load_file(tmp_path / "out" / "sst" / "ordinary" / "seed-0" / "model.safetensors")
    for name, weight in encoder.state_dict().items():
        assert "pooler" in name or torch.equal(weight, stored[f"bert.{name}"]), name
    before = hf.bert.encoder.layer[0].output.dense.weight
    assert not torch.equal(stored["bert.encoder.layer.0.output.dense.weight"], before)
    selecting, _ = study.encoder_of(tmp_path / "out", "sst/plmr/seed-0")
    assert len(selecting.encoder.layer) == hf.config.num_hidden_layers


def test_pairs_and_grades(tmp_path, monkeypatch, open_recipe):
    open_recipe("parts")
    recipe = open_recipe("rationalizers")
    hf, tokenizer = tiny_hf("bert", "classification")
    copy.deepcopy(hf).float().save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    pairs = [replace(e, pair=other.text) for e, other in zip(reviews(64), reviews(64, seed=1), strict=True)]
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
    of_pairs, of_grades = (o.evaluation for o in reproduce("P1-beyond", models={"rationalizers": tmp_path / "out"})[1])
    model = load(tmp_path / "out" / "pairs" / "whole" / "seed-0")
    encodings = model.encode([Example(e.text, e.pair) for e in pairs[:20]])
    for number, key in enumerate(("sparsity_first", "sparsity_second")):
        inside = [(e.segment == number) & (e.start >= 0) for e in encodings]
        kept = sum(own[rows].sum() for own, rows in zip(model.selected(encodings), inside, strict=True))
        share = of_pairs.cell("whole-encoder predictor", key).value
        assert share == pytest.approx(kept / sum(rows.sum() for rows in inside))
    row = of_grades.cell
    assert row("whole-encoder predictor", "of_mean").value == pytest.approx(0.0625, abs=0.005)
    assert row("whole-encoder predictor", "error").value != row("whole-encoder predictor", "of_mean").value


def test_what_disturbs_keeps_marked_words(open_recipe, monkeypatch):
    open_recipe("parts")
    recipe = open_recipe("rationalizers")
    examples = [with_gold(e) for e in reviews(30)]
    prose = [Example(" ".join(["a"] * 20))]
    monkeypatch.setattr(recipe, "open_dataset", lambda *a, **k: type("Read", (), {"examples": prose})())
    found = recipe.disturbed(examples, None, 0)
    assert set(found) == {"front", "behind", "words"}
    changed = 0
    for before, after in zip(examples, found["words"], strict=True):
        one, other = before.text.split(), after.text.split()
        assert len(one) == len(other) and after.label == before.label
        assert all(a == b for a, b in zip(one, other, strict=True) if a in (*GOOD, *BAD))
        changed += one != other
    assert changed > 20
    assert found["front"][0].text.endswith(examples[0].text) and found["behind"][0].text.startswith(examples[0].text)


def test_a_damaged_file_of_lines_is_told(tmp_path):
    (tmp_path / "lines.jsonl.xz").write_bytes(b"no such thing")
    with pytest.raises(InputError, match="is damaged: it can't be read as lines of numbers"):
        reproduce("P1-variants", models={"rationalizers": str(tmp_path / "lines.jsonl.xz")})


def test_lines_that_were_cut_off_and_lines_of_others(tmp_path):
    line = {"data": "sst", "name": "plmr", "seed": 0}
    (tmp_path / LINES).write_text('{"data": "sst", "na')  # somebody pulled the plug
    add_line(tmp_path, line)
    with (tmp_path / LINES).open("a") as file:
        file.write('{"data": "sst"')
    add_line(tmp_path, {**line, "seed": 1})
    assert read_lines(tmp_path) == {("sst", "plmr"): {0: line, 1: {**line, "seed": 1}}}
    with pytest.raises(InputError, match="are not what recipes/rationalizers.py writes"):
        reproduce("P1-variants", models={"rationalizers": str(tmp_path)})
    with pytest.raises(InputError, match="is no folder, and states are read from models"):
        reproduce("P1-homogeneity", models={"rationalizers": str(tmp_path / LINES)})


def test_a_full_disk_is_told_and_costs_one_line(tmp_path, monkeypatch):
    line = {"data": "sst", "name": "plmr", "seed": 0}
    add_line(tmp_path, line)
    real = Path.open

    class Full:
        def __init__(self, file):
            self.file, self.name = file, "numbers.jsonl"

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self

        def __exit__(self, *given):
            self.file.close()

        def write(self, made):
            return self.file.write(made[:9])  # what still had room

    monkeypatch.setattr(Path, "open", lambda self, *given, **more: Full(real(self, *given, **more)))
    with pytest.raises(InputError, match="can't be written to 'numbers.jsonl': make room"):
        add_line(tmp_path, {**line, "seed": 1})
    monkeypatch.undo()
    add_line(tmp_path, {**line, "seed": 2})
    assert sorted(read_lines(tmp_path)["sst", "plmr"]) == [0, 2]


def test_what_is_lost_what_was_cut_and_how_many_are_asked(tmp_path):
    counts = {
        "words": [4, 5, 6],
        "kept": [1, 2, 3],
        "empty": [0, 1, 0],
        "marked": [1, 0, 2],
        "both": [1, 0, 1],
        "cut": [0, 30, 7],  # tokens
        "lost": [0, 4, 0],
    }
    for name in ("plmr", "whole", "rnp", "ordinary"):
        more = {"front": [1, 0, 0], "behind": [1, 1, 0], "words": [0, 0, 0]}
        line = {"data": "sst", "name": name, "seed": 0, "regression": False, "left": 7, "said": [1, 1, 0]}
        for data in ("sst", "movies"):
            add_line(tmp_path, {**line, "data": data, "picked": {"own": counts}, "more": more})
    found = reproduce("P1-robustness", models={"rationalizers": str(tmp_path)})[1][0].evaluation
    assert found.cell("PLMR", "front_lost").value == pytest.approx(1 / 3)
    assert found.cell("PLMR", "words_lost").value == pytest.approx(2 / 3)
    table = reproduce("P1-variants", models={"rationalizers": str(tmp_path)})[1][0].evaluation
    told = {key: table.cell("PLMR", key).value for key in ("precision", "recall", "rationale_f1", "sparsity", "full")}
    # of the two texts with marks: both 2, kept 4, marked 3; of all texts: kept 6 of 15
    assert told == pytest.approx(
        {"precision": 2 / 4, "recall": 2 / 3, "rationale_f1": 4 / 7, "sparsity": 0.4, "full": 0}
    )
    long = reproduce("P1-movies", models={"rationalizers": str(tmp_path)})[1][0].evaluation
    # 3 of 10 tokens of those texts are marked; of 7 marked tokens 4 were cut off
    assert (long.cell("PLMR", "chance").value, long.cell("PLMR", "lost").value) == pytest.approx((0.3, 4 / 7))
    assert any("7 training texts were left out" in note and "2 test texts were cut" in note for note in found.notes)
    fewer = reproduce("P1-robustness", models={"rationalizers": str(tmp_path)}, limit=2)[1][0].evaluation
    assert len(fewer.texts) == 2 and fewer.cell("PLMR", "front_lost").value == pytest.approx(1 / 2)


def test_homogeneity_is_told_of_the_first_a_middle_and_the_last_block(tmp_path, monkeypatch):
    hf, tokenizer = tiny_hf("bert", "classification")
    encoder = hf.bert.eval()
    texts = reviews(3)
    monkeypatch.setattr(study, "encoder_of", lambda place, name: (encoder, tokenizer))
    monkeypatch.setattr(study, "open_dataset", lambda *given: type("Read", (), {"examples": texts}))
    found = reproduce("P1-homogeneity", models={"rationalizers": str(tmp_path)}, limit=3)[1][0].evaluation
    spreads, cosines = [], []
    for example in texts:
        with torch.no_grad():
            inputs = tokenizer(example.text, return_tensors="pt")
            layers = encoder(**inputs, output_hidden_states=True).hidden_states
        words = [states[0, 1:-1].numpy() for states in layers]
        spreads.append([np.trace(np.cov(each.T, bias=True)) for each in words])
        unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in words]
        cosines.append([(each @ each.T)[~np.eye(len(each), dtype=bool)].mean() for each in unit])
    for name, rows in (("spread", np.array(spreads)), ("cosine", np.array(cosines))):
        for where, block in (("first", 1), ("middle", 1), ("last", 2)):  # of two blocks
            cell = found.cell("PLMR", f"{name}_{where}")
            np.testing.assert_allclose(cell.each, rows[:, block], rtol=1e-6)
        np.testing.assert_allclose(found.curves[f"{name}_curve"]["PLMR"], rows.mean(0), rtol=1e-6)


def test_without_models_a_suite_says_what_to_do(tmp_path):
    with pytest.raises(InputError, match=r"holds no rationalizers of sst: make them with recipes/rationalizers.py"):
        reproduce("P1-variants", models={"rationalizers": str(tmp_path)})
