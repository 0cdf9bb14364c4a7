"""A suite runs, is written into a page, and refuses models that it does not know."""

from __future__ import annotations

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.studies.reproduce.reproduction_page import page_with_section, suite_section
from raison.studies.reproduce.run_suite import reproduce


def test_a_suite_runs_and_is_written_once(sentiment, data_dir, tmp_path):
    suite, outcomes = reproduce("P4-table3", limit=4, data_dir=data_dir)
    first = outcomes[0].evaluation
    assert first.settings["limit"] == 4
    assert outcomes[1].evaluation is None  # its model has to be made
    written = suite_section(suite, outcomes, "raison reproduce P4-table3")
    assert "0.438" in written
    assert "recipes/finetune.py --task qqp" in written
    page = tmp_path / "page.md"
    page.write_text(page_with_section(page, suite, written))
    page.write_text(page_with_section(page, suite, written))
    assert page.read_text().count("## P4-table3") == 1
    verdicts = outcomes[0].verdicts
    assert len(verdicts) == 2
    each = [np.array(first.cell(m, "aopc").each) for m in ("full", "without positional")]
    assert verdicts[0][1].difference == pytest.approx((each[0] - each[1]).mean())


def test_a_misspelt_model_is_refused():
    """It was passed over, and the run that wanted it was reported as not run."""
    with pytest.raises(
        InputError, match="no model that is called 'qpq': its models are sentiment, qqp"
    ):
        reproduce("P4-table3", models={"qpq": "folder"}, limit=2)
