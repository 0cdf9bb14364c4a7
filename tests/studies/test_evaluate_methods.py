"""Methods x metrics on texts: the record, its intervals and curves, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import raison
from raison.core.errors import InputError, RaisonError
from raison.core.evaluation import Evaluation
from raison.core.records import Example, Span
from raison.core.registry import metrics
from raison.metrics.base import Share
from raison.metrics.statistics import mean_interval, pooled_interval
from raison.models.protocol import Budget
from raison.show.evaluation_tables import evaluation_as_markdown
from raison.studies.compare_methods import compare
from raison.studies.evaluate_methods import evaluate
from raison.testing import tiny_model
from raison.testing.model_contract import TEXTS
from tests.helpers.evaluated import METHODS, METRICS, examples


@pytest.fixture(scope="module")
def model():
    return tiny_model("bert", "classification")


@pytest.fixture(scope="module")
def result(model):
    return evaluate(model, examples(), METHODS, METRICS)


def test_the_record_is_complete_and_survives_json(result):
    assert Evaluation.from_json(result.to_json()) == result
    assert result.methods == tuple(METHODS)
    assert {c.key for c in result.columns} >= {"comprehensiveness", "aopc", "lodds", "auprc"}
    for cell in result.cells:
        assert len(cell.each) == 6
        assert cell.low <= cell.value <= cell.high
    assert set(result.curves) == {"aopc_curve", "lodds_curve"}
    assert result.costs["input_x_gradient"]["backwards"] == 6
    assert result.costs["random"]["forwards"] == 0
    assert result.costs["leave_one_out"]["forwards"] > 6


def test_means_and_pooled_numbers(result):
    cell = result.cell("leave_one_out", "comprehensiveness")
    assert cell.value == pytest.approx(np.mean(cell.each))
    pooled = next(c for c in result.columns if c.pooled)
    cell = result.cell("random", pooled.key)
    assert cell.value == pytest.approx(sum(cell.parts) / sum(cell.wholes))


def test_intervals_of_a_table_are_those_of_its_texts(model):
    """At the level that was asked for; of pooled numbers by parts and wholes, not by ratios of single texts."""
    texts = [  # of the k-th text k + 1 words are marked
        replace(e, gold=(Span(0, len(" ".join(e.text.split()[: k + 1]))),))
        for k, e in enumerate(examples())
    ]
    found = evaluate(
        model, texts, ["leave_one_out"], ["comprehensiveness", "token_f1_micro"], level=0.8, seed=3
    )
    cell = found.cell("leave_one_out", "comprehensiveness")
    expected = mean_interval(cell.each, level=0.8, seed=3)
    assert (cell.low, cell.high) == (expected.low, expected.high)
    pooled = next(column.key for column in found.columns if column.pooled)
    cell = found.cell("leave_one_out", pooled)
    expected = pooled_interval(
        [Share(*each) for each in zip(cell.parts, cell.wholes, strict=True)], level=0.8, seed=3
    )
    assert (cell.low, cell.high) == (expected.low, expected.high) and cell.low < cell.high
    ratios = mean_interval(
        [p / w for p, w in zip(cell.parts, cell.wholes, strict=True)], level=0.8, seed=3
    )
    assert (cell.low, cell.high) != (ratios.low, ratios.high)


def test_curves_are_means_over_texts(model):
    texts = examples(3)
    whole = evaluate(model, texts, ["leave_one_out"], ["aopc"]).curves["aopc_curve"][
        "leave_one_out"
    ]
    single = [
        evaluate(model, [e], ["leave_one_out"], ["aopc"]).curves["aopc_curve"]["leave_one_out"]
        for e in texts
    ]
    np.testing.assert_allclose(whole, np.mean(single, axis=0), rtol=1e-9)
    assert np.ptp(single, axis=0).max() > 1e-3


def test_which_direction_is_better(model):
    found = evaluate(model, examples(2), ["random"], ["sufficiency", "comprehensiveness"])
    told = {column.key: column.higher for column in found.columns}
    assert told == {
        "sufficiency": False, "normalised_sufficiency": True,
        "comprehensiveness": True, "normalised_comprehensiveness": True,
    }  # fmt: skip


def test_the_same_seed_gives_the_same_table_and_batches_do_not_matter(model, result):
    again = evaluate(model, examples(), METHODS, METRICS)
    assert again == result
    old = model.budget
    try:
        model.budget = Budget(tokens=40)
        small = evaluate(model, examples(), METHODS, METRICS)
    finally:
        model.budget = old
    for one, other in zip(result.cells, small.cells, strict=True):
        np.testing.assert_allclose(one.value, other.value, atol=5e-5)


def test_the_order_of_methods_and_company_do_not_matter(model, result):
    alone = evaluate(model, examples(), ["random"], ["aopc"])
    assert alone.cell("random", "aopc").each == pytest.approx(
        result.cell("random", "aopc").each, abs=1e-12
    )


def test_gold_targets_are_explained_on_request(model):
    found = evaluate(model, examples(3), ["input_x_gradient"], ["aopc"], target="gold")
    assert [seen.target for seen in found.texts] == [model.labels[k] for k in range(3)]
    with pytest.raises(InputError, match="no label"):
        evaluate(model, TEXTS, ["random"], ["aopc"], target="gold")


def test_verdicts(result):
    found = {v.key: v for v in compare(result, "leave_one_out", "random")}
    each = [np.array(result.cell(m, "aopc").each) for m in ("leave_one_out", "random")]
    assert found["aopc"].difference == pytest.approx((each[0] - each[1]).mean())
    assert all(v.corrected >= v.p for v in found.values())
    same = compare(result, "random", "random")
    assert all(v.p == 1 and v.better == "" for v in same)
    with pytest.raises(InputError, match="has no 'gae'"):
        compare(result, "gae", "random")


def test_every_metric_is_listed_with_a_sentence():
    for name in metrics:
        assert metrics[name].__doc__.strip().splitlines()[0].endswith(".")
        assert metrics[name].keys[0].name


def test_public_name():
    assert raison.evaluate is evaluate


def test_the_length_of_a_rationale_is_that_of_the_whole_data_set(model, monkeypatch):
    """ERASER takes the mean share of gold units over the data; it was that of the texts that are worked on together."""
    from raison.studies import evaluate_methods as study

    texts = [
        Example("a b c d e f g h", id="long", gold=(Span(0, 11),)),
        Example("a b c d", id="short", gold=(Span(2, 3),)),
    ]
    texts += [Example("a b c d e f", id="none")]  # nobody marked anything here
    monkeypatch.setattr(study, "GROUP", 1)
    found = study.evaluate(model, texts, ["leave_one_out"], ["token_f1_micro"])
    share = (6 / 8 + 1 / 4) / 2
    chosen = [int(np.floor(share * size + 0.5)) for size in (8, 4)]
    assert found.cell("leave_one_out", "token_precision_micro").wholes == (*chosen, 0)


def test_texts_without_a_rationale_are_left_out_and_counted(model):
    texts = [*examples(2), Example("nobody marked this", id="z")]
    found = evaluate(
        model, texts, ["random"], [name for name in metrics if metrics[name].needs == {"gold"}]
    )
    for column in found.columns:
        assert found.cell("random", column.key).each[2] is None
        assert found.cell("random", column.key).count <= 2
    assert "token_f1_micro" in evaluation_as_markdown(found)
    assert "not defined for 1 text, left out" in evaluation_as_markdown(found)


@pytest.mark.parametrize(
    ("texts", "metric", "why"),
    [
        ([Example("a good film"), Example("a bad film")], "auprc", "texts has no human rationales"),
        ("head.csv", "aopc", "no text in .*head.csv"),
        ("wrong.csv(text=review)", "aopc", "no column 'review' for text"),
    ],
)
def test_data_that_can_not_be_measured_is_refused_before_the_model_is_opened(
    texts, metric, why, tmp_path
):
    (tmp_path / "head.csv").write_text("text,label\n")
    (tmp_path / "wrong.csv").write_text("text,label\na film,good\n")
    data = str(tmp_path / texts) if isinstance(texts, str) else texts
    with pytest.raises(RaisonError, match=why):
        evaluate("no such model", data, ["random"], [metric], skip_broken=True)


def test_who_stops_it_gets_what_is_done(model, monkeypatch, tmp_path):
    from raison.studies import evaluate_methods as study

    old, calls = study.Job.work, []

    def work(job, texts):
        calls.append(len(texts))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return old(job, texts)

    monkeypatch.setattr(study, "GROUP", 2)
    monkeypatch.setattr(study.Job, "work", work)
    found = evaluate(model, examples(), ["random"], ["aopc"], export=tmp_path / "made.jsonl")
    assert len(found.texts) == 2
    assert "stopped after 2 of 6 texts" in found.notes
    assert len((tmp_path / "made.jsonl").read_text().splitlines()) == 2
