"""What a rationale costs is what ran for it."""

from __future__ import annotations

from raison.api import build_search
from raison.core.records import Example
from raison.models.protocol import TargetSpec
from raison.studies.reproduce.experiment import experiments
from raison.studies.reproduce.target_rationales import (
    TargetInText,
    batch_of_targets,
    find_rationales_of_targets,
)
from raison.testing import tiny_model
from tests.helpers.copier import Copier
from tests.helpers.trials import trial_of


def test_cost_counts_what_runs(colours):
    methods = {"exhaustive": "exact", "masked": "greedy(sufficient=argmax)", "sparse": "greedy"}
    found = experiments["cost"](trial_of(Copier(), methods, removal={"masked": "mask"}))
    assert found.cell("exhaustive", "proved").value == 1.0
    assert all(value > 0 for title in methods for value in found.cell(title, "cpu_seconds").each)
    assert {found.cell(title, "length").value for title in methods} == {2.0}


def test_cost_of_a_real_model_is_that_of_its_meter():
    from raison.models.runner.meter import metered

    model = tiny_model("gpt2", "causal")
    (encoding,) = model.encode([Example("the cat sat on the mat and the dog")])
    ((longer, target),) = model.resolve_targets(
        encoding, TargetSpec(target=None, output="log_prob")
    )
    aims = [TargetInText(longer, target)]
    masked = find_rationales_of_targets(
        trial_of(model), "masked", "greedy", aims, removal="mask", group=1
    )
    sparse = find_rationales_of_targets(trial_of(model), "sparse", "greedy", aims, group=1)
    assert masked.rationales == sparse.rationales
    assert sparse.costs[0].tokens < masked.costs[0].tokens
    batch = batch_of_targets(trial_of(model), aims, None)
    with metered() as meter:
        build_search("greedy")(model, batch)
    assert meter.tokens == sparse.costs[0].tokens
