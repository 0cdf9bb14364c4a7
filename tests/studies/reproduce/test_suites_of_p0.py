"""The suites of P0 name models, methods and numbers that exist."""

from __future__ import annotations

import pytest

from raison.studies.method_lists import method_list
from raison.studies.reproduce.experiment import experiments
from raison.studies.reproduce.experiments import (
    distractor_sentences,
    gold_alignments,
    last_words_of_lambada,
    long_range_agreement,
    search_cost,
)
from raison.studies.reproduce.suite import suites

SUITES = {
    name: suite
    for name, suite in suites().items()
    if suite.experiment in ("agreement", "lambada", "cost")
}
SUITES |= {
    name: suite
    for name, suite in suites().items()
    if suite.experiment in ("distractors", "alignments")
}
ROWS = {
    "agreement": long_range_agreement.AgreementRow,
    "lambada": last_words_of_lambada.LambadaRow,
    "cost": search_cost.CostRow,
    "distractors": distractor_sentences.DistractorRow,
    "alignments": gold_alignments.AlignmentRow,
}


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_names_what_exists(name):
    suite = SUITES[name]
    assert suite.experiment in experiments
    assert len(method_list(list(suite.methods.values()))) == len(suite.methods)
    keys = {column.key for column in ROWS[suite.experiment].columns()}
    for claim in suite.claims:
        assert {claim.first, claim.second} <= set(suite.methods)
        assert claim.key in keys
    names = {run.name for run in suite.runs}
    for claim in suite.across:
        assert {claim.first.run, claim.second.run} <= names
        assert {claim.first.method, claim.second.method} <= set(suite.methods)
        assert claim.key in keys
    for run in suite.runs:
        assert set(run.paper) <= keys
        assert all(set(values) <= set(suite.methods) for values in run.paper.values())


def test_the_tables_of_p0_are_there():
    assert {
        "P0-table1", "P0-table2", "P0-table2-probability", "P0-table3", "P0-table4", "P0-table6",
    } <= set(SUITES)  # fmt: skip
