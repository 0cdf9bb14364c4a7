"""How alike token states are, and where an encoder is split by it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raison.rationalizers.batching import special_ids
from raison.rationalizers.homogeneity import Homogeneity, blocks_by_homogeneity, measure_homogeneity
from tests.helpers.small_rationalizers import (
    TEXTS,
    batch_of,
    encoder_of,
)


def test_homogeneity_is_the_formula():
    encoder, tokenizer = encoder_of("bert")
    inputs = batch_of(tokenizer)
    real = inputs["attention_mask"].bool() & ~torch.isin(
        inputs["input_ids"], torch.tensor(special_ids(tokenizer))
    )
    found = measure_homogeneity(encoder.eval(), [{**inputs, "real": real}])
    with torch.no_grad():
        layers = encoder(**inputs, output_hidden_states=True).hidden_states
    for number, states in enumerate(layers):
        spreads, cosines = [], []
        for row in range(len(TEXTS)):
            tokens = states[row][real[row]].numpy()
            spreads.append(np.trace(np.cov(tokens.T, bias=True)))
            unit = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
            every = unit @ unit.T
            cosines.append(every[~np.eye(len(tokens), dtype=bool)].mean())
        assert found.spread[number] == pytest.approx(np.mean(spreads))
        assert found.cosine[number] == pytest.approx(np.mean(cosines))
    assert found.texts == 3


def test_the_split_is_the_last_wide_block():
    alike = Homogeneity((90, 115, 107, 99, 107, 82, 40), (0,) * 7, 9)  # MiniLM
    assert blocks_by_homogeneity(alike, rest=True) == 4
    rising = Homogeneity((1, 2, 3, 4, 5), (0,) * 5, 9)
    assert (
        blocks_by_homogeneity(rising, rest=True) == 3
        and blocks_by_homogeneity(rising, rest=False) == 4
    )
