"""Tiny models are the same everywhere, and may be changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import raison
from raison.testing import tiny_model
from raison.testing.model_contract import model_with_padding

TEXT = "The old town lies on a hill"


def test_tiny_models_are_the_same_in_every_process():
    import subprocess
    import sys

    code = (
        "from raison.testing import tiny_hf; "
        "print([(k, tiny_hf(k, 'classification')[1]('The old town').input_ids) for k in ('bert', 'albert', 'llama')])"
    )
    runs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
        for _ in range(2)
    }
    assert len(runs) == 1 and "albert" in runs.pop()


def test_examples_may_change_their_budget():
    model = tiny_model("bert", "classification")
    small = model_with_padding(model, "exact")
    small.budget = replace(model.budget, tokens=16)
    np.testing.assert_allclose(
        raison.explain(small, TEXT).scores, raison.explain(model, TEXT).scores, atol=1e-9
    )
