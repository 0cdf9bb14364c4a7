"""Does the explanation depend on the model, and does it keep still when the input hardly moves?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from raison.core.errors import Unsupported
from raison.core.spec import between, whole
from raison.metrics.base import Asking, Metric, Subject, metric

__all__ = ["MaxSensitivity", "Randomisation"]


def opened(subject: Subject, name: str) -> Any:
    """The model, if its weights can be changed."""
    if subject.again is None:
        raise Unsupported(f"{name} explains the text again, so it needs a method, not scores that were made elsewhere.")
    if not hasattr(subject.model, "hf"):
        raise Unsupported(f"{name} changes weights, and {getattr(subject.model, 'name', 'a function')} shows none.")
    return subject.model


@metric("max_sensitivity")
@dataclass(frozen=True)
class MaxSensitivity(Metric):
    """How far the scores move at most when the word embeddings move a little: less is better.

    max over δ of ‖s(x + δ) − s(x)‖ / ‖s(x)‖, δ uniform in ±radius times the root mean square of the text's word
    embeddings, the same for equal tokens (Yeh et al. 2019). Where all scores are 0 the change itself.
    """

    paper = "Yeh et al. 2019"
    keys = ("max_sensitivity",)
    higher = False
    span = (0.0, np.inf)
    needs = frozenset({"gradients", "again"})

    radius: float = 0.02  # of the size of an embedding
    samples: int = 8  # directions that are tried

    def __post_init__(self) -> None:
        between("radius", self.radius, 0)
        whole("samples", self.samples, 1)

    def ask(self, subject: Subject) -> Asking:
        import torch

        from raison.models.changed_weights import moved

        yield from ()
        model = opened(subject, self.name)
        ids = torch.from_numpy(np.unique(subject.explanation.encoding.ids))
        here = torch.cat([table.weight.detach()[ids.to(model.device)] for table in model.tables[:1]])
        size = float(here.cpu().double().square().mean().sqrt())
        generator, old = subject.generator("max_sensitivity"), subject.scores
        worst = 0.0
        for _ in range(self.samples):
            by = generator.uniform(-self.radius * size, self.radius * size, (len(ids), here.shape[-1]))
            new = subject.again(moved(model, ids, torch.from_numpy(by)))  # type: ignore[misc]
            worst = max(worst, float(np.linalg.norm(new - old)))
        length = float(np.linalg.norm(old))
        return {"max_sensitivity": worst / length if length > 0 else worst}


@metric("randomisation")
@dataclass(frozen=True)
class Randomisation(Metric):
    """How alike the explanation of a model and of its shuffled weights are: less is better.

    Spearman's ρ of s(x; θ) and s(x; θ′), θ′ with the entries of every weight in random places; the curve shuffles from
    the output down, a quarter of the blocks more at each point (cascading randomisation, Adebayo et al. 2018). Scores
    that stay exactly as they are, be they constant, give 1.
    """

    paper = "Adebayo et al. 2018"
    keys = ("randomisation", "randomisation_curve")
    higher = False
    span = (-1.0, 1.0)
    needs = frozenset({"gradients", "again"})

    levels: int = 4  # points of the curve; 1: only the whole model

    def __post_init__(self) -> None:
        whole("levels", self.levels, 1)

    def ask(self, subject: Subject) -> Asking:
        yield from ()
        model = opened(subject, self.name)
        key = (self.name, id(model), self.levels, subject.seed)
        if key not in subject.cache:
            subject.cache[key] = cascade(model, self.levels, subject.seed)
        likeness = [
            spearman(subject.scores, subject.again(other))  # type: ignore[misc]
            for other in subject.cache[key]
        ]
        return {"randomisation": likeness[-1], "randomisation_curve": np.array(likeness)}


def cascade(model: Any, levels: int, seed: int) -> list[Any]:
    """Models shuffled from the output down: the head and the last blocks first, in the end everything."""
    from raison.models.changed_weights import shuffled

    names = [name for name, _ in model.hf.named_parameters()]
    places = [(name, re.match(r"(.*?)\.(\d+)\.", name)) for name in names]
    deepest: dict[str, int] = {}  # how many elements each list of modules has
    for _, found_in in places:
        if found_in:
            deepest[found_in[1]] = max(deepest.get(found_in[1], 0), int(found_in[2]) + 1)
    config = model.hf.config.to_dict()
    layers = {value for key, value in config.items() if isinstance(value, int) and "layer" in key}
    if not layers & set(deepest.values()):  # blocks that share their weights (ALBERT) stand in a list of one
        layers = set(deepest.values())
    depth, met = {}, False
    for name, found_in in places:
        if found_in and deepest[found_in[1]] in layers:  # a block; a head may be a list of modules too
            depth[name], met = int(found_in[2]) / deepest[found_in[1]], True
        else:
            depth[name] = 1.0 if met and "embed" not in name.lower() else -1.0
    found = []
    for level in range(1, levels + 1):
        floor = 1 - level / levels if level < levels else -2.0
        chosen = frozenset(name for name in names if depth[name] >= floor)
        found.append(shuffled(model, chosen, seed))
    return found


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0; equal values share the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    first = np.cumsum(count) - count
    return (first + (count - 1) / 2)[place.reshape(-1)]


def spearman(one: np.ndarray, other: np.ndarray) -> float:
    """Correlation of ranks; 1 for equal scores, else 0 where one side does not rank at all."""
    if np.array_equal(one, other):
        return 1.0
    a, b = (r - r.mean() for r in map(ranks, (one, other)))
    size = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float((a * b).sum() / size) if size > 0 else 0.0
