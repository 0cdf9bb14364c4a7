"""Scores of our methods beside those of literal code, on two tiny models."""

from __future__ import annotations

import numpy as np

import raison
from raison.testing import FAMILIES
from raison.testing.model_contract import TEXTS

PAIRS = [(family, task) for family, tasks in FAMILIES.items() for task in tasks]


TASKS = {"bert": "classification", "gpt2": "causal"}


TEXT = TEXTS[0]


def asked(model):
    """Arguments of the literal functions, and the target's value that they differentiate."""
    encoding, target = model.resolve_targets(model.encode([raison.Example(TEXT)])[0])[0]
    ids = encoding.ids.tolist()
    types = None if encoding.types is None else encoding.types.tolist()
    return ids, target.ids[0], dict(types=types), dict(value=target.output)


def scores(model, spec, **request):
    found = raison.explain(model, TEXT, spec, units="token", **request)
    return np.array(found.parts["token_scores"]), found


def near(ours, theirs, tolerance=1e-9):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    scale = max(1e-12, np.abs(theirs).max())
    assert np.abs(ours - theirs).max() <= tolerance * scale, np.abs(ours - theirs).max() / scale
    assert np.abs(theirs).max() > 0
