"""Which heads are chosen from statistics: thresholds, random masks, corruption."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.methods.head_masks import corrupt_mask, head_masks, head_strengths, random_masks


def test_thresholds_kinds_and_top(statistics):
    synt, pos = head_masks(statistics)
    assert np.argwhere(synt).tolist() == [[0, 2]] and np.argwhere(pos).tolist() == [[0, 0], [0, 3]]
    assert np.argwhere(head_masks(statistics, syntactic=0.05, positional=0.86)[1]).tolist() == [
        [0, 0]
    ]
    only, none = head_masks(statistics, "synt", top=2)
    assert not none.any() and only.sum(1).tolist() == [2, 2, 2]
    assert np.argwhere(only).tolist() == [
        [0, 0],
        [0, 2],
        [1, 0],
        [1, 1],
        [2, 0],
        [2, 1],
    ]  # ties: the first
    none, only = head_masks(statistics, "pos", top=1)
    assert not none.any() and np.argwhere(only).tolist() == [[0, 0], [0, 3], [1, 1], [2, 2]]
    both = head_masks(statistics, top=9)
    assert both[0].all() and both[1].all()


def test_what_was_not_measured_is_never_chosen(statistics):
    data = {**statistics.data, "kinds": ["encoder", "decoder", "cross"], "parsed": ["encoder"]}
    synt, pos = head_masks(replace(statistics, data=data), top=1)
    assert synt.any(1).tolist() == [True, False, False] and pos.any(1).all()
    assert np.isneginf(head_strengths(replace(statistics, data=data))[0][1:]).all()
    missing = {**statistics.data, "counts": {"nsubj": 0, "obj": 100}}
    assert not head_masks(replace(statistics, data=missing))[0].any()


def test_masks_refuse_nonsense(statistics):
    for wrong in (
        {"kinds": "all"},
        {"top": -1},
        {"top": 1.5},
        {"syntactic": -0.1},
        {"positional": 80},
    ):
        with pytest.raises(InputError):
            head_masks(statistics, **wrong)
    short = {**statistics.data, "alpha": {"nsubj": [[0.1]], "obj": [[0.1, 0.2]]}}
    for data in ({}, short, {k: v for k, v in statistics.data.items() if k != "lambda_max"}):
        with pytest.raises(InputError, match="not complete"):
            head_masks(replace(statistics, data=data))
    with pytest.raises(InputError):
        corrupt_mask(np.zeros((2, 2), bool), 1.5, np.random.default_rng(0))


def test_random_masks_have_the_same_sizes_and_no_favourites():
    generator = np.random.default_rng(0)
    synt, pos = np.zeros((2, 4, 5), bool)
    synt[0, :3] = synt[1, 1] = pos[0, 1:3] = pos[2, 2] = True  # two heads of both kinds
    total = np.zeros((4, 5))
    for _ in range(2000):
        one, other = random_masks(synt, pos, generator)
        assert (one.sum(), other.sum(), (one & other).sum()) == (4, 3, 2)
        total += one
    assert abs(total / 2000 - 4 / 20).max() < 0.04
    again = [random_masks(synt, pos, np.random.default_rng(7))[0] for _ in range(2)]
    assert (again[0] == again[1]).all()


def test_corruption_turns_zeros_only():
    generator = np.random.default_rng(0)
    mask = np.zeros((4, 5), bool)
    mask[1, :4] = True
    for rho, ones in ((0, 4), (0.25, 8), (0.5, 12), (1, 20)):
        found = corrupt_mask(mask, rho, generator)
        assert found.sum() == ones and found[mask].all() and mask.sum() == 4
    shares = np.mean([corrupt_mask(mask, 0.25, generator) for _ in range(2000)], axis=0)
    assert abs(shares[~mask] - 0.25).max() < 0.04
