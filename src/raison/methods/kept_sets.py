"""Values of a target for sets of kept units (evaluate_sets): the question of every method that removes parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raison.methods.base import Batch
from raison.models.protocol import Model, Question
from raison.models.runner.score_cache import Memory

__all__ = ["SetValues", "evaluate_sets", "kept_sets_share_prefixes"]

WORTH = 0.75  # new nodes per token: up to here a trie is faster, though its nodes are dearer than tokens (SmolLM2)


@dataclass(frozen=True)
class SetValues:
    """What one target is worth in each of some sets."""

    value: np.ndarray  # [n] summed over the target's tokens
    evaluations: int  # different sets that were run
    cost: Mapping[str, float]


def evaluate_sets(model: Model, batch: Batch, sets: Sequence[np.ndarray]) -> list[SetValues]:
    """Values of every target under its unit keep-masks [n u], all asked together; equal sets are run once.

    Causal models compute a prefix that several sets have in common once, where there are enough of them. Each question
    is looked at by itself, so that neighbours in the batch don't change the way its answer is found.
    """
    questions = []
    for index, kept in enumerate(sets):
        keep = batch.units[index].keep(kept)
        questions.append(Question(batch.encodings[index], batch.targets[index], keep))
    removal = batch.removal or model.removals[0]
    may_share = model.shares_prefixes and removal == "delete"

    alone: list[int] = []
    sharing: list[int] = []
    for index, question in enumerate(questions):
        if may_share and kept_sets_share_prefixes(question):
            sharing.append(index)
        else:
            alone.append(index)

    values: dict[int, SetValues] = {}
    for members, memory in ((alone, None), (sharing, Memory(limit=0))):
        if not members:
            continue
        asked = [questions[index] for index in members]
        answers = model.score(asked, removal=batch.removal, memory=memory)
        for index, scored in zip(members, answers, strict=True):
            cost = {"forwards": scored.forwards, "tokens": scored.tokens}
            values[index] = SetValues(scored.value.sum(-1), scored.forwards, cost)
    return [values[index] for index in range(len(questions))]


def kept_sets_share_prefixes(question: Question) -> bool:
    """Whether the sets of a question have enough of their beginnings in common."""
    encoding, target = question.encoding, question.target
    visible = target.visible(question.keep, encoding)
    # [n t] in the order of a dictionary: a row shares most with the one before
    visible = np.unique(visible, axis=0)
    parting = (visible[1:] != visible[:-1]).argmax(1)  # where it parts from that one
    if encoding.segments[0] == "source":
        # what a decoder computed is of use for the same source only
        source = (encoding.segment == 0).sum()
        parting[parting < source] = 0

    behind_parting = np.arange(len(encoding)) >= parting[:, None]
    new_in_others = visible[1:] & behind_parting
    new_nodes = visible[0].sum() + new_in_others.sum()
    return bool(new_nodes <= WORTH * visible.sum())
