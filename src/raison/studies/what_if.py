"""Looking at one explained text: what if something is removed, which heads carry the answer, what if one is off?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from raison.core.artifact import Artifact
from raison.core.errors import InputError, Unsupported
from raison.core.records import Explanation
from raison.engine import scores_again
from raison.methods.base import Method
from raison.methods.head_masks import head_strengths
from raison.models.attention.without_heads import Muted
from raison.models.protocol import Model, Question

__all__ = ["heads_of", "muted", "without"]


def without(model: Any, explanation: Explanation, removed: Sequence[int], removal: str | None = None) -> dict[str, Any]:
    """What the model says when some units are removed: how likely the target is, and what it predicts then."""
    units, encoding = explanation.units, explanation.encoding
    if any(not 0 <= unit < len(units) for unit in removed):
        raise InputError(f"The text has the units 0 to {len(units) - 1}.")
    target = explanation.target
    if model.probable:
        target = replace(target, output="log_prob")
    chosen = np.ones((2, len(units)), bool)
    chosen[1, list(removed)] = False
    keep = target.visible(units.keep(chosen), encoding)
    (scored,) = model.score([Question(encoding, target, keep)], removal=removal or explanation.removal)
    value = scored.value.sum(-1)
    if model.probable and target.contrast is None:
        value = np.exp(value)
    same = bool((scored.predicted[1] == scored.predicted[0]).all())
    return {
        "before": float(value[0]),
        "after": float(value[1]),
        "same": same,
        "instead": "" if same else outcome(model, target, scored.predicted[1]),
        "probable": model.probable and target.contrast is None,
    }


def outcome(model: Any, target: Any, ids: np.ndarray) -> str:
    """The name of what is predicted instead, where it has one."""
    if target.kind in ("token", "text"):
        return str(model.codec.text([int(i) for i in ids]))
    if model.problem == "multi_label":  # each label is a choice of its own, yes or no
        return target.text if int(ids[0]) else f"not {target.text}"
    if target.kind == "label" and 0 <= int(ids[0]) < len(model.labels):
        return model.labels[int(ids[0])]
    return ""


def heads_of(model: Any, explanation: Explanation) -> dict[str, Any]:
    """Every head of a model: how much of the answer it carries here, and what kind it is, where that was measured.

    A head carries Σ |attention × gradient|, as a share of all heads: how far the answer would move, to first order, if
    the head looked elsewhere.
    """
    if not {"attention", "gradients"} <= model.offers:
        raise Unsupported(f"{model.name} has no attention heads that can be looked at: choose another model.")
    want = frozenset({"attention_gradients"})
    ((_, trace),) = model.trace([explanation.encoding], [explanation.target], want=want)
    carried = np.array([(each.weights * each.gradient).abs().sum((-2, -1)).double().numpy() for each in trace.maps])
    total = carried.sum()
    kinds = [each.kind for each in trace.maps]
    found: dict[str, Any] = {
        "maps": [
            f"{kind} {kinds[:row].count(kind)}" if len(set(kinds)) > 1 else str(row) for row, kind in enumerate(kinds)
        ],
        "carried": (carried / total if total else carried).tolist(),
        "syntactic": None,
        "positional": None,
        "corpus": "",
    }
    file = model.head_statistics
    if file:
        artifact = Artifact.open(file, "heads")
        synt, pos = head_strengths(artifact)
        if synt.shape == carried.shape:
            found["syntactic"] = [[each if np.isfinite(each) else None for each in row] for row in synt.tolist()]
            found["positional"] = pos.tolist()
            found["offsets"] = artifact.data["positional"]["offset"]
            found["corpus"] = f"{artifact.about.get('corpus', '')}, {artifact.about.get('sentences', 0)} sentences"
    return found


def muted(model: Model, method: Method, explanation: Explanation, off: Sequence[tuple[int, int]]) -> Explanation:
    """The same text and target explained without some heads; how the value changes is in the diagnostics."""
    about = heads_of(model, explanation)["carried"]
    quiet: Any = Muted(model, off, len(about), len(about[0]))
    told = [np.array(without(each, explanation, [])["before"]) for each in (model, quiet)]
    scores = scores_again(quiet, method, explanation)
    names = ", ".join(f"{row}.{head}" for row, head in sorted(off))
    said = {"heads_off": names, "value_before": float(told[0]), "value_without_heads": float(told[1])}
    return replace(explanation, scores=scores, parts={}, diagnostics={**explanation.diagnostics, **said})
