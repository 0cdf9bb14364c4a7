"""Which attention heads matter, read off an artifact of `raison heads` (P4 section 4.2).

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
from raison.core.spec import whole

__all__ = ["KINDS", "check_rule", "corrupted", "head_masks", "measured", "random_masks"]

KINDS = ("synt", "pos", "both")


def head_masks(
    artifact: Artifact, kinds: str = "both", top: int = 0, syntactic: float = 0.1, positional: float = 0.8
) -> tuple[np.ndarray, np.ndarray]:
    """(synt, pos), each Bool[maps, heads]: heads above the thresholds, and the best `top` of every map besides.

    Small models have few heads above the thresholds, and blocks without any. With `top=k` a map that has fewer than k
    heads of a kind gets the best k of that kind: by max_k (α_k − max λ_k) for synt, by max_r α_r for pos; of equal
    heads the first. So a map has at least k heads of each kind that is asked for, and none of what was not measured
    there (no tree says what a decoder's own words depend on).
    """
    check_rule(kinds, top, syntactic, positional)
    synt, pos = measured(artifact)
    return (
        chosen(synt, syntactic, top if kinds != "pos" else 0) & (kinds != "pos"),
        chosen(pos, positional, top if kinds != "synt" else 0) & (kinds != "synt"),
    )


def check_rule(kinds: str, top: int, syntactic: float, positional: float) -> None:
    """Refuse a choice of heads that means nothing."""
    if kinds not in KINDS:
        raise InputError(f"The kinds of heads are {', '.join(KINDS)}, not {kinds!r}.")
    whole("top", top, 0)
    share("syntactic", syntactic)
    share("positional", positional)


def measured(artifact: Artifact) -> tuple[np.ndarray, np.ndarray]:
    """What heads are judged by, [maps, heads] each: max_k (α_k − max λ_k) and max_r α_r; -inf: not measured."""
    data: dict[str, Any] = artifact.data
    try:
        pos = np.array(data["positional"]["alpha"], dtype=np.float64)
        synt = np.full(pos.shape, -np.inf)
        trees = np.array([kind in data["parsed"] for kind in data["kinds"]])
        for relation in data["relations"]:
            if data["counts"][relation]:
                alpha = np.array(data["alpha"][relation], dtype=np.float64)
                if alpha.shape != pos.shape or alpha.min() < 0 or alpha.max() > 1:
                    raise ValueError(f"the shares of {relation} are no table of {len(pos)} maps, from 0 to 1")
                margin = alpha - data["lambda_max"][relation]
                synt[trees] = np.maximum(synt, margin)[trees]
        proper = (
            pos.ndim == 2 and len(pos) == len(data["kinds"]) and np.isfinite(pos).all() and not np.isnan(synt).any()
        )
        if not proper or pos.min() < 0 or pos.max() > 1:
            raise ValueError("the tables do not fit each other")
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"This file of heads is not complete ({error}): make it anew with `raison heads`.") from None
    return synt, pos


def chosen(scores: np.ndarray, threshold: float, top: int) -> np.ndarray:
    """Bool[maps, heads]: scores above the threshold, and the best `top` of every row."""
    mask = scores > threshold
    order = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    best = np.zeros_like(mask)
    np.put_along_axis(best, order, True, axis=1)
    return mask | (best & np.isfinite(scores))


def random_masks(synt: np.ndarray, pos: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two masks of the same sizes on heads drawn without replacement, wherever they are (P4's ablation).

    As many heads are of both kinds as before, so that the union has the same size too.
    """
    both, first, second = (int(m.sum()) for m in (synt & pos, synt & ~pos, pos & ~synt))
    drawn = generator.permutation(synt.size)[: both + first + second]
    result = np.zeros((2, synt.size), bool)
    result[0, drawn[: both + first]] = True
    result[1, drawn[:both]] = result[1, drawn[both + first :]] = True
    return result[0].reshape(synt.shape), result[1].reshape(pos.shape)


def corrupted(mask: np.ndarray, rho: float, generator: np.random.Generator) -> np.ndarray:
    """The mask with a share `rho` of its zeros, rounded to whole heads, turned to ones (P4 Figure 4)."""
    share("rho", rho)
    zeros = np.flatnonzero(~mask)
    turned = generator.permutation(zeros)[: round(rho * len(zeros))]
    result = mask.copy()
    result.reshape(-1)[turned] = True
    return result


def share(name: str, value: Any) -> None:
    """Refuse what is not a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InputError(f"{name} is a number from 0 to 1, not {value}.")
