"""What if units of one explained text are removed, which heads carry the answer, and what if some heads are off?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raison.core.artifact import Artifact
from raison.core.errors import InputError, Unsupported
from raison.core.json_record import Record
from raison.core.records import Explanation, Target
from raison.engine import method_scores_again
from raison.methods.base import Method
from raison.methods.head_masks import head_strengths
from raison.models.attention.without_heads import Muted
from raison.models.protocol import Model, Question, TextGenerator

__all__ = [
    "AnswerWithoutUnits",
    "HeadsOfAnswer",
    "answer_without_units",
    "explain_without_heads",
    "heads_of_answer",
]

Table = tuple[tuple[float, ...], ...]  # [maps heads]


@dataclass(frozen=True, eq=False)
class AnswerWithoutUnits(Record):
    """What a model says of a target before and after some units are removed."""

    before: float  # of the target: its probability, or its value where there are none
    after: float
    same: bool  # the prediction is the same as before
    instead: str  # what is predicted instead, where it has a name
    probable: bool  # the values are probabilities


@dataclass(frozen=True, eq=False)
class HeadsOfAnswer(Record):
    """Every head of a model: how much of an answer it carries, and what kind it is, where that was measured."""

    maps: tuple[str, ...]  # names of the attention maps
    carried: Table  # shares of what all heads carry
    # by how much a head beats a fixed position
    syntactic: tuple[tuple[float | None, ...], ...] | None = None
    positional: Table | None = None  # the share of queries at one position
    offsets: tuple[tuple[int, ...], ...] | None = None  # that position
    corpus: str = ""  # on which heads were measured


def answer_without_units(
    model: Model, explanation: Explanation, removed: Sequence[int], removal: str | None = None
) -> AnswerWithoutUnits:
    """What the model says when some units are removed: how likely the target is, and what it predicts then."""
    units = explanation.units
    encoding = explanation.encoding
    if any(not 0 <= unit < len(units) for unit in removed):
        raise InputError(f"The text has the units 0 to {len(units) - 1}.")
    target = explanation.target
    if model.probable:
        target = replace(target, output="log_prob")

    kept_units = np.ones((2, len(units)), bool)
    kept_units[1, list(removed)] = False
    keep = target.visible(units.keep(kept_units), encoding)
    (scored,) = model.score(
        [Question(encoding, target, keep)], removal=removal or explanation.removal
    )

    tells_probability = model.probable and target.contrast is None
    values = scored.value.sum(-1)
    if tells_probability:
        values = np.exp(values)
    before, after = scored.predicted
    same = bool((before == after).all())
    return AnswerWithoutUnits(
        before=float(values[0]),
        after=float(values[1]),
        same=same,
        instead="" if same else name_of_answer_instead(model, target, after),
        probable=tells_probability,
    )


def name_of_answer_instead(model: Model, target: Target, ids: np.ndarray) -> str:
    """The name of what is predicted instead, where it has one."""
    if target.kind in ("token", "text") and isinstance(model, TextGenerator):
        numbers = []
        for token in ids:
            numbers.append(int(token))
        return model.text_of(numbers)
    first = int(ids[0])
    if model.problem == "multi_label":  # each label is a choice of its own, yes or no
        if first:
            return target.text
        return f"not {target.text}"
    if target.kind == "label" and 0 <= first < len(model.labels):
        return model.labels[first]
    return ""


def heads_of_answer(model: Model, explanation: Explanation) -> HeadsOfAnswer:
    """Every head of a model: how much of the answer it carries here, and what kind it is, where that was measured."""
    kinds, carried = answer_carried_by_heads(model, explanation)
    total = carried.sum()
    shares = carried / total if total else carried
    heads = HeadsOfAnswer(maps=tuple(names_of_head_maps(kinds)), carried=shares.tolist())
    if not model.head_statistics:
        return heads

    artifact = Artifact.open(model.head_statistics, "heads")
    syntactic, positional = head_strengths(artifact)
    if syntactic.shape != carried.shape:
        return heads
    syntactic_rows = []
    for row in syntactic:
        syntactic_rows.append(finite_head_values(row))
    return replace(
        heads,
        syntactic=tuple(syntactic_rows),
        positional=positional.tolist(),
        offsets=artifact.data["positional"]["offset"],
        corpus=f"{artifact.about.get('corpus', '')}, {artifact.about.get('sentences', 0)} sentences",
    )


def answer_carried_by_heads(model: Model, explanation: Explanation) -> tuple[list[str], np.ndarray]:
    """The kind of each attention map, and [maps heads] Σ |attention × gradient| of each head.

    How far the answer would move, to first order, if the head looked elsewhere.
    """
    if not {"attention", "gradients"} <= model.offers:
        raise Unsupported(
            f"{model.name} has no attention heads that can be looked at: choose another model."
        )
    want = frozenset({"attention_gradients"})
    ((_, trace),) = model.trace([explanation.encoding], [explanation.target], want=want)
    kinds = []
    carried = []
    for attention in trace.maps:
        if attention.gradient is None:
            raise Unsupported(
                f"{model.name} tells no gradients of its attention: choose another model."
            )
        moved = (attention.weights * attention.gradient).abs().sum((-2, -1))
        carried.append(moved.double().numpy())
        kinds.append(attention.kind)
    return kinds, np.array(carried)


def finite_head_values(values: np.ndarray) -> tuple[float | None, ...]:
    """JSON has no infinity: what was not measured is None."""
    finite = []
    for value in values.tolist():
        finite.append(value if np.isfinite(value) else None)
    return tuple(finite)


def names_of_head_maps(kinds: Sequence[str]) -> list[str]:
    """The maps by their numbers; where there are several kinds, each kind is counted by itself."""
    if len(set(kinds)) <= 1:
        return [str(row) for row in range(len(kinds))]
    names = []
    for row, kind in enumerate(kinds):
        names.append(f"{kind} {kinds[:row].count(kind)}")
    return names


def explain_without_heads(
    model: Model, method: Method, explanation: Explanation, off: Sequence[tuple[int, int]]
) -> Explanation:
    """The same text and target explained without some heads; how the value changes is in the diagnostics."""
    _, carried = answer_carried_by_heads(model, explanation)
    maps, heads = carried.shape
    quiet: Any = Muted(
        model, off, maps, heads
    )  # answers as a Model does, without being one by type
    names_of_heads = []
    for row, head in sorted(off):
        names_of_heads.append(f"{row}.{head}")
    changed = {
        "heads_off": ", ".join(names_of_heads),
        "value_before": answer_without_units(model, explanation, []).before,
        "value_without_heads": answer_without_units(quiet, explanation, []).before,
    }
    scores = method_scores_again(quiet, method, explanation)
    return replace(
        explanation, scores=scores, parts={}, diagnostics={**explanation.diagnostics, **changed}
    )
