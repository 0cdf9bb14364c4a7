"""What single tokens say: logits that make the logit of the text."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.metrics.attention import (
    permuted_attention,
    pooled_logits,
    probability_from_token_logits,
    token_logits,
    uniform_attention,
)
from tests.helpers.random_arrays import sparse


def test_logits_of_tokens_make_the_logit_of_the_text(generator):
    states, weight, bias = (
        generator.normal(size=(2, 7, 5)),
        generator.normal(size=(3, 5)),
        generator.normal(size=3),
    )
    attention = sparse(generator, 2, 7)
    own = np.stack(
        [
            weight @ sum(a * h for a, h in zip(attention[i], states[i], strict=True)) + bias
            for i in (0, 1)
        ]
    )
    np.testing.assert_allclose(pooled_logits(attention, token_logits(states, weight, bias)), own)
    # a binary decoder has one logit
    single = pooled_logits(attention, token_logits(states, weight[0], bias[0]))
    np.testing.assert_allclose(single, own[:, 0])
    with pytest.raises(InputError, match="add up to 1"):
        pooled_logits(2 * attention, token_logits(states, weight, bias))


def test_same_states_make_attention_indifferent(generator):
    states = np.tile(generator.normal(size=5), (7, 1))
    attention = sparse(generator, 7)
    logits = token_logits(states, generator.normal(size=5), 0.3)
    own = pooled_logits(attention, logits)
    np.testing.assert_allclose(pooled_logits(uniform_attention(np.ones(7)), logits), own)
    np.testing.assert_allclose(pooled_logits(permuted_attention(attention, seed=1), logits), own)
    assert probability_from_token_logits(logits, 1) == pytest.approx(1 / (1 + math.exp(-own)))


def test_probability_of_tokens():
    logits = [0.0, 2.0, -1.0, 50.0]
    each = [1 / (1 + math.exp(-x)) for x in logits]
    assert probability_from_token_logits(logits, 1) == pytest.approx(np.mean(each))
    assert probability_from_token_logits(logits, 0) == pytest.approx(1 - np.mean(each))
    assert probability_from_token_logits(logits, 1, [1, 1, 1, 0]) == pytest.approx(
        np.mean(each[:3])
    )
    table = np.array([[0.0, 1.0, 2.0], [3.0, -1.0, 0.0]])
    soft = np.exp(table) / np.exp(table).sum(1, keepdims=True)
    assert probability_from_token_logits(table, 2) == pytest.approx(soft[:, 2].mean())
    two = np.stack([np.zeros(4), logits], 1)
    assert probability_from_token_logits(two, 1) == pytest.approx(
        probability_from_token_logits(logits, 1)
    )
    assert probability_from_token_logits([-1e4, 1e4], 1) == 0.5  # no overflow
    assert math.isnan(probability_from_token_logits(logits, 1, [0, 0, 0, 0]))
    with pytest.raises(InputError, match="from 0 to 1"):
        probability_from_token_logits(logits, 2)
