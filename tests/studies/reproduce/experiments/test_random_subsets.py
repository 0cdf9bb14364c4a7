"""Losses on random parts are those of the plain model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from raison.core.records import Example
from raison.studies.random_parts import random_targets
from raison.studies.reproduce.experiment import Trial, experiments
from raison.studies.reproduce.suite import suites
from raison.testing import tiny_model


def test_losses_on_parts_are_those_of_the_plain_model(data_dir):
    suite = suites()["P0-subsets"]
    model = tiny_model("gpt2", "causal", double=False)
    run = replace(suite.runs[0], settings={"length": 24, "places": 2, "sizes": [1, 4]})
    found = experiments["subsets"](Trial(model, suite.methods, run, 3, 0, data_dir))
    assert [column.key for column in found.columns] == ["of_1", "of_4", "all"]
    (encoding,) = model.encode([Example(found.texts[1].text)])
    targets = random_targets(model, encoding, 2, np.random.default_rng([0, 1]))
    with torch.no_grad():
        logs = model.hf(input_ids=torch.tensor(encoding.ids[None].copy())).logits.log_softmax(-1)[0]
    literal = [-float(logs[target.positions[0] - 1, target.ids[0]]) for target in targets]
    assert found.cell("log f", "all").each[1] == pytest.approx(np.mean(literal), abs=1e-4)
    assert (
        f"{np.exp(found.cell('log f', 'of_4').value):,.1f} given 4 random tokens" in found.notes[0]
    )
