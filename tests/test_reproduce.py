"""Suites of the papers: they can be read, run, and written into a page."""

from __future__ import annotations

import json

import numpy as np
import pytest

from raison.errors import InputError
from raison.methods.base import Method
from raison.registry import metrics
from raison.studies.evaluate import method_list
from raison.studies.page import page_with, section
from raison.studies.reproduce import reproduce
from raison.studies.suite import suite_named, suites

SUITES = suites()


@pytest.mark.parametrize("name", SUITES)
def test_every_name_in_a_suite_exists(name):
    suite = SUITES[name]
    built = method_list(list(suite.methods.values()))
    assert all(isinstance(each, Method) for each in built)
    keys = {key for spec in suite.metrics for key in metrics.build(spec).keys}
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
    from raison.studies import reproduce as study

    suite = suite_named("P4-table1")
    small = {title: suite.methods[title] for title in ("Random", "Ours")}
    chosen = study.replace(suite, methods=small, seeds={"Random": 2}, claims=())
    examples, _, _ = study.chosen_texts(sentiment, suite.runs[0], "sst2", 3, data_dir)
    found, spread = study.measured(chosen, sentiment, examples, suite.runs[0], 0)
    assert found.methods == ("Random", "Ours")
    how = {"target": "gold", "units": "token", "removal": "mask_token"}
    runs = [study.evaluate(sentiment, examples, [small["Random"]], ["aopc", "lodds"], seed=s, **how) for s in (0, 1)]
    each = np.mean([run.cells[0].each for run in runs], axis=0)
    np.testing.assert_allclose(found.cell("Random", "aopc").each, each)
    assert spread["Random", "aopc"] == pytest.approx(np.std([run.cells[0].value for run in runs], ddof=1))


def test_heads_beside_a_model_are_its_heads(tmp_path, sentiment):
    import raison
    from raison.artifact import Artifact
    from raison.testing import tiny_hf

    hf, tokenizer = tiny_hf("bert", "classification", double=False)
    hf.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert "heads" not in raison.load(str(tmp_path)).offers
    (tmp_path / "heads.json").write_text(json.dumps({"kind": "heads", "data": {}}))
    found = raison.load(str(tmp_path))
    assert "heads" in found.offers
    assert Artifact.open(found.heads, "heads").kind == "heads"


def test_unknown_suites_are_refused():
    with pytest.raises(InputError, match="Did you mean 'P4-table1'"):
        suite_named("P4-table11")
