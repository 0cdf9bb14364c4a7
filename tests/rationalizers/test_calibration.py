"""The asked share of tokens is reached."""

from __future__ import annotations

import pytest
import torch

from raison.rationalizers.calibration import calibrate_selector
from raison.rationalizers.config import pruning_levels
from raison.rationalizers.losses import kept_shares_for_sparsity
from tests.helpers.small_rationalizers import (
    TEXTS,
    batch_of,
    built,
)


@pytest.mark.parametrize("pair", [False, True])
def test_calibration_reaches_the_asked_share(pair):
    shares_ = (0.3, 0.5) if pair else (0.3,)
    model, tokenizer = built(
        "bert", predictor="whole", blocks=2, pruning=2, sparsity=shares_, never_empty=False
    )
    texts = [" ".join(TEXTS[k % 3 :] + TEXTS[: k % 3]) for k in range(6)]
    inputs = batch_of(tokenizer, texts, [TEXTS[k % 3] for k in range(6)] if pair else None)
    with torch.no_grad():
        model.selector.linear.bias.copy_(torch.tensor([2.0, -2.0]))  # would keep next to nothing
        model.selector.linear.weight.mul_(0.1)
    calibrate_selector(model, lambda: [inputs])
    told = model(**inputs)
    for number, mask in enumerate(told.masks):
        for text, share in enumerate(kept_shares_for_sparsity(mask, told, len(shares_))):
            assert float(share) == pytest.approx(pruning_levels(shares_[text], 2)[number], abs=0.03)
