"""The majority-class language: probabilities that are counted, and a model that is taught it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raison.studies.reproduce.run_suite import reproduce
from tests.helpers.paths import RECIPES


def test_the_true_probability_of_a_majority_is_counted():
    from itertools import product

    from raison.studies.reproduce.experiments import majority_language as study

    for kept, ones in ((17, 9), (17, 8), (13, 5), (12, 8), (10, 5)):
        rest = list(product((0, 1), repeat=17 - kept))
        share = np.mean([ones + sum(each) > 8 for each in rest])
        assert study.true_probability_of_majority(kept, ones) == pytest.approx(share)
    curve = study.calibration_curve_of_majority_belief(
        truths=[0.0, 0.04, 1.0], beliefs=[0.1, 0.3, 0.8]
    )
    assert curve[0] == pytest.approx(0.2) and curve[-1] == pytest.approx(0.8)
    assert curve[5] == pytest.approx(0.5)  # the middle of its neighbours


def test_the_majority_language_is_taught_and_measured(tmp_path):
    """A short training from scratch: the folder opens, and a model that knows nothing yet is told so."""
    import subprocess
    import sys
    from itertools import product

    import raison
    from raison.core.records import Example
    from raison.studies.reproduce.experiments import majority_language as study

    recipe = RECIPES / "majority.py"
    told = [
        sys.executable,
        str(recipe),
        "--out",
        str(tmp_path / "m"),
        "--steps",
        "2",
        "--batch",
        "8",
    ]
    done = subprocess.run([*told, "--keep", "bernoulli(p=0.5)"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    _, outcomes = reproduce(
        "P0-figure3", models={"majority-standard": str(tmp_path / "m")}, limit=6
    )
    found = outcomes[0].evaluation
    assert outcomes[1].evaluation is None
    model = raison.load(str(tmp_path / "m"))
    one = model.tokenizer.convert_tokens_to_ids("1")
    errors, losses = [], []
    for sentence in study.majority_sentences(6, 0):
        text, kept = sentence.text, sentence.kept
        bits = [int(bit) for bit in text.split()[:17]]
        dropped = {1 + k for k in range(17) if not kept[k]}  # <s> is the first token
        there = torch.tensor([[k for k in range(19) if k not in dropped]])
        ids = torch.tensor([model.encode([Example(text)])[0].ids.tolist()])
        with torch.no_grad():
            belief = (
                model.hf(input_ids=ids[:, there[0]], position_ids=there)
                .logits[0, -1]
                .softmax(-1)[one]
            )
            whole = model.hf(input_ids=ids).logits[0].log_softmax(-1)
        known = sum(bit for bit, keep in zip(bits, kept, strict=True) if keep)
        rest = [sum(each) for each in product((0, 1), repeat=len(dropped))]
        errors.append(abs(float(belief) - np.mean([known + more > 8 for more in rest])))
        after = [*ids[0, 1:].tolist(), model.tokenizer.eos_token_id]
        losses.append(-np.mean([float(whole[k, token]) for k, token in enumerate(after)]))
    np.testing.assert_allclose(found.cell("P(1)", "error").each, errors, atol=1e-5)
    np.testing.assert_allclose(found.cell("P(1)", "loss").each, losses, atol=1e-5)
    assert "the optimum is 1.8025" in found.notes[0]
