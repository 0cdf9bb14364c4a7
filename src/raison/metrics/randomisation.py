"""Randomisation of weights: does the explanation depend on what the model has learned?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from raison.core.parameters import check_integer
from raison.metrics.base import (
    FROM_MINUS_1_TO_1,
    Metric,
    MetricKey,
    MetricQuestions,
    Subject,
    metric,
)
from raison.metrics.metric_subject import model_and_method_of_subject
from raison.metrics.rank_correlation import spearman

if TYPE_CHECKING:
    from raison.models.protocol import InspectableModel

__all__ = ["Randomisation", "cascading_randomisation"]

# depths of weights that are in no block: those behind the blocks come first, those before them last
BEHIND_BLOCKS = 1.0
BEFORE_BLOCKS = -1.0


@metric("randomisation")
@dataclass(frozen=True)
class Randomisation(Metric):
    """How alike the explanation of a model and of its shuffled weights are: less is better.

    Spearman's ρ of s(x; θ) and s(x; θ′), θ′ with the entries of every weight in random places; the curve shuffles from
    the output down, a quarter of the blocks more at each point (cascading randomisation, Adebayo et al. 2018). Scores
    that stay exactly as they are, be they constant, give 1.
    """

    paper = "Adebayo et al. 2018"
    keys = (
        MetricKey("randomisation", "lower", range=FROM_MINUS_1_TO_1),
        MetricKey("randomisation_curve", "lower", curve=True, range=FROM_MINUS_1_TO_1),
    )
    needs = frozenset({"gradients", "again"})

    levels: int = 4  # points of the curve; 1: only the whole model

    def __post_init__(self) -> None:
        check_integer("levels", self.levels, 1)

    def ask(self, subject: Subject) -> MetricQuestions:
        yield from ()  # it asks about no kept sets
        model, explain_again = model_and_method_of_subject(subject, self.name)
        cache_key = (self.name, id(model), self.levels, subject.seed)
        if cache_key not in subject.cache:
            subject.cache[cache_key] = cascading_randomisation(model, self.levels, subject.seed)

        likeness = []
        for other in subject.cache[cache_key]:
            scores = explain_again(other)
            likeness.append(spearman(subject.scores, scores))
        return {
            "randomisation": likeness[-1],
            "randomisation_curve": np.array(likeness),
        }


def cascading_randomisation(
    model: InspectableModel, levels: int, seed: int
) -> list[InspectableModel]:
    """Models shuffled from the output down: the head and the last blocks first, in the end everything."""
    from raison.models.changed_weights import with_shuffled_weights

    depths = depths_of_weights(model)
    models = []
    for level in range(1, levels + 1):
        last = level == levels
        floor = -np.inf if last else 1 - level / levels
        names = frozenset(name for name, depth in depths.items() if depth >= floor)
        models.append(with_shuffled_weights(model, names, seed))
    return models


def depths_of_weights(model: InspectableModel) -> dict[str, float]:
    """How deep each weight is: its block's number by the number of blocks; 1 behind the blocks, −1 before them.

    A weight outside of all blocks is before them if it is named before the first one, or is an embedding.
    """
    names = [name for name, _ in model.hf.named_parameters()]
    lists = lengths_of_weight_lists(names)
    block_counts = numbers_of_weight_layers(model) & set(lists.values())
    if not block_counts:  # blocks that share their weights (ALBERT) stand in a list of one
        block_counts = set(lists.values())

    depths: dict[str, float] = {}
    blocks_began = False
    for name in names:
        place = weight_place_in_list(name)
        # a head may be a list of modules too
        if place is not None and lists[place[0]] in block_counts:
            path, number = place
            depths[name] = number / lists[path]
            blocks_began = True
        elif blocks_began and "embed" not in name.lower():
            depths[name] = BEHIND_BLOCKS
        else:
            depths[name] = BEFORE_BLOCKS
    return depths


def weight_place_in_list(name: str) -> tuple[str, int] | None:
    """The first list of modules on the way to a weight, and which of its elements holds it."""
    match = re.match(r"(.*?)\.(\d+)\.", name)
    if match is None:
        return None
    return match[1], int(match[2])


def lengths_of_weight_lists(names: Sequence[str]) -> dict[str, int]:
    """How many elements each list of modules has."""
    lengths: dict[str, int] = {}
    for name in names:
        place = weight_place_in_list(name)
        if place is not None:
            path, number = place
            length = lengths.get(path, 0)
            lengths[path] = max(length, number + 1)
    return lengths


def numbers_of_weight_layers(model: InspectableModel) -> set[int]:
    """All numbers of layers that the model's configuration names."""
    config = model.hf.config.to_dict()
    numbers = set()
    for key, value in config.items():
        if "layer" in key and isinstance(value, int):
            numbers.add(value)
    return numbers
