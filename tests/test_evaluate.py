"""Methods x metrics on texts: the record, its files, what other tools made, and who is better."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import raison
from raison.cli.app import app, assemble
from raison.errors import InputError, Unsupported
from raison.evaluation import Evaluation
from raison.models.base import Budget
from raison.registry import metrics
from raison.show.report import report
from raison.show.scoreboard import markdown, spreadsheet
from raison.studies.compare import compare
from raison.studies.evaluate import evaluate
from raison.studies.exchange import read_made
from raison.testing import tiny_model
from raison.testing.checks import TEXTS
from raison.types import Example, Span

METHODS = ["leave_one_out", "input_x_gradient", "random"]
METRICS = ["comprehensiveness", "aopc", "lodds", "infidelity", "token_f1_micro", "auprc"]


def examples(count: int = 6) -> list[Example]:
    """Texts with a gold span on their second word."""
    found = []
    for k in range(count):
        text = f"{TEXTS[k % 3]} {'good ' * k}".strip()
        start = text.index(" ") + 1
        found.append(Example(text, id=f"e{k}", label=k % 3, gold=(Span(start, text.index(" ", start)),)))
    return found


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
    assert alone.cell("random", "aopc").each == pytest.approx(result.cell("random", "aopc").each, abs=1e-12)


def test_gold_targets_are_explained_on_request(model):
    found = evaluate(model, examples(3), ["input_x_gradient"], ["aopc"], target="gold")
    assert [seen.target for seen in found.texts] == [model.labels[k] for k in range(3)]
    with pytest.raises(InputError, match="no label"):
        evaluate(model, TEXTS, ["random"], ["aopc"], target="gold")


def test_files(result):
    table = markdown(result)
    assert "| `leave_one_out` |" in table
    assert "comprehensiveness ↑" in table
    rows = list(csv.DictReader(io.StringIO(spreadsheet(result))))
    assert len(rows) == len(result.cells)
    assert float(rows[0]["value"]) == result.cells[0].value
    page = report(result)
    assert "<script" not in page
    assert "polyline" in page


def test_strange_texts_can_not_command_the_report(model):
    evil = [Example("<script>alert(1)</script> good film", id="<b>"), Example("a dull film", id="x")]
    page = report(evaluate(model, evil, ["random", "leave_one_out"], ["comprehensiveness"]))
    assert "<script" not in page
    assert "&lt;" in page


def test_verdicts(result):
    found = {v.key: v for v in compare(result, "leave_one_out", "random")}
    each = [np.array(result.cell(m, "aopc").each) for m in ("leave_one_out", "random")]
    assert found["aopc"].difference == pytest.approx((each[0] - each[1]).mean())
    assert all(v.corrected >= v.p for v in found.values())
    same = compare(result, "random", "random")
    assert all(v.p == 1 and v.better == "" for v in same)
    with pytest.raises(InputError, match="has no 'gae'"):
        compare(result, "gae", "random")


def test_what_we_export_can_be_measured_again(model, tmp_path):
    """ERASER's format keeps a score for each white-space token, so texts of such words give the same numbers."""
    texts = [Example("the film is a lovely surprise", id="a", label=0, gold=(Span(14, 20),)),
             Example("nobody in town expected it", id="b", label=1, gold=(Span(0, 6),))]  # fmt: skip
    path = tmp_path / "made.jsonl"
    ours = evaluate(model, texts, ["leave_one_out"], ["aopc", "auprc"], export=path)
    theirs = evaluate(model, texts, metrics=["aopc", "auprc"], explanations=path)
    assert theirs.methods == ("leave_one_out",)
    for key in ("aopc", "auprc"):
        assert theirs.cell("leave_one_out", key).each == pytest.approx(ours.cell("leave_one_out", key).each)
    with pytest.raises(Unsupported, match="needs a method"):
        evaluate(model, texts, metrics=["randomisation"], explanations=path)


def test_parquet(model, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    evaluate(model, examples(2), ["leave_one_out", "random"], ["aopc"], export=tmp_path / "made.parquet")
    table = parquet.read_table(tmp_path / "made.parquet").to_pylist()
    assert [row["method"] for row in table] == ["leave_one_out", "random"] * 2
    assert len(table[0]["scores"]) == len(table[0]["units"])


def test_tokens_of_any_tokenizer_find_their_words(model, tmp_path):
    path = tmp_path / "made.jsonl"
    record = {"text": "The film is lovely", "tokens": ["[CLS]", "the", "fi", "##lm", "is", "Ġlove", "ly", "[SEP]"],
              "scores": [9, 0.5, 1, 2, 0, 3, 4, 9], "method": "shap"}  # fmt: skip
    path.write_text(json.dumps(record) + "\n")
    found = evaluate(model, None, metrics=["aopc"], explanations=path)
    assert found.texts[0].units["shap"] == [["The", 0.5], ["film", 3.0], ["is", 0.0], ["lovely", 7.0]]


def test_inseq(tmp_path):
    path = tmp_path / "out.json"
    token = lambda word: {"token": word, "id": 1}  # noqa: E731
    whole = {
        "info": {"attribution_method": "saliency"},
        "sequence_attributions": [
            {
                "source": [token("▁Hello"), token("▁world")],
                "target": [token("▁Hallo"), token("▁Welt")],
                "source_attributions": [[0.25, 0.75], [0.5, 0.0]],
                "attr_pos_start": 0,
            }
        ],
    }
    path.write_text(json.dumps(whole))
    (made,) = read_made(path)
    assert made.method == "saliency"
    assert made.tokens == ("▁Hello", "▁world")
    np.testing.assert_allclose(made.scores, [0.5, 0.25])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "JSONDecodeError"), ("[]", "not an object"), ('{"tokens": ["a"]}', "neither scores"),
        ('{"tokens": ["a"], "scores": [1, 2], "text": "a"}', "1 tokens"),
        ('{"tokens": ["a"], "scores": [NaN], "text": "a"}', "not a number"),
        ('{"annotation_id": "z", "rationales": []}', "no text called 'z'"),
    ],
)  # fmt: skip
def test_broken_explanations_are_named_by_line(tmp_path, line, why):
    path = tmp_path / "made.jsonl"
    path.write_text('{"tokens": ["a"], "scores": [1], "text": "a b"}\n' + line + "\n")
    with pytest.raises(InputError, match=f"Line 2 of 'made.jsonl'.*{why}"):
        read_made(path)


def test_plausibility_of_explanations_from_elsewhere_needs_no_model(tmp_path):
    data = tmp_path / "texts.jsonl"
    data.write_text('{"id": "a", "text": "the film is lovely", "gold": [[12, 18]]}\n')
    path = tmp_path / "made.jsonl"
    path.write_text('{"id": "a", "tokens": ["the", "film", "is", "lovely"], "scores": [0, 0, 0, 1]}\n')
    found = evaluate("no such model", str(data), metrics=["auprc", "top_1"], explanations=path)
    assert found.cell("elsewhere", "auprc").value == 1
    assert found.cell("elsewhere", "top_1").value == 1


def run(*words):
    assemble()
    return CliRunner().invoke(app, ["evaluate", *map(str, words)])


def test_the_command_line(sentiment, tmp_path):
    data = tmp_path / "texts.csv"
    data.write_text("text,label\na lovely film,positive\na dull film,negative\nnot a good film,negative\n")
    files = [tmp_path / f"out{ending}" for ending in (".md", ".csv", ".json", ".html")]
    outs = [word for file in files for word in ("--out", file)]
    found = run("-d", data, "-M", "leave_one_out", "-M", "random", "--metric", "aopc", *outs)
    assert found.exit_code == 0, found.output
    assert "aopc ↑" in found.output
    assert "cost per text" in found.output
    assert all(file.is_file() for file in files)
    assert Evaluation.from_json(files[2].read_text()).data


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-d", "sst3"], "no data set called 'sst3'"),
        (["-M", "leave_one_in"], "no method called 'leave_one_in'"),
        (["--metric", "aopcc"], "no metric called 'aopcc'"),
        (["-M", "random", "-M", "random"], "named twice"),
        (["--limit", "0"], "--limit"),
        (["--out", "x.pdf"], ".md"),
        (["-d", "nowhere.csv"], "no file"),
    ],
)
def test_bad_input_gets_one_sentence(words, why, capfd):
    found = run(*words)
    said = capfd.readouterr().err + (found.stderr if found.stderr_bytes is not None else "")
    assert found.exit_code in (1, 2)
    assert why in said
    assert "Traceback" not in said


def test_every_metric_is_listed_with_a_sentence():
    for name in metrics:
        assert metrics[name].__doc__.strip().splitlines()[0].endswith(".")
        assert metrics[name].keys[0]


def test_public_name():
    assert raison.evaluate is evaluate
