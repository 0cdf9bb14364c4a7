"""Targets with and without a contrast in one call."""

from __future__ import annotations

import numpy as np

import raison
from raison.models.protocol import Question, TargetSpec
from raison.testing import tiny_model

TEXT = "The old town lies on a hill"


def test_targets_with_and_without_a_contrast_in_one_call():
    model = tiny_model("bert", "classification")
    encoding = model.encode([raison.Example(TEXT)])[0]
    keep = np.ones((1, len(encoding)), bool)
    plain, against = (
        model.resolve_targets(encoding, TargetSpec(target=1, contrast=c))[0][1] for c in (None, 2)
    )
    together = model.score([Question(encoding, plain, keep), Question(encoding, against, keep)])
    alone = [model.score([Question(encoding, t, keep)])[0] for t in (plain, against)]
    for a, b in zip(together, alone, strict=True):
        assert a.value.tolist() == b.value.tolist() and a.margin.tolist() == b.margin.tolist()
