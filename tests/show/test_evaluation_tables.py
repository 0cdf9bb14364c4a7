"""An evaluation as tables, files and a report."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from raison.core.records import Example
from raison.show.evaluation_tables import (
    evaluation_as_csv,
    evaluation_as_markdown,
    evaluation_summary,
)
from raison.show.html.evaluation import evaluation_page
from raison.studies.compare_methods import compare
from raison.studies.evaluate_methods import evaluate
from raison.testing import tiny_model
from tests.helpers.evaluated import METHODS, METRICS, examples


@pytest.fixture(scope="module")
def model():
    return tiny_model("bert", "classification")


@pytest.fixture(scope="module")
def result(model):
    return evaluate(model, examples(), METHODS, METRICS)


def test_files(result):
    table = evaluation_as_markdown(result)
    assert "| `leave_one_out` |" in table
    assert "comprehensiveness ↑" in table
    rows = list(csv.DictReader(io.StringIO(evaluation_as_csv(result))))
    assert len(rows) == len(result.cells)
    assert float(rows[0]["value"]) == result.cells[0].value
    page = evaluation_page(result)
    assert "<script" not in page
    assert "polyline" in page


def test_strange_texts_can_not_command_the_report(model):
    evil = [
        Example("<script>alert(1)</script> good film", id="<b>"),
        Example("a dull film", id="x"),
    ]
    page = evaluation_page(
        evaluate(model, evil, ["random", "leave_one_out"], ["comprehensiveness"])
    )
    assert "<script" not in page
    assert "&lt;" in page


def test_tables_fit_the_terminal(model, result):
    """No number and no name is cut, however narrow it is."""
    from rich.console import Console

    from raison.show.evaluation_tables import table_number
    from raison.show.terminal.evaluation import print_evaluation, print_paired_tests

    wide = evaluate(
        model,
        examples(3),
        ["random", "integrated_gradients(baseline='text:some words', steps=4)"],
        ["aopc"],
    )
    for width in (60, 80):
        console = Console(file=io.StringIO(), width=width)
        print_evaluation(result, console)
        print_evaluation(wide, console)
        print_paired_tests(compare(result, "leave_one_out", "random"), console)
        text = console.file.getvalue()
        assert max(map(len, text.splitlines())) <= width
        for cell in (*result.cells, *wide.cells):
            assert table_number(cell.value) in text
            assert f"{table_number(cell.low)} … {table_number(cell.high)}" in text
        for verdict in compare(result, "leave_one_out", "random"):
            assert table_number(verdict.difference) in text
        for head in ("interval", "corrected", "higher on", "better", "not decided"):
            assert head in text


def test_a_number_that_rounds_to_zero_has_no_minus():
    from raison.show.evaluation_tables import table_number

    assert table_number(-0.00001) == "0.0000"
    assert table_number(-0.5) == "−0.5000"


def test_small_reports(model):
    """One text has no interval; no text is both best and worst; of equal methods the first leads, in every process."""
    one = evaluate(model, examples(1), ["random"], ["aopc"])
    assert "One text alone has no intervals" in evaluation_as_markdown(one)
    assert "<h3>Worst</h3>" not in evaluation_page(one)
    three = evaluate(model, examples(3), ["random", "leave_one_out"], ["top_1", "aopc"])
    page = evaluation_page(three)
    for seen in three.texts:
        assert page.count(f" · {seen.id}</p>") == 1
    same = [c for c in three.cells if c.method == "random"] + [
        replace(c, method="leave_one_out") for c in three.cells if c.method == "random"
    ]
    tied = replace(three, cells=tuple(same))
    assert "top_1 of random, text by text" in evaluation_page(tied)


def test_tables_of_few_texts_say_that_intervals_may_be_too_narrow(result):
    from rich.console import Console

    from raison.show.evaluation_tables import (
        TOO_NARROW,
        evaluation_summary,
        warning_of_few_evaluated_texts,
    )
    from raison.show.latex import to_latex
    from raison.show.terminal.evaluation import print_evaluation, print_paired_tests

    assert 1 < len(result.texts) < 50
    for shown in (
        evaluation_as_markdown(result),
        evaluation_page(result),
        " ".join(evaluation_summary(result)),
    ):
        assert TOO_NARROW in shown
    assert TOO_NARROW.replace("%", r"\%") in to_latex(result)
    out = io.StringIO()
    console = Console(file=out, width=100)
    print_evaluation(result, console)
    print_paired_tests(compare(result, "leave_one_out", "random"), console)
    assert " ".join(out.getvalue().split()).count(TOO_NARROW) == 2
    assert (
        not warning_of_few_evaluated_texts(1)
        and not warning_of_few_evaluated_texts(50)
        and warning_of_few_evaluated_texts(1, 49, 50) == [TOO_NARROW]
    )
    fifty = replace(result, texts=(*result.texts,) * 50)
    assert TOO_NARROW not in evaluation_as_markdown(fifty) and TOO_NARROW.partition(" ")[
        0
    ] in evaluation_as_markdown(fifty)


def test_numbers_that_a_method_lacks_are_told_whichever_it_is(result):
    from raison.show.evaluation_tables import evaluation_summary

    cells = [
        replace(cell, each=(None, *cell.each[1:]))
        if (cell.method, cell.key) == ("leave_one_out", "aopc")
        else cell
        for cell in result.cells
    ]
    assert "aopc: not defined for up to 1 text, left out there." in evaluation_summary(
        replace(result, cells=tuple(cells))
    )


def test_notes_are_sentences_and_names_of_files_stay_as_they_are(result):
    noted = replace(
        result, notes=("2 texts were too long and were cut", "marks.csv: text is 'review'.")
    )
    _, *lines = evaluation_summary(noted)
    assert lines[-2:] == ["2 texts were too long and were cut.", "marks.csv: text is 'review'."]
