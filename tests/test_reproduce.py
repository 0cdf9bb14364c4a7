"""Suites of the papers: they can be read, run, and written into a page."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from raison.core.errors import InputError
from raison.core.registry import metrics
from raison.methods.base import Method
from raison.studies.evaluate import evaluate, method_list
from raison.studies.prompts import answer_quality, prompt_of
from raison.studies.reproduce import method_runs
from raison.studies.reproduce.cross_run import join_runs, verdicts_across
from raison.studies.reproduce.experiment import experiments
from raison.studies.reproduce.method_runs import measure_methods
from raison.studies.reproduce.page import page_with, section
from raison.studies.reproduce.part_store import PartStore, sampled_weights
from raison.studies.reproduce.run import reproduce
from raison.studies.reproduce.suite import ClaimAcross, RunMethod, suite_named, suites
from raison.studies.reproduce.texts_of_run import choose_texts
from tests.helpers.paths import RECIPES

SUITES = suites()


@pytest.mark.parametrize("name", SUITES)
def test_every_name_in_a_suite_exists(name):
    suite = SUITES[name]
    if suite.experiment:
        assert suite.experiment in experiments
        assert {claim.first.run for claim in suite.across} <= {run.name for run in suite.runs}
        return
    built = method_list(list(suite.methods.values()))
    assert all(isinstance(each, Method) for each in built)
    keys = {key.name for spec in suite.metrics for key in metrics.build(spec).keys}
    for claim in suite.claims:
        assert {claim.first, claim.second} <= set(suite.methods)
        assert claim.key in keys
    assert set(suite.seeds) <= set(suite.methods)
    for run in suite.runs:
        assert set(run.paper) <= keys
        assert all(set(values) <= set(suite.methods) for values in run.paper.values())


def test_p4_is_there_as_far_as_it_can_be_run():
    assert {"P4-table1", "P4-table3", "P4-table4", "P4-figure4"} <= set(SUITES)


def test_a_suite_runs_and_is_written_once(sentiment, data_dir, tmp_path):
    suite, outcomes = reproduce("P4-table3", limit=4, data_dir=data_dir)
    first = outcomes[0].evaluation
    assert first.settings["limit"] == 4
    assert outcomes[1].evaluation is None  # its model has to be made
    written = section(suite, outcomes, "raison reproduce P4-table3")
    assert "0.438" in written
    assert "recipes/finetune.py --task qqp" in written
    page = tmp_path / "page.md"
    page.write_text(page_with(page, suite, written))
    page.write_text(page_with(page, suite, written))
    assert page.read_text().count("## P4-table3") == 1
    verdicts = outcomes[0].verdicts
    assert len(verdicts) == 2
    each = [np.array(first.cell(m, "aopc").each) for m in ("full", "without positional")]
    assert verdicts[0][1].difference == pytest.approx((each[0] - each[1]).mean())


def test_several_seeds_are_averaged_text_by_text(sentiment, data_dir):
    suite = suite_named("P4-table1")
    small = {title: suite.methods[title] for title in ("Random", "Ours")}
    chosen = replace(suite, methods=small, seeds={"Random": 2}, claims=())
    examples = choose_texts(sentiment, suite.runs[0], "sst2", 3, data_dir).examples
    found, spread = measure_methods(chosen, sentiment, examples, suite.runs[0], 0)
    assert found.methods == ("Random", "Ours")
    how = {"target": "gold", "units": "token", "removal": "mask_token"}
    runs = [evaluate(sentiment, examples, [small["Random"]], ["aopc", "lodds"], seed=s, **how) for s in (0, 1)]
    each = np.mean([run.cells[0].each for run in runs], axis=0)
    np.testing.assert_allclose(found.cell("Random", "aopc").each, each)
    assert spread["Random", "aopc"] == pytest.approx(np.std([run.cells[0].value for run in runs], ddof=1))


def test_heads_beside_a_model_are_its_heads(tmp_path, sentiment):
    import raison
    from raison.core.artifact import Artifact
    from raison.testing import tiny_hf

    hf, tokenizer = tiny_hf("bert", "classification", double=False)
    hf.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert "heads" not in raison.load(str(tmp_path)).offers
    (tmp_path / "heads.json").write_text(json.dumps({"kind": "heads", "data": {}}))
    found = raison.load(str(tmp_path))
    assert "heads" in found.offers
    assert Artifact.open(found.head_statistics, "heads").kind == "heads"


def test_unknown_suites_are_refused():
    with pytest.raises(InputError, match="Did you mean 'P4-table1'"):
        suite_named("P4-table11")


# -- parts that are done -----------------------------------------------------------------------------------------


def test_a_suite_goes_on_from_the_parts_that_are_done(sentiment, data_dir, tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(method_runs, "evaluate", lambda *a, **k: made.append(1) or evaluate(*a, **k))
    _, first = reproduce("P4-table3", limit=2, data_dir=data_dir, keep=tmp_path)
    assert len(made) == 1
    _, second = reproduce("P4-table3", limit=2, data_dir=data_dir, keep=tmp_path)
    assert len(made) == 1
    assert second[0].evaluation == first[0].evaluation
    reproduce("P4-table3", limit=3, data_dir=data_dir, keep=tmp_path)  # other texts are another part
    assert len(made) == 2
    for file in tmp_path.iterdir():
        file.write_text(file.read_text()[:-40])  # torn
    _, third = reproduce("P4-table3", limit=2, data_dir=data_dir, keep=tmp_path)
    assert len(made) == 3
    assert third[0].evaluation == first[0].evaluation


def test_a_model_that_was_trained_again_is_another():
    from raison.testing import tiny_model

    model, again = (tiny_model("bert", "classification") for _ in range(2))
    assert (
        sampled_weights(model)
        == sampled_weights(again)
        != sampled_weights(tiny_model("bert", "classification", seed=1))
    )
    with torch.no_grad():
        for weight in again.hf.parameters():
            weight += 1e-6
    assert sampled_weights(model) != sampled_weights(again)


# -- questions ---------------------------------------------------------------------------------------------------


def test_a_prompt_carries_the_gold_span():
    from raison.core.records import Example, Span

    asked = Example("Who fell?", "Yesterday Ann fell.", id="7", label="Ann", gold=(Span(10, 13),), meta={"answers": []})
    made = prompt_of(asked, "{context}\n\nQuestion: {question}\nAnswer:")
    assert made.text == "Yesterday Ann fell.\n\nQuestion: Who fell?\nAnswer:"
    (span,) = made.gold
    assert made.text[span.start : span.end] == "Ann"
    other = prompt_of(asked, "Q: {question} C: {context}").gold[0]
    assert "Q: Who fell? C: Yesterday Ann fell."[other.start : other.end] == "Ann"


def test_answers_are_marked_as_squad_does():
    from raison.core.records import Example
    from raison.metrics.answers import answer_f1, exact_match

    assert exact_match("The  Cat!", ["a cat"]) == 1.0
    assert exact_match("cats", ["a cat"]) == 0.0
    assert answer_f1("the black cat", ["cat", "a black dog"]) == pytest.approx(2 / 3)  # 1 of 2 and 1 of 1 words
    assert answer_f1("", ["cat"]) == 0.0
    context = "Ann and Bob fell."
    examples = [
        Example("Who?", context, label="Ann", meta={"answers": [[0, 3], [8, 11]]}),
        Example("Who?", context, label="Ann", meta={"answers": [[0, 3]]}),
    ]
    assert answer_quality(["Bob", "Ann Bob"], examples) == (
        "Its answers to these questions: exact match 50.0 %, F1 83.3 %."
    )


def test_a_language_model_is_asked_and_explained_by_its_answer(monkeypatch):
    import raison
    from raison.core.records import Example
    from raison.studies import prompts
    from raison.testing.tiny import tiny_model

    monkeypatch.setattr(prompts, "LONGEST", 2)  # random weights write what no tokenizer would
    model = tiny_model("llama", "causal")
    asked = prompts.with_written_answer(
        model, Example.from_template("{context} Q: {question} A:", context="It fell down.", question="What?")
    )
    assert asked.target
    found = raison.explain(model, asked, "gradient_norm", units="token")
    written = found.target.text
    assert written.strip() == str(asked.target).strip()
    free = {name.strip() for name in found.units.names}
    assert "Q" not in free and "A" not in free  # the template stays


def test_examples_can_name_what_is_explained(sentiment):
    from raison.core.records import Example
    from raison.studies.evaluate import evaluate

    texts = [Example("A dull film.", target="positive"), Example("A fine film.", target="negative")]
    found = evaluate(sentiment, texts, ["random"], ["aopc"], target="given")
    assert [seen.target for seen in found.texts] == ["positive", "negative"]
    with pytest.raises(InputError, match="names no target"):
        evaluate(sentiment, ["A dull film."], ["random"], ["aopc"], target="given")


# -- pictures ----------------------------------------------------------------------------------------------------


def test_curves_are_drawn_the_same_way_twice(sentiment, data_dir, tmp_path):
    pytest.importorskip("matplotlib")
    from raison.show.figure.curves import draw_curves, shares_of
    from raison.studies.evaluate import evaluate

    np.testing.assert_allclose(shares_of("aopc_curve", 9), np.arange(1, 10) / 9)  # P4's grid: 11.1 % … 100 %
    np.testing.assert_allclose(shares_of("deletion_curve", 11), np.arange(11) / 10)
    found = evaluate(sentiment, ["A dull film.", "A very fine film."], ["random", "uniform"], ["aopc", "deletion"])
    for keys in (("aopc_curve", "deletion_curve"), ("aopc",)):
        files = [tmp_path / f"{k}.svg" for k in (1, 2)]
        for file in files:
            draw_curves(found, keys, file)
        assert files[0].read_bytes() == files[1].read_bytes()
        assert len(files[0].read_bytes()) > 5000


# -- across runs -------------------------------------------------------------------------------------------------


def test_runs_are_compared_on_the_texts_that_both_have():
    from raison.core.evaluation import Cell, Column, EvaluatedText, Evaluation

    def run(ids, values):
        cell = Cell("m", "error", float(np.mean(values)), None, None, tuple(map(float, values)))
        texts = tuple(EvaluatedText(str(each), "text") for each in ids)
        return Evaluation("model", "data", ("m",), (Column("error", "x", False),), (cell,), texts, {}, {"seed": 0})

    first = run(range(12), [k / 100 for k in range(12)])
    second = run(range(13, 1, -1), [0.5 + k / 100 for k in range(13, 1, -1)])  # others, and in another order
    both = join_runs({"a": first, "b": second})
    assert [text.id for text in both.texts] == [str(k) for k in range(2, 12)]
    np.testing.assert_allclose(np.array(both.cell("b: m", "error").each) - both.cell("a: m", "error").each, 0.5)
    one, other, absent = RunMethod("a", "m"), RunMethod("b", "m"), RunMethod("c", "m")
    claims = [ClaimAcross("better", one, other, "error"), ClaimAcross("absent", one, absent, "error")]
    ((claim, verdict),) = verdicts_across(claims, {"a": first, "b": second})
    assert (claim.text, verdict.better, verdict.count) == ("better", "a: m", 10)
    assert verdict.difference == pytest.approx(-0.5)
    assert join_runs({"a": first, "b": run([20, 21], [0, 1])}) is None
    # a number that only one of them has is not compared, and the others are
    more = Cell("m", "ratio", 1.0, None, None, (1.0,) * 12)
    wider = replace(first, columns=(*first.columns, Column("ratio", "x", False)), cells=(*first.cells, more))
    claims = [ClaimAcross("better", one, other, key) for key in ("error", "ratio")]
    for runs in ({"a": wider, "b": second}, {"a": second, "b": wider}):
        ((claim, _),) = verdicts_across(claims, runs)
        assert claim.key == "error"


def test_the_true_probability_of_a_majority_is_counted():
    from itertools import product

    from raison.studies.reproduce.experiments import majority as study

    for kept, ones in ((17, 9), (17, 8), (13, 5), (12, 8), (10, 5)):
        rest = list(product((0, 1), repeat=17 - kept))
        share = np.mean([ones + sum(each) > 8 for each in rest])
        assert study.true_probability(kept, ones) == pytest.approx(share)
    curve = study.calibration(truths=[0.0, 0.04, 1.0], beliefs=[0.1, 0.3, 0.8])
    assert curve[0] == pytest.approx(0.2) and curve[-1] == pytest.approx(0.8)
    assert curve[5] == pytest.approx(0.5)  # the middle of its neighbours


def test_the_majority_language_is_taught_and_measured(tmp_path):
    """A short training from scratch: the folder opens, and a model that knows nothing yet is told so."""
    import subprocess
    import sys
    from itertools import product

    import raison
    from raison.core.records import Example
    from raison.studies.reproduce.experiments import majority as study

    recipe = RECIPES / "majority.py"
    told = [sys.executable, str(recipe), "--out", str(tmp_path / "m"), "--steps", "2", "--batch", "8"]
    done = subprocess.run([*told, "--keep", "bernoulli(p=0.5)"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    _, outcomes = reproduce("P0-figure3", models={"majority-standard": str(tmp_path / "m")}, limit=6)
    found = outcomes[0].evaluation
    assert outcomes[1].evaluation is None
    model = raison.load(str(tmp_path / "m"))
    one = model.tokenizer.convert_tokens_to_ids("1")
    errors, losses = [], []
    for sentence in study.sentences(6, 0):
        text, kept = sentence.text, sentence.kept
        bits = [int(bit) for bit in text.split()[:17]]
        dropped = {1 + k for k in range(17) if not kept[k]}  # <s> is the first token
        there = torch.tensor([[k for k in range(19) if k not in dropped]])
        ids = torch.tensor([model.encode([Example(text)])[0].ids.tolist()])
        with torch.no_grad():
            belief = model.hf(input_ids=ids[:, there[0]], position_ids=there).logits[0, -1].softmax(-1)[one]
            whole = model.hf(input_ids=ids).logits[0].log_softmax(-1)
        known = sum(bit for bit, keep in zip(bits, kept, strict=True) if keep)
        rest = [sum(each) for each in product((0, 1), repeat=len(dropped))]
        errors.append(abs(float(belief) - np.mean([known + more > 8 for more in rest])))
        after = [*ids[0, 1:].tolist(), model.tokenizer.eos_token_id]
        losses.append(-np.mean([float(whole[k, token]) for k, token in enumerate(after)]))
    np.testing.assert_allclose(found.cell("P(1)", "error").each, errors, atol=1e-5)
    np.testing.assert_allclose(found.cell("P(1)", "loss").each, losses, atol=1e-5)
    assert "the optimum is 1.8025" in found.notes[0]


def tiny_suite():
    """A suite of two controls on a model of nothing, and its texts."""
    from raison.core.records import Example
    from raison.studies.reproduce.suite import Run, Suite

    run = Run("tiny", "tiny", "texts")
    suite = Suite("tiny", "", "", {"one": "random", "other": "leave_one_out"}, (run,), ("aopc",), removal=None)
    return suite, run, [Example("the film is lovely", id="a", label=0), Example("nobody saw the end", id="b", label=1)]


def test_a_run_that_is_stopped_is_no_part_that_is_done(tmp_path, monkeypatch):
    """An evaluation that is stopped gives what it has; kept as done, it would be reported for all texts."""
    from raison.studies import evaluate as evaluating
    from raison.testing import tiny_model

    suite, run, examples = tiny_suite()
    model = tiny_model("bert", "classification")
    kept = PartStore(tmp_path / "kept", suite, run)
    whole = evaluating.Job.work

    def once(job, texts):
        if job.texts:
            raise KeyboardInterrupt
        whole(job, texts)

    monkeypatch.setattr(evaluating, "GROUP", 1)
    monkeypatch.setattr(evaluating.Job, "work", once)
    with pytest.raises(KeyboardInterrupt):
        measure_methods(suite, model, examples, run, 0, kept)
    assert not list((tmp_path / "kept").glob("*.json"))
    monkeypatch.setattr(evaluating.Job, "work", whole)
    found, _ = measure_methods(suite, model, examples, run, 0, kept)
    assert len(found.cell("one", "aopc").each) == 2


@pytest.mark.parametrize("torn", [b"", b'{"model": "x"', b'{"model": 3}', b"\xff\xfe\x00", b"[]", b"null"])
def test_a_torn_part_is_made_again(tmp_path, torn):
    from raison.testing import tiny_model

    suite, run, examples = tiny_suite()
    model = tiny_model("bert", "classification")
    kept = PartStore(tmp_path, suite, run)
    first, _ = measure_methods(suite, model, examples, run, 0, kept)
    (file,) = tmp_path.glob("*.json")
    good = file.read_bytes()
    file.write_bytes(torn)
    again, _ = measure_methods(suite, model, examples, run, 0, kept)
    assert again == first
    assert len(file.read_bytes()) > 0.9 * len(good)
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_for_parts_is_a_folder(tmp_path, capfd):
    from typer.testing import CliRunner

    from raison.cli.app import app, assemble

    assemble()
    (tmp_path / "file").write_text("")
    found = CliRunner().invoke(app, ["reproduce", "P4-table3", "--keep", str(tmp_path / "file")])
    assert found.exit_code == 2
    assert "is a file: name a folder" in capfd.readouterr().err + found.stderr


def test_a_misspelt_model_is_refused():
    """It was passed over, and the run that wanted it was reported as not run."""
    with pytest.raises(InputError, match="no model that is called 'qpq': its models are sentiment, qqp"):
        reproduce("P4-table3", models={"qpq": "folder"}, limit=2)
