"""Methods with several seeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raison.studies.evaluate_methods import evaluate
from raison.studies.reproduce.method_runs import measure_methods
from raison.studies.reproduce.run_suite import choose_texts_of_suite_run
from raison.studies.reproduce.suite import suite_named


def test_several_seeds_are_averaged_text_by_text(sentiment, data_dir):
    suite = suite_named("P4-table1")
    small = {title: suite.methods[title] for title in ("Random", "Ours")}
    chosen = replace(suite, methods=small, seeds={"Random": 2}, claims=())
    examples = choose_texts_of_suite_run(sentiment, suite.runs[0], "sst2", 3, data_dir).examples
    found, spread = measure_methods(chosen, sentiment, examples, suite.runs[0], 0)
    assert found.methods == ("Random", "Ours")
    how = {"target": "gold", "units": "token", "removal": "mask_token"}
    runs = [
        evaluate(sentiment, examples, [small["Random"]], ["aopc", "lodds"], seed=s, **how)
        for s in (0, 1)
    ]
    each = np.mean([run.cells[0].each for run in runs], axis=0)
    np.testing.assert_allclose(found.cell("Random", "aopc").each, each)
    assert spread["Random", "aopc"] == pytest.approx(
        np.std([run.cells[0].value for run in runs], ddof=1)
    )
