"""The tables of P2 and P3, read from lines of audits."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from raison.cli.app import app
from raison.core.errors import InputError
from raison.core.evaluation import MethodAxis
from raison.show.figure.curves import draw_curves
from raison.studies.audit.audit_numbers import Spread
from raison.studies.audit.audit_report import Audit
from raison.studies.audit.replaced_attention import ReplacedAttention, ReplacedScores
from raison.studies.audit.trained_adversary import Adversary
from raison.studies.audit.word_by_word import ShownText
from raison.studies.reproduce.audit_lines import AuditLine, line_of_audit
from raison.studies.reproduce.experiments.audit_tables import (
    AuditRow,
    correlation_with_lambda,
    row_of_audit_line,
)
from raison.studies.reproduce.recipe_lines import LINES, read_recipe_lines
from raison.studies.reproduce.reproduction_page import suite_section
from raison.studies.reproduce.run_suite import reproduce


def audit_of(*, permuted_drop=0.1, **more):
    """An audit of few numbers."""
    scores = ReplacedScores(accuracy=0.8, f1=0.7, accuracy_drop=0.1, f1_drop=permuted_drop)
    return Audit(
        model="a model",
        data="a set",
        count=7,
        accuracy=0.9,
        f1=0.8,
        replaced=ReplacedAttention(permuted=scores),
        token_probability=Spread(0.5, 0.4, 0.6, 0.1, count=3, left_out=0),
        **more,
    )


def line_of(audit, data, name, seed, **judged):
    """The line of an audit, as it stands in a file."""
    return line_of_audit(audit, data=data, name=name, seed=seed, **judged).to_dict()


def test_numbers_of_an_audit():
    frozen = Adversary("frozen", lam=1.0, jsd=0.6, tvd=0.2, accuracy=0.7, f1=0.7)
    line = line_of_audit(audit_of(adversaries=(frozen,)), data="sst", name="x", seed=3, auprc=0.4)
    row = row_of_audit_line(line, "frozen", 1.0)
    assert row.permuted == 0.1 and row.uniform is None and row.auprc == 0.4 and row.aopc is None
    assert row.jsd == 0.6 and row.lost == pytest.approx(0.2)
    assert (
        row_of_audit_line(line, "unfrozen", 1.0).jsd is None
        and row_of_audit_line(line, "frozen", 2.0).jsd is None
    )
    assert (line.data, line.name, line.seed, line.texts) == ("sst", "x", 3, 7)
    assert AuditLine.from_dict(json.loads(json.dumps(line.to_dict()))) == line


def rows_of(*entropies):
    return [AuditRow(entropy_gradient=entropy) for entropy in entropies]


def test_the_correlation_along_lambda():
    axis = MethodAxis("λ", {"λ = -1": -1.0, "λ = 0": 0.0, "λ = 0.9": 0.9})
    rows = {
        "softmax": rows_of(0.9),
        "λ = -1": rows_of(0.5, 0.6),
        "λ = 0": rows_of(0.6, 0.7),
        "λ = 0.9": rows_of(0.7, None),
    }
    found = correlation_with_lambda(rows, axis)
    assert "Over 5 models" in found[0] and "+0.8" in found[0]
    lams, values = [-1, -1, 0, 0, 0.9], [0.5, 0.6, 0.6, 0.7, 0.7]
    assert f"{np.corrcoef(lams, values)[0, 1]:+.2f} (Pearson)" in found[0]
    assert correlation_with_lambda({"λ = 0": rows_of(0.1), "other": rows_of(0.2)}, axis) == []


def test_words_alone_are_drawn_of_models_that_agree(tmp_path):
    def shown(words, said, *values):
        flat = (0.5,) * len(words)
        return (
            ShownText(
                tuple(words),
                attention=flat,
                probability=values,
                gradient=flat,
                predicted=said,
                label=said,
            ),
        )

    texts = {
        "base": shown(["a", "dud"], "no", 0.5, 0.9),
        "tying": shown(["a", "dud"], "no", 0.5, 0.7),
        "mlm": shown(["a", "dud"], "yes", 0.6, 0.8),
    }
    lines = [
        line_of(audit_of(texts=texts[name]), data, f"additive-{name}", seed)
        for data in ("sst", "ag", "20news", "imdb")
        for name in texts
        for seed in (0, 1)
    ]
    assert ["shown" in line for line in lines[:2]] == [True, False]
    (tmp_path / LINES).write_text("".join(json.dumps(line) + "\n" for line in lines))
    suite, outcomes = reproduce("P3-table3", models={"audits": str(tmp_path)})
    evaluation = outcomes[0].evaluation
    assert evaluation.curves == {"alone_curve": {"base": [0.5, 0.9], "tying": [0.5, 0.7]}}
    assert "The picture's text is predicted 'no': a dud." in evaluation.notes
    draw_curves(evaluation, suite.figures, tmp_path / "x.svg")
    assert (
        evaluation.settings["words"] == ["a", "dud"] and (tmp_path / "x.svg").stat().st_size > 5000
    )


def test_adversaries_are_drawn_over_all_their_weights_once(tmp_path):
    def against(seed: int) -> tuple[Adversary, ...]:
        adversaries = []
        for kind, far in (("frozen", 0.2), ("unfrozen", 0.0)):
            for lam in (0.1, 0.3, 1.0, 3.0, 10.0):
                tvd = lam / 10 + seed / 10 + far
                adversaries.append(
                    Adversary(kind, lam=lam, jsd=lam / 20, tvd=tvd, accuracy=0.7, f1=0.7)
                )
        return tuple(adversaries)

    lines = [
        line_of(audit_of(adversaries=against(seed)), "sst", f"swept-{name}", seed)
        for name in ("base", "tying")
        for seed in (0, 1)
    ]
    (tmp_path / LINES).write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = tmp_path / "page.md"
    result = CliRunner().invoke(
        app,
        ["reproduce", "P3-figure1", "--model", f"audits={tmp_path / LINES}", "--page", str(page)],
    )
    assert result.exit_code == 0, result.output
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["P3-figure1.SST-10.svg"]
    assert page.read_text().count("![") == 1
    last = reproduce("P3-figure1", models={"audits": str(tmp_path)})[1][-1].evaluation
    assert last.curves["tvd_curve"]["base, frozen"] == pytest.approx([0.26, 0.28, 0.35, 0.55, 1.25])
    assert last.settings["across"]["tvd_curve"]["base, frozen"] == pytest.approx(
        [0.005, 0.015, 0.05, 0.15, 0.5]
    )
    assert np.isnan(last.curves["tvd_curve"]["mlm, frozen"]).all()


def test_a_suite_reads_what_there_is(tmp_path):
    lines = [line_of(audit_of(), name, "additive-base", 0) for name in ("ag", "20news", "imdb")]
    for name, first, seeds in (("additive-base", 0.05, 3), ("additive-tying", 0.2, 2)):
        for seed in range(seeds):
            lines.append(line_of(audit_of(permuted_drop=first + seed / 100), "sst", name, seed))
    # the last line was being written when somebody pulled the plug
    (tmp_path / LINES).write_text(
        "".join(json.dumps(line) + "\n" for line in lines) + '{"data": "sst"'
    )
    suite, outcomes = reproduce("P3-table1-additive", models={"audits": str(tmp_path)})
    alone = outcomes[1].evaluation.cell("base", "f1")
    assert (
        f" {alone.value:.3f} |" in suite_section(suite, outcomes, "x") and alone.low is None
    )  # one seed has no interval
    first = outcomes[0].evaluation
    assert first.cell("base", "permuted").value == pytest.approx(0.06)
    assert first.cell("tying", "permuted").value == pytest.approx(0.205)
    assert "Not made yet: concat, residual, mlm." in first.notes
    verdict = outcomes[0].verdicts[0][1]
    assert verdict.difference == pytest.approx(0.15) and verdict.count == 2
    assert read_recipe_lines(tmp_path) == read_recipe_lines(tmp_path / LINES)
    (tmp_path / "some.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[3:]))
    suite, outcomes = reproduce(
        "P3-table1-additive", models={"audits": str(tmp_path / "some.jsonl")}
    )
    assert [outcome.evaluation is not None for outcome in outcomes] == [True, False, False, False]
    assert suite_section(suite, outcomes, "x").count("Not run: it needs") == 3
    assert "So does masked language modelling (permuted): not measured on SST." in suite_section(
        suite, outcomes, "x"
    )
    alone = outcomes[0].verdicts[0][1]
    both = [verdict for _, verdict in outcomes[0].verdicts if verdict.count]
    assert len(both) == 1 and alone.corrected == alone.p  # what was not measured is no test
    with pytest.raises(
        InputError, match="holds no audits of sst: make them with recipes/attention.py"
    ):
        reproduce("P3-table1-additive", models={"audits": str(tmp_path / "none")})
    (tmp_path / LINES).write_text("[]\n")
    with pytest.raises(InputError, match="has a damaged line"):
        reproduce("P3-table1-additive", models={"audits": str(tmp_path)})
