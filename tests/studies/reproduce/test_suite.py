"""Suites of the papers: all that they name exists."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError
from raison.core.registry import metrics
from raison.methods.base import Method
from raison.studies.method_lists import method_list
from raison.studies.reproduce.experiment import experiments
from raison.studies.reproduce.suite import suite_named, suites

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


def test_unknown_suites_are_refused():
    with pytest.raises(InputError, match="Did you mean 'P4-table1'"):
        suite_named("P4-table11")
