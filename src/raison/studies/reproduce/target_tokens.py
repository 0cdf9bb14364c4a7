"""The tokens of a written target, one by one: as targets of their own, and whether the model would write them."""

from __future__ import annotations

import numpy as np

from raison.core.records import Encoding, Target
from raison.models.protocol import Model, Question

__all__ = ["is_own_token", "token_targets"]


def is_own_token(model: Model, encoding: Encoding, target: Target) -> np.ndarray:
    """[m] whether each token of a target is the model's first choice after the text and the target's tokens before."""
    (scored,) = model.score([Question(encoding, target, np.ones((1, len(encoding)), bool))])
    return np.asarray(scored.margin[0] > 0)


def token_targets(target: Target, encoding: Encoding) -> list[Target]:
    """Every token of a written target as a target of its own."""
    targets = []
    for token, position in zip(target.ids, target.positions, strict=True):
        text = encoding.tokens[position]
        targets.append(Target("token", (token,), (position,), text, target.output))
    return targets
