"""Masks of attention heads: which heads are syntactic or positional, read from `raison heads` (P4 section 4.2).

    synt: α_k − max λ_k > ξ_synt for some relation k       pos: max_r α_r > ξ_pos

The file holds statistics, so thresholds, kinds and `top` are choices at use. A row is an attention map, in the order of
`Trace.maps`: the blocks of a model, or those of an encoder and then a decoder's own and cross-attention as they are
called. P4 adds the two masks up, which counts a head of both kinds twice; here they stay apart, and their union is the
mask.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from raison.core.artifact import Artifact
from raison.core.errors import InputError
from raison.core.parameters import check_integer

__all__ = [
    "KINDS_OF_HEADS",
    "check_head_choice",
    "corrupt_mask",
    "head_masks",
    "head_strengths",
    "random_masks",
]

KINDS_OF_HEADS = ("synt", "pos", "both")


def head_masks(
    artifact: Artifact,
    kinds: str = "both",
    top: int = 0,
    syntactic: float = 0.1,
    positional: float = 0.8,
) -> tuple[np.ndarray, np.ndarray]:
    """(synt, pos), each Bool[maps, heads]: heads above the thresholds, and the best `top` of every map besides.

    Small models have few heads above the thresholds, and blocks without any. With `top=k` a map that has fewer than k
    heads of a kind gets the best k of that kind: by max_k (α_k − max λ_k) for synt, by max_r α_r for pos; of equal
    heads the first. So a map has at least k heads of each kind that is asked for, and none of what was not measured
    there (no tree says what a decoder's own words depend on).
    """
    check_head_choice(kinds, top, syntactic, positional)
    syntactic_strength, positional_strength = head_strengths(artifact)
    syntactic_mask = np.zeros(syntactic_strength.shape, bool)
    if kinds != "pos":
        syntactic_mask = strongest_heads(syntactic_strength, syntactic, top)
    positional_mask = np.zeros(positional_strength.shape, bool)
    if kinds != "synt":
        positional_mask = strongest_heads(positional_strength, positional, top)
    return syntactic_mask, positional_mask


def check_head_choice(kinds: str, top: int, syntactic: float, positional: float) -> None:
    """Refuse a choice of heads that means nothing."""
    if kinds not in KINDS_OF_HEADS:
        known = ", ".join(KINDS_OF_HEADS)
        raise InputError(f"The kinds of heads are {known}, not {kinds!r}.")
    check_integer("top", top, 0)
    check_head_share("syntactic", syntactic)
    check_head_share("positional", positional)


def head_strengths(artifact: Artifact) -> tuple[np.ndarray, np.ndarray]:
    """What heads are judged by, [maps, heads] each: max_k (α_k − max λ_k) and max_r α_r; -inf: not measured."""
    try:
        return read_strengths(artifact.data)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(
            f"This file of heads is not complete ({error}): make it anew with `raison heads`."
        ) from None


def read_strengths(data: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """(syntactic, positional) strengths of a file's tables; `ValueError` and its like where it has none."""
    positional_table = data["positional"]
    positional = np.array(positional_table["alpha"], dtype=np.float64)
    syntactic = np.full(positional.shape, -np.inf)
    kinds = data["kinds"]
    with_trees = np.array([kind in data["parsed"] for kind in kinds])
    for relation in data["relations"]:
        pairs_of_relation = data["counts"][relation]
        if not pairs_of_relation:
            continue
        shares = data["alpha"][relation]
        alpha = np.array(shares, dtype=np.float64)
        if alpha.shape != positional.shape or not are_head_shares(alpha):
            maps = len(positional)
            raise ValueError(f"the shares of {relation} are no table of {maps} maps, from 0 to 1")
        largest_lambda = data["lambda_max"][relation]
        advantage = alpha - largest_lambda
        best = np.maximum(syntactic, advantage)
        syntactic[with_trees] = best[with_trees]

    is_table = positional.ndim == 2 and len(positional) == len(kinds)
    all_finite = np.isfinite(positional).all()
    some_missing = np.isnan(syntactic).any()
    if some_missing or not is_table or not all_finite or not are_head_shares(positional):
        raise ValueError("the tables do not fit each other")
    return syntactic, positional


def are_head_shares(numbers: np.ndarray) -> bool:
    """Whether no number is below 0 or above 1."""
    below = numbers.min() < 0
    above = numbers.max() > 1
    return not (below or above)


def strongest_heads(strength: np.ndarray, threshold: float, top: int) -> np.ndarray:
    """Bool[maps, heads]: those above the threshold, and the best `top` of every row."""
    above = strength > threshold
    strongest_first = np.argsort(-strength, axis=1, kind="stable")
    top_heads = strongest_first[:, :top]
    best = np.zeros(strength.shape, bool)
    np.put_along_axis(best, top_heads, True, axis=1)
    measured = np.isfinite(strength)
    best_measured = best & measured
    return np.asarray(above | best_measured)


def random_masks(
    synt: np.ndarray, pos: np.ndarray, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Two masks of the same sizes on heads drawn without replacement, wherever they are (P4's ablation).

    As many heads are of both kinds as before, so that the union has the same size too.
    """
    both = synt & pos
    either = synt | pos
    of_both_kinds = int(both.sum())
    of_synt = int(synt.sum())
    of_either = int(either.sum())
    shuffled = generator.permutation(synt.size)
    drawn = shuffled[:of_either]

    # the first of those drawn are of both kinds, then come those that are only syntactic, then the others
    drawn_both = drawn[:of_both_kinds]
    drawn_synt = drawn[:of_synt]
    drawn_pos_only = drawn[of_synt:]
    new_synt = np.zeros(synt.size, bool)
    new_pos = np.zeros(pos.size, bool)
    new_synt[drawn_synt] = True
    new_pos[drawn_both] = True
    new_pos[drawn_pos_only] = True
    return new_synt.reshape(synt.shape), new_pos.reshape(pos.shape)


def corrupt_mask(mask: np.ndarray, rho: float, generator: np.random.Generator) -> np.ndarray:
    """The mask with a share `rho` of its zeros, rounded to whole heads, turned to ones (P4 Figure 4)."""
    check_head_share("rho", rho)
    zeros = np.flatnonzero(~mask)
    count = round(rho * len(zeros))
    shuffled = generator.permutation(zeros)
    turned = shuffled[:count]
    corrupted = np.array(mask)
    flat = corrupted.reshape(-1)  # the same memory
    flat[turned] = True
    return corrupted


def check_head_share(name: str, value: object) -> None:
    """Refuse what is not a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InputError(f"{name} is a number from 0 to 1, not {value}.")
