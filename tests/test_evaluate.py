"""Methods x metrics on texts: the record, its files, what other tools made, and who is better."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import raison
from raison.cli.app import app, assemble
from raison.core.errors import InputError, RaisonError, Unsupported
from raison.core.evaluation import Evaluation
from raison.core.records import Example, Span
from raison.core.registry import metrics
from raison.metrics.base import Share
from raison.metrics.statistics import mean_interval, pooled_interval
from raison.models.protocol import Budget
from raison.show.html.evaluation import report
from raison.show.scoreboard_files import markdown, spreadsheet
from raison.studies.compare import compare
from raison.studies.evaluate import evaluate
from raison.studies.exchange import read_made
from raison.testing import tiny_model
from raison.testing.checks import TEXTS

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


def test_intervals_of_a_table_are_those_of_its_texts(model):
    """At the level that was asked for; of pooled numbers by parts and wholes, not by ratios of single texts."""
    texts = [  # of the k-th text k + 1 words are marked
        replace(e, gold=(Span(0, len(" ".join(e.text.split()[: k + 1]))),)) for k, e in enumerate(examples())
    ]
    found = evaluate(model, texts, ["leave_one_out"], ["comprehensiveness", "token_f1_micro"], level=0.8, seed=3)
    cell = found.cell("leave_one_out", "comprehensiveness")
    expected = mean_interval(cell.each, level=0.8, seed=3)
    assert (cell.low, cell.high) == (expected.low, expected.high)
    pooled = next(column.key for column in found.columns if column.pooled)
    cell = found.cell("leave_one_out", pooled)
    expected = pooled_interval([Share(*each) for each in zip(cell.parts, cell.wholes, strict=True)], level=0.8, seed=3)
    assert (cell.low, cell.high) == (expected.low, expected.high) and cell.low < cell.high
    ratios = mean_interval([p / w for p, w in zip(cell.parts, cell.wholes, strict=True)], level=0.8, seed=3)
    assert (cell.low, cell.high) != (ratios.low, ratios.high)


def test_curves_are_means_over_texts(model):
    texts = examples(3)
    whole = evaluate(model, texts, ["leave_one_out"], ["aopc"]).curves["aopc_curve"]["leave_one_out"]
    single = [evaluate(model, [e], ["leave_one_out"], ["aopc"]).curves["aopc_curve"]["leave_one_out"] for e in texts]
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
        assert metrics[name].keys[0].name


def test_public_name():
    assert raison.evaluate is evaluate


# -- what went wrong once ------------------------------------------------------------------------------------


def made_file(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_the_length_of_a_rationale_is_that_of_the_whole_data_set(model, monkeypatch):
    """ERASER takes the mean share of gold units over the data; it was that of the texts that are worked on together."""
    from raison.studies import evaluate as study

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
    found = evaluate(model, texts, ["random"], [name for name in metrics if metrics[name].needs == {"gold"}])
    for column in found.columns:
        assert found.cell("random", column.key).each[2] is None
        assert found.cell("random", column.key).count <= 2
    assert "token_f1_micro" in markdown(found)
    assert "not defined for 1 text, left out" in markdown(found)


@pytest.mark.parametrize(
    ("texts", "metric", "why"),
    [
        ([Example("a good film"), Example("a bad film")], "auprc", "texts has no human rationales"),
        ("head.csv", "aopc", "no text in .*head.csv"),
        ("wrong.csv(text=review)", "aopc", "no column 'review' for text"),
    ],
)
def test_data_that_can_not_be_measured_is_refused_before_the_model_is_opened(texts, metric, why, tmp_path):
    (tmp_path / "head.csv").write_text("text,label\n")
    (tmp_path / "wrong.csv").write_text("text,label\na film,good\n")
    data = str(tmp_path / texts) if isinstance(texts, str) else texts
    with pytest.raises(RaisonError, match=why):
        evaluate("no such model", data, ["random"], [metric], skip_broken=True)


def test_an_explanation_is_about_its_own_text(model, tmp_path):
    """The number of a line is no id: a text of the data with that id was explained by the tokens of another."""
    data = [Example("a lovely film", id="1"), Example("nobody saw the film", id="0")]
    path = tmp_path / "made.jsonl"
    lines = [
        {"text": "a lovely film", "tokens": ["a", "lovely", "film"], "scores": [0, 1, 2]},
        {"text": "nobody saw the film", "tokens": ["nobody", "saw", "the", "film"], "scores": [3, 4, 5, 6]},
    ]
    found = evaluate(model, data, metrics=["aopc"], explanations=made_file(path, *lines))
    assert {seen.id: [score for _, score in seen.units["elsewhere"]] for seen in found.texts} == {
        "1": [0, 1, 2],
        "0": [3, 4, 5, 6],
    }
    bare = [{"tokens": line["tokens"], "scores": line["scores"]} for line in lines]  # the order is that of the data
    again = evaluate(model, data, metrics=["aopc"], explanations=made_file(path, *bare))
    assert again.cells == found.cells


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([{"id": "a", "tokens": ["the", "nice", "movie"], "scores": [1, 2, 3]}], "2 of 3 tokens .*'nice'.*not stand"),
        ([{"id": "a", "text": "another one", "tokens": ["another"], "scores": [1]}], "is about 'another one'"),
        ([{"id": "x", "text": "another one", "tokens": ["another"], "scores": [1]}], "has no text 'another one'"),
        ([{"id": "x", "tokens": ["the"], "scores": [1]}], "texts has no such text"),
        ([{"id": "a", "tokens": ["the"], "scores": [1]}] * 2, "explains 'a' twice"),
        ([{"id": i, "method": m, "tokens": ["the"], "scores": [1]} for m, i in ("ra", "rb", "sa")], "s has no .*'b'"),
    ],
)  # fmt: skip
def test_explanations_of_other_texts_are_refused(model, records, why, tmp_path):
    data = [Example("the film is lovely", id="a"), Example("the end", id="b")]
    with pytest.raises(InputError, match=why):
        evaluate(model, data, metrics=["aopc"], explanations=made_file(tmp_path / "made.jsonl", *records))


def test_what_explanations_leave_open_is_told(model, tmp_path):
    data = [Example("the café is a lovely place", id="a"), Example("the end", id="b")]
    tokens = ["[CLS]", "the", "cafe", "is", "a", "lovely", "place", "[SEP]"]
    path = made_file(tmp_path / "made.jsonl", {"id": "a", "tokens": tokens, "scores": [9, 1, 2, 3, 4, 5, 6, 9]})
    found = evaluate(model, data, metrics=["aopc"], explanations=path)
    assert "there are explanations of 1 of the 2 texts" in found.notes
    assert "1 token of the explanations, found nowhere in the texts, did not count" in found.notes
    with pytest.raises(InputError, match="leave one of them away"):
        evaluate(model, data, ["random"], ["aopc"], explanations=path)


def test_both_texts_of_a_pair_are_exported_and_read(model, tmp_path):
    path = tmp_path / "made.jsonl"
    texts = [Example("the film is lovely", "nobody saw the film", id="a"), Example("the end", "the end of it", id="b")]
    ours = evaluate(model, texts, ["leave_one_out"], ["aopc"], export=path)
    first = json.loads(path.read_text().splitlines()[0])
    assert [each["docid"] for each in first["rationales"]] == ["a_first", "a_second"]
    theirs = evaluate(model, texts, metrics=["aopc"], explanations=path)
    assert theirs.texts[0].units == ours.texts[0].units
    assert theirs.cells == ours.cells


def test_who_stops_it_gets_what_is_done(model, monkeypatch, tmp_path):
    from raison.studies import evaluate as study

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


def test_tables_fit_the_terminal(model, result):
    """No number and no name is cut, however narrow it is."""
    from rich.console import Console

    from raison.show.paired_tests import render_verdicts
    from raison.show.scoreboard import number
    from raison.show.terminal.scoreboard import render_evaluation

    wide = evaluate(
        model, examples(3), ["random", "integrated_gradients(baseline='text:some words', steps=4)"], ["aopc"]
    )
    for width in (60, 80):
        console = Console(file=io.StringIO(), width=width)
        render_evaluation(result, console)
        render_evaluation(wide, console)
        render_verdicts([vars(v) for v in compare(result, "leave_one_out", "random")], console)
        text = console.file.getvalue()
        assert max(map(len, text.splitlines())) <= width
        for cell in (*result.cells, *wide.cells):
            assert number(cell.value) in text
            assert f"{number(cell.low)} … {number(cell.high)}" in text
        for verdict in compare(result, "leave_one_out", "random"):
            assert number(verdict.difference) in text
        for head in ("interval", "corrected", "higher on", "better", "not decided"):
            assert head in text


def test_a_number_that_rounds_to_zero_has_no_minus():
    from raison.show.scoreboard import number

    assert number(-0.00001) == "0.0000"
    assert number(-0.5) == "−0.5000"


def test_small_reports(model):
    """One text has no interval; no text is both best and worst; of equal methods the first leads, in every process."""
    one = evaluate(model, examples(1), ["random"], ["aopc"])
    assert "One text alone has no intervals" in markdown(one)
    assert "<h3>Worst</h3>" not in report(one)
    three = evaluate(model, examples(3), ["random", "leave_one_out"], ["top_1", "aopc"])
    page = report(three)
    for seen in three.texts:
        assert page.count(f" · {seen.id}</p>") == 1
    same = [c for c in three.cells if c.method == "random"] + [
        replace(c, method="leave_one_out") for c in three.cells if c.method == "random"
    ]
    tied = replace(three, cells=tuple(same))
    assert "top_1 of random, text by text" in report(tied)


def test_tables_of_few_texts_say_that_intervals_may_be_too_narrow(result):
    from raison.show.verdicts import render_verdicts
    from rich.console import Console

    from raison.show.latex import latex
    from raison.show.scoreboard import TOO_NARROW, summary, warning_of_few
    from raison.show.terminal.scoreboard import render_evaluation

    assert 1 < len(result.texts) < 50
    for shown in (markdown(result), report(result), " ".join(summary(result))):
        assert TOO_NARROW in shown
    assert TOO_NARROW.replace("%", r"\%") in latex(result)
    out = io.StringIO()
    console = Console(file=out, width=100)
    render_evaluation(result, console)
    render_verdicts([vars(each) for each in compare(result, "leave_one_out", "random")], console)
    assert " ".join(out.getvalue().split()).count(TOO_NARROW) == 2
    assert not warning_of_few(1) and not warning_of_few(50) and warning_of_few(1, 49, 50) == [TOO_NARROW]
    fifty = replace(result, texts=(*result.texts,) * 50)
    assert TOO_NARROW not in markdown(fifty) and TOO_NARROW.partition(" ")[0] in markdown(fifty)


def test_numbers_that_a_method_lacks_are_told_whichever_it_is(result):
    from raison.show.scoreboard import summary

    cells = [
        replace(cell, each=(None, *cell.each[1:])) if (cell.method, cell.key) == ("leave_one_out", "aopc") else cell
        for cell in result.cells
    ]
    assert "aopc: not defined for up to 1 text, left out there." in summary(replace(result, cells=tuple(cells)))


def test_explanations_need_no_data_and_no_methods(sentiment, tmp_path, monkeypatch):
    monkeypatch.delenv("RAISON_DATA", raising=False)
    path = made_file(
        tmp_path / "made.jsonl", {"text": "a dull film", "tokens": ["a", "dull", "film"], "scores": [0, 2, 1]}
    )
    found = run("--explanations", path, "--metric", "aopc")
    assert found.exit_code == 0, found.output
    assert "on made.jsonl: 1 text" in found.output
    assert run("--explanations", path, "-M", "random").exit_code == 2


@pytest.mark.parametrize(("name", "why"), [("folder", "is a folder"), ("table.csv", "no list of texts")])
def test_document_frequencies_count_texts_only(name, why, tmp_path, capfd):
    (tmp_path / "folder").mkdir()
    (tmp_path / "table.csv").write_text("text,label\na film,good\n")
    assemble()
    found = CliRunner().invoke(app, ["idf", "--data", str(tmp_path / name), "--out", str(tmp_path / "idf.json")])
    assert found.exit_code == 2
    assert why in capfd.readouterr().err + found.stderr
