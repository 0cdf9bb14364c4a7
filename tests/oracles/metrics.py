"""Faithfulness metrics, written literally from their definitions: an oracle for tests, slow on purpose.

Nothing here comes from raison's metrics. A number is made from single forward passes of a plain transformers model,
one kept set at a time (`Bert`, `Gpt2`), or from a closed form (`Bag`), with Python loops over units. `World.look` is
the only thing that the metrics ask; a set is a set of unit numbers, and a ranking a list of them.

    p      probability of the target        f      what the scores explain, e.g. its logit
    s      scores [u]                       best   units from the most important to the least
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats

from raison.core.records import Explanation

# -- worlds: what a model says about a set of units ------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """What the model says when only some units are there."""

    p: float
    f: float
    predicted: tuple[int, ...]  # the best outcome, of each token of the target


class World:
    """A model and one text, cut into units; each set is run by itself."""

    def __init__(self, size: int):
        self.size = size
        self.seen: dict[frozenset[int], Look] = {}

    def compute(self, kept: frozenset[int]) -> Look:
        raise NotImplementedError

    def look(self, kept: Iterable[int]) -> Look:
        key = frozenset(kept)
        if key not in self.seen:
            self.seen[key] = self.compute(key)
        return self.seen[key]

    @property
    def units(self) -> set[int]:
        return set(range(self.size))

    def p(self, kept: Iterable[int]) -> float:
        return self.look(kept).p

    def f(self, kept: Iterable[int]) -> float:
        return self.look(kept).f

    def predicted(self, kept: Iterable[int]) -> tuple[int, ...]:
        return self.look(kept).predicted


class Bag(World):
    """Outputs that add up: output v = bias[v] + Σ over kept units of weight[v][u]. Its "probability" is the value."""

    def __init__(self, weights: Sequence[Sequence[float]], bias: Sequence[float], target: int):
        super().__init__(len(weights[0]))
        self.weights, self.bias, self.target = weights, bias, target

    def compute(self, kept: frozenset[int]) -> Look:
        outputs = [
            b + sum(row[u] for u in sorted(kept))
            for row, b in zip(self.weights, self.bias, strict=True)
        ]
        value = outputs[self.target]
        return Look(value, value, (outputs.index(max(outputs)),))


class Transformer(World):
    """A transformers model in float64, asked about one explanation's target by plain forward calls."""

    def __init__(
        self, hf: Any, explanation: Explanation, removal: str, stand_in: int | None = None
    ):
        super().__init__(len(explanation.units))
        self.hf, self.removal, self.stand_in = hf, removal, stand_in
        self.encoding, self.target = explanation.encoding, explanation.target
        self.unit_of = [int(u) for u in explanation.units.of]
        self.length = len(self.encoding)  # tokens that the model reads

    def outcomes(self, tokens: list[int], **inputs: Any) -> torch.Tensor:
        """[m v] logits for each token of the target, when these tokens run."""
        raise NotImplementedError

    def compute(self, kept: frozenset[int]) -> Look:
        there = [self.unit_of[t] < 0 or self.unit_of[t] in kept for t in range(self.length)]
        tokens = [t for t in range(self.length) if there[t] or self.removal != "delete"]
        ids = [int(self.encoding.ids[t]) for t in tokens]
        mask = [1 for _ in tokens]
        if self.removal == "mask":
            mask = [int(there[t]) for t in tokens]
        if self.removal == "mask_token":
            assert self.stand_in is not None
            ids = [
                number if there[t] else self.stand_in for t, number in zip(tokens, ids, strict=True)
            ]
        return self.read(
            self.outcomes(
                tokens, input_ids=torch.tensor([ids]), attention_mask=torch.tensor([mask])
            )
        )

    def read(self, logits: torch.Tensor) -> Look:
        """p, f and the best outcomes of logits [m v]; with a contrast p is that of the one among both."""
        predicted = tuple(int(row.argmax()) for row in logits)
        if self.target.contrast is not None:
            (mine,), (other,), (row,) = self.target.ids, self.target.contrast, logits
            gap = float(row[mine] - row[other])  # of logits and of log-probabilities
            return Look(1 / (1 + math.exp(-gap)), gap, predicted)
        rows = list(zip(logits, self.target.ids, strict=True))
        log = sum(float(row.log_softmax(-1)[number]) for row, number in rows)
        f = {
            "logit": sum(float(row[number]) for row, number in rows),
            "log_prob": log,
            "prob": math.exp(log),
        }
        return Look(math.exp(log), f[self.target.output], predicted)

    def table(self) -> torch.Tensor:
        """[t d] word embeddings of the whole text."""
        ids = torch.from_numpy(self.encoding.ids[: self.length].copy())
        return self.hf.get_input_embeddings().weight.detach()[ids]

    def embedded(self, embeddings: torch.Tensor) -> float:
        """Probability of the target for word embeddings [t d]."""
        return self.read(self.outcomes(list(range(self.length)), inputs_embeds=embeddings[None])).p


class Bert(Transformer):
    """A label of a sequence classifier."""

    def outcomes(self, tokens: list[int], **inputs: Any) -> torch.Tensor:
        positions = torch.tensor([[int(self.encoding.positions[t]) for t in tokens]])
        assert self.encoding.types is not None
        types = torch.tensor([[int(self.encoding.types[t]) for t in tokens]])
        with torch.no_grad():
            return self.hf(position_ids=positions, token_type_ids=types, **inputs).logits


class Gpt2(Transformer):
    """What a causal language model writes next; each token is read one row before it."""

    def __init__(
        self, hf: Any, explanation: Explanation, removal: str, stand_in: int | None = None
    ):
        super().__init__(hf, explanation, removal, stand_in)
        self.length = max(self.target.positions)

    def outcomes(self, tokens: list[int], **inputs: Any) -> torch.Tensor:
        positions = torch.tensor([[int(self.encoding.positions[t]) for t in tokens]])
        with torch.no_grad():
            logits = self.hf(position_ids=positions, **inputs).logits[0]
        return torch.stack(
            [logits[tokens.index(position - 1)] for position in self.target.positions]
        )


# -- rankings --------------------------------------------------------------------------------------------


def ranking(explanation: Explanation) -> list[int]:
    """Units from the most important to the least, the first in the text first; what was selected before all others."""
    s = [float(score) for score in explanation.scores]
    by_score = sorted(
        range(len(s)), key=lambda u: -s[u]
    )  # Python's sort keeps the order of equal ones
    if explanation.selected is None:
        return by_score
    found = [] if explanation.order is None else [int(u) for u in explanation.order]
    chosen = [u for u in found if explanation.selected[u]]
    chosen += [u for u in by_score if explanation.selected[u] and u not in chosen]
    return chosen + [u for u in by_score if u not in chosen]


def rationales(explanation: Explanation, shares: Sequence[float]) -> list[set[int]]:
    """What was selected, or the best ⌈q·u⌉ units for each share q."""
    best = ranking(explanation)
    if explanation.selected is not None:
        return [{u for u in range(len(best)) if explanation.selected[u]}]
    return [set(best[: max(1, math.ceil(round(q * len(best), 9)))]) for q in shares]


# -- removed and kept ------------------------------------------------------------------------------------

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)


def comprehensiveness(
    world: World, explanation: Explanation, shares: Sequence[float] = SHARES
) -> dict[str, float]:
    """The normalised form is cut to 0…1, as the soft one is by its range."""
    p, nothing = world.p(world.units), world.p(())
    plain, normalised = [], []
    for rationale in rationales(explanation, shares):
        drop = p - world.p(world.units - rationale)
        plain.append(drop)
        normalised.append(cut(max(0.0, drop) / (p - nothing)) if p > nothing else 0.0)
    return {"comprehensiveness": mean(plain), "normalised_comprehensiveness": mean(normalised)}


def sufficiency(
    world: World, explanation: Explanation, shares: Sequence[float] = SHARES
) -> dict[str, float]:
    """S(R) − S(∅) = max(0, p(x) − p(∅)) − max(0, p(x) − p(R)), and 1 − S(∅) = max(0, p(x) − p(∅))."""
    p, nothing = world.p(world.units), world.p(())
    plain, normalised = [], []
    for rationale in rationales(explanation, shares):
        drop = p - world.p(rationale)
        plain.append(drop)
        normalised.append(
            cut((p - nothing - max(0.0, drop)) / (p - nothing)) if p > nothing else 1.0
        )
    return {"sufficiency": mean(plain), "normalised_sufficiency": mean(normalised)}


def removed_counts(size: int, steps: int) -> list[int]:
    """1/steps, 2/steps, …, all of the units, rounded."""
    return [round(size * step / steps) for step in range(1, steps + 1)]


def aopc(world: World, explanation: Explanation, steps: int = 9) -> dict[str, Any]:
    best = ranking(explanation)
    curve = [
        world.p(world.units) - world.p(world.units - set(best[:count]))
        for count in removed_counts(world.size, steps)
    ]
    return {"aopc": mean(curve), "aopc_curve": curve}


def lodds(world: World, explanation: Explanation, steps: int = 9) -> dict[str, Any]:
    best = ranking(explanation)
    curve = [
        math.log(world.p(world.units - set(best[:count])) / world.p(world.units))
        for count in removed_counts(world.size, steps)
    ]
    return {"lodds": mean(curve), "lodds_curve": curve}


def area(values: dict[int, float], size: int) -> float:
    """∫ over the share of units, by trapezoids between the counts at which the model was asked."""
    counts = sorted(values)
    total = 0.0
    for left, right in itertools.pairwise(counts):
        total += (values[left] + values[right]) / 2 * (right - left) / size
    return total


def even(values: dict[int, float], size: int, points: int) -> list[float]:
    """The same polygon, read at shares 0, 1/points, …, 1."""
    counts = sorted(values)
    read = []
    for point in range(points + 1):
        x = point * size / points
        left = max(count for count in counts if count <= x + 1e-12)
        if left == counts[-1]:
            read.append(values[left])
            continue
        right = counts[counts.index(left) + 1]
        read.append(values[left] + (values[right] - values[left]) * (x - left) / (right - left))
    return read


def rungs(size: int, steps: int) -> list[int]:
    """Counts at which an area is asked: every one, or `steps` + 1 of them evenly spread."""
    steps = min(size, steps)
    return sorted({round(size * step / steps) for step in range(steps + 1)})


def deletion(world: World, explanation: Explanation, steps: int = 20) -> dict[str, Any]:
    best = ranking(explanation)
    values = {count: world.p(world.units - set(best[:count])) for count in rungs(world.size, steps)}
    return {"deletion": area(values, world.size), "deletion_curve": even(values, world.size, steps)}


def insertion(world: World, explanation: Explanation, steps: int = 20) -> dict[str, Any]:
    best = ranking(explanation)
    values = {count: world.p(set(best[:count])) for count in rungs(world.size, steps)}
    return {
        "insertion": area(values, world.size),
        "insertion_curve": even(values, world.size, steps),
    }


def decision_flip(world: World, explanation: Explanation) -> dict[str, float]:
    best = ranking(explanation)
    for count in range(1, world.size + 1):
        if world.predicted(world.units - set(best[:count])) != world.predicted(world.units):
            return {"decision_flip": count / world.size}
    return {"decision_flip": 1.0}


def decision_flip_first(world: World, explanation: Explanation) -> dict[str, float]:
    without = world.units - {ranking(explanation)[0]}
    return {"decision_flip_first": float(world.predicted(without) != world.predicted(world.units))}


# -- effects ---------------------------------------------------------------------------------------------


def loo_correlation(world: World, explanation: Explanation) -> dict[str, float]:
    s = [float(score) for score in explanation.scores]
    effects = [world.f(world.units) - world.f(world.units - {u}) for u in range(world.size)]
    if len(set(s)) == 1 or len(set(effects)) == 1:
        return {"loo_correlation": 0.0}
    return {"loo_correlation": float(stats.kendalltau(s, effects, variant="b").statistic)}


def monotonicity(world: World, explanation: Explanation) -> dict[str, float]:
    worst_first = list(reversed(ranking(explanation)))
    if world.size == 1:
        return {"monotonicity": 1.0, "monotone_steps": 1.0}
    chain = [world.p(worst_first[:count]) for count in range(world.size + 1)]
    gains = [after - before for before, after in itertools.pairwise(chain)]
    rising = [later >= earlier for earlier, later in itertools.pairwise(gains)]
    return {"monotonicity": mean(rising), "monotone_steps": mean([gain >= 0 for gain in gains])}


def infidelity(
    world: World, explanation: Explanation, removed: Sequence[set[int]]
) -> dict[str, float]:
    """`removed` are the random sets."""
    said = [sum(float(explanation.scores[u]) for u in sorted(gone)) for gone in removed]
    done = [world.f(world.units) - world.f(world.units - gone) for gone in removed]

    def miss(beta: float) -> float:
        return mean([(beta * a - b) ** 2 for a, b in zip(said, done, strict=True)])

    if miss(0.0) == 0:
        return {"infidelity": 0.0, "raw_infidelity": miss(1.0)}
    # a parabola in β, known from three of its points
    left, middle, right = miss(-1.0), miss(0.0), miss(1.0)
    curvature, slope = (left + right) / 2 - middle, (right - left) / 2
    best = max(0.0, -slope / (2 * curvature)) if curvature > 0 else 0.0
    return {"infidelity": miss(best) / miss(0.0), "raw_infidelity": miss(1.0)}


def completeness_gap(world: World, explanation: Explanation) -> dict[str, float]:
    total = sum(float(score) for score in explanation.scores)
    difference = world.f(world.units) - world.f(())
    if total == 0 and difference == 0:
        return {"completeness_gap": 0.0}
    return {"completeness_gap": abs(total - difference) / (abs(total) + abs(difference))}


# -- soft ------------------------------------------------------------------------------------------------


def soft(
    world: Transformer, explanation: Explanation, generator: np.random.Generator, samples: int
) -> dict[str, float]:
    """Soft-NS and Soft-NC with the draws of `generator`, uniform numbers [sample t d]: kept where the draw is below s.

    s is scaled from its least to its largest value; where all are equal every entry is kept as likely as not. What is
    no unit keeps its embedding.
    """
    s = [float(score) for score in explanation.scores]
    low, high = min(s), max(s)
    chance = [(score - low) / (high - low) if high > low else 0.5 for score in s]
    embeddings = world.table()
    # drawn for the whole axis, of which a written target's last token is not read
    draws = torch.from_numpy(generator.random((samples, len(world.encoding), embeddings.shape[1])))
    inside = [t for t in range(world.length) if world.unit_of[t] >= 0]
    nothing = embeddings.clone()
    nothing[inside] = 0
    p = world.embedded(embeddings)
    most = max(0.0, p - world.embedded(nothing))  # 1 − S(0)
    if most == 0:
        return {"soft_sufficiency": 1.0, "soft_comprehensiveness": 0.0}
    sufficient, comprehensive = [], []
    for draw in draws:
        kept, rest = embeddings.clone(), embeddings.clone()
        for t in inside:
            stays = draw[t] < chance[world.unit_of[t]]  # [d]
            kept[t], rest[t] = embeddings[t] * stays, embeddings[t] * ~stays
        sufficient.append(cut((most - max(0.0, p - world.embedded(kept))) / most))
        comprehensive.append(cut(max(0.0, p - world.embedded(rest)) / most))
    return {"soft_sufficiency": mean(sufficient), "soft_comprehensiveness": mean(comprehensive)}


# -- plain arithmetic --------------------------------------------------------------------------------------


def mean(values: Sequence[Any]) -> float:
    return math.fsum(float(value) for value in values) / len(values)


def cut(value: float) -> float:
    return min(1.0, max(0.0, value))
