"""Word dropout: what is drawn, and who may look at whom."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from raison.core.errors import InputError, UnknownName
from raison.training.seeds import seeded_generator
from raison.training.word_dropout import (
    DropoutSide,
    Keeps,
    attention_pairs_after_dropout,
    draw_keeps,
    keep_rule_of,
    keep_rules,
)


def sample(rule: str, times: int = 4000, length: int = 4, heads: int = 2) -> torch.Tensor:
    """[times h t]"""
    return keep_rule_of(rule).draw(
        torch.ones(times, length, dtype=torch.bool), heads, seeded_generator(0)
    )


def test_uniform_length_draws_every_size_and_every_set_alike():
    kept = sample("uniform_length", 20_000)
    assert torch.equal(kept[:, 0], kept[:, 1])  # one set for all heads
    sizes = Counter(kept[:, 0].sum(1).tolist())
    assert set(sizes) == {0, 1, 2, 3, 4}  # none and all are drawn too
    assert all(abs(count / 20_000 - 1 / 5) < 0.015 for count in sizes.values())
    pairs_of_two = Counter(
        tuple(row.nonzero().flatten().tolist()) for row in kept[:, 0] if row.sum() == 2
    )
    assert len(pairs_of_two) == 6
    assert all(abs(count / sizes[2] - 1 / 6) < 0.03 for count in pairs_of_two.values())


def test_heads_can_draw_sets_of_their_own():
    kept = sample("uniform_length(heads=each)")
    assert not torch.equal(kept[:, 0], kept[:, 1])
    assert torch.equal(kept[:, 0].sum(1), kept[:, 1].sum(1))  # of the same size
    for rule in ("inverse_length", "bernoulli(heads=each)"):
        first, second = sample(rule).unbind(1)
        assert abs(np.corrcoef(first.flatten(), second.flatten())[0, 1]) < 0.05
    for rule in ("inverse_length(heads=alike)", "bernoulli"):
        first, second = sample(rule).unbind(1)
        assert torch.equal(first, second)


def test_inverse_length_keeps_one_token_on_average_and_often_none():
    kept = sample("inverse_length", 20_000, length=8)[:, 0]
    assert abs(kept.sum(1).double().mean() - 1) < 0.03
    assert abs((kept.sum(1) == 0).double().mean() - (7 / 8) ** 8) < 0.015


def test_bernoulli_keeps_a_share():
    assert abs(sample("bernoulli(p=0.2)", 10_000).double().mean() - 0.2) < 0.01
    assert sample("bernoulli(p=1)").all()


def test_padding_is_never_kept_and_fixed_tokens_always():
    real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2]).repeat(500, 1)
    fixed = torch.arange(5) < 1
    for rule in ("uniform_length", "inverse_length", "bernoulli"):
        keep = DropoutSide(real, 3, fixed).keep(keep_rule_of(rule), seeded_generator(1))
        assert keep.shape == (1000, 3, 5)
        assert keep[:, :, 0].all() and not keep[1::2, :, 3:].any()
        assert 0 < keep[1::2, :, 1:3].double().mean() < 1  # not the same for the rest
    sizes = (
        DropoutSide(real, 1, fixed)
        .keep(keep_rule_of("uniform_length"), seeded_generator(2))[1::2, 0, 1:]
        .sum(1)
    )
    assert set(sizes.tolist()) == {0, 1, 2}  # of its own length


def test_draws_are_a_function_of_seed_and_step():
    side = DropoutSide(torch.ones(3, 9, dtype=torch.bool), 2)

    def draw(seed, step):
        return draw_keeps(keep_rule_of("uniform_length"), 1.0, [side], seed=seed, step=step)

    torch.manual_seed(1)
    first = draw(0, 5).target
    torch.manual_seed(2)
    assert torch.equal(first, draw(0, 5).target)
    assert not torch.equal(first, draw(0, 6).target)
    assert not torch.equal(first, draw(1, 5).target)


def test_coins():
    sides = [DropoutSide(torch.ones(1, 6, dtype=torch.bool), 1)] * 2
    rule = keep_rule_of("uniform_length")

    def seen(how, mix=0.5, sides=sides):
        found = (
            draw_keeps(rule, mix, sides, seed=0, step=step, coins=how) or Keeps()
            for step in range(400)
        )
        return Counter((keeps.target is not None, keeps.source is not None) for keeps in found)

    apart, one = seen("apart"), seen("one")
    assert len(apart) == 4 and all(abs(count - 100) < 40 for count in apart.values())  # independent
    assert set(one) == {(True, True), (False, False)} and abs(one[True, True] - 200) < 45
    assert seen("apart", 1.0) == {(True, True): 400}
    decoder = seen("apart", 0.5, sides[:1])
    assert set(decoder) == {(True, False), (False, False)} and abs(decoder[True, False] - 200) < 45
    assert draw_keeps(keep_rule_of("none"), 1.0, sides, seed=0, step=0) is None


def test_rules_that_do_not_exist():
    assert set(keep_rules) == {"uniform_length", "inverse_length", "bernoulli", "none"}
    with pytest.raises(UnknownName, match="no keep rule 'uniform'.*Did you mean 'uniform_length'"):
        keep_rule_of("uniform")
    with pytest.raises(InputError, match="p is a number above 0 and at most 1"):
        keep_rule_of("bernoulli(p=2)")
    with pytest.raises(InputError, match="heads is alike or each"):
        keep_rule_of("uniform_length(heads=some)")
    assert str(keep_rule_of("bernoulli(p=0.3)").spec()) == "bernoulli(p=0.3)"


def test_pairs_follow_the_definition():
    keep = sample("bernoulli(heads=each)", 5, 7, 3)
    for kind in ("self", "decoder", "encoder", "cross"):
        found = attention_pairs_after_dropout(keep, kind, 7)
        for b, h, i, j in np.ndindex(5, 3, 7, 7):
            kept = bool(keep[b, h, j])
            expected = kept if kind == "cross" else kept or i == j
            assert bool(found[b, h, i, j]) == (
                expected and (kind in ("encoder", "cross") or j <= i)
            )
