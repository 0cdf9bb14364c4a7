"""How alike token states are, beside the states themselves."""

from __future__ import annotations

import numpy as np
import torch

from raison.studies.reproduce.experiments import state_homogeneity as study
from raison.studies.reproduce.run_suite import reproduce
from raison.testing import tiny_hf
from tests.helpers.small_classifiers import reviews


def test_homogeneity_is_told_of_the_first_a_middle_and_the_last_block(tmp_path, monkeypatch):
    hf, tokenizer = tiny_hf("bert", "classification")
    encoder = hf.bert.eval()
    texts = reviews(3)
    monkeypatch.setattr(study, "encoder_for_homogeneity", lambda place, name: (encoder, tokenizer))
    monkeypatch.setattr(study, "open_dataset", lambda *given: type("Read", (), {"examples": texts}))
    found = reproduce("P1-homogeneity", models={"rationalizers": str(tmp_path)}, limit=3)[1][
        0
    ].evaluation
    spreads, cosines = [], []
    for example in texts:
        with torch.no_grad():
            inputs = tokenizer(example.text, return_tensors="pt")
            layers = encoder(**inputs, output_hidden_states=True).hidden_states
        words = [states[0, 1:-1].numpy() for states in layers]
        spreads.append([np.trace(np.cov(each.T, bias=True)) for each in words])
        unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in words]
        cosines.append([(each @ each.T)[~np.eye(len(each), dtype=bool)].mean() for each in unit])
    for name, rows in (("spread", np.array(spreads)), ("cosine", np.array(cosines))):
        for where, block in (("first", 1), ("middle", 1), ("last", 2)):  # of two blocks
            cell = found.cell("PLMR", f"{name}_{where}")
            np.testing.assert_allclose(cell.each, rows[:, block], rtol=1e-6)
        np.testing.assert_allclose(found.curves[f"{name}_curve"]["PLMR"], rows.mean(0), rtol=1e-6)
