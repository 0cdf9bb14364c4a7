"""Answers to questions through a trie: a prefix that several sets have in common is computed once.

Candidates, steps, targets and texts of a search share their prefixes, so it pays one token for most candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from raison.models.prefix.nodes import NODES, Source, compute_nodes, encode_sources, source_of
from raison.models.prefix.trie import Trie
from raison.models.protocol import Question, Scored
from raison.models.runner import meter
from raison.models.runner.answers import Columns, answers_in, blank_answers
from raison.models.runner.runner import Runner
from raison.models.runner.score_cache import Memory
from raison.models.runner.split_forward import logits_behind_blocks

__all__ = ["score_by_prefixes"]

ROWS = 8  # fewer rows in a matrix product round differently
HEAD = 128  # rows of the vocabulary at a time


class KeptSet(NamedTuple):
    """One set of tokens that a question asks about."""

    owner: int  # index of the question
    row: int  # of the question's keep


@dataclass
class Reading:
    """One number to read: which answer it belongs to, and at which node it stands."""

    owner: int
    place: tuple[int, int]  # set and target token
    slot: int
    token: int
    rival: int | None
    output: str


@dataclass
class Entered:
    """What is done before the trie is full: the numbers to read, and what the new nodes cost."""

    readings: list[Reading]
    stop: int  # number of the first set that is left
    new_nodes: dict[int, int]  # by question


def score_by_prefixes(
    runner: Runner, questions: Sequence[Question], memory: Memory
) -> list[Scored]:
    """Answers to all questions through the memory's trie, whose nodes stay below its room."""
    trie = trie_of(memory, runner)
    results = [blank_answers(question) for question in questions]
    sets = [
        KeptSet(owner, row)
        for owner, question in enumerate(questions)
        for row in range(len(question.keep))
    ]
    start = 0
    while start < len(sets):
        room = nodes_that_fit(trie, memory.room)
        if start or 4 * len(trie) > 3 * room:  # it was full, or will be soon
            trie.forget(known_nodes(questions, sets[start:], trie))
        if 4 * len(trie) > 3 * room:  # still no place for new ones: begin again
            trie.forget()
        known = len(trie)
        try:
            entered = enter_sets(questions, sets, start, trie, room)
            part = sets[start : entered.stop]
            encoded = encode_sources(
                runner, trie, (source_of_set(questions, each) for each in part)
            )
            compute_nodes(runner, trie, np.arange(known, len(trie)))
        except BaseException:
            trie.forget(range(known))  # nodes without their numbers must not be believed
            raise

        for number, length in encoded.items():
            results[part[number].owner].tokens += length
        for owner, count in entered.new_nodes.items():
            results[owner].tokens += count
        read_answers(trie, entered.readings, results)
        start = entered.stop

    for result in results:
        result.forwards = len(result.value)
        meter.count(result.forwards, tokens=result.tokens)
    return results


def trie_of(memory: Memory, runner: Runner) -> Trie:
    """The prefixes that were computed with the runner's present weights."""
    view = runner.view
    if memory.trie is None or memory.trie.view is not view:
        memory.trie = Trie(view)
    return memory.trie


def nodes_that_fit(trie: Trie, limit: int) -> int:
    """How many nodes fit into so many bytes; before the first one nobody knows how large they are."""
    per_node = trie.bytes // max(1, len(trie))
    if not per_node:
        return 2 * NODES
    # pools grow by doubling, so that only a power of two keeps their memory below the limit
    return 1 << max(0, (limit // per_node).bit_length() - 1)


def source_of_set(questions: Sequence[Question], kept_set: KeptSet) -> Source:
    question = questions[kept_set.owner]
    return source_of(question.encoding, np.flatnonzero(question.keep[kept_set.row]))


def enter_sets(
    questions: Sequence[Question], sets: Sequence[KeptSet], start: int, trie: Trie, room: int
) -> Entered:
    """Enter the nodes of as many sets as there is room for, beginning with `start`."""
    entered = Entered([], len(sets), {})
    for number in range(start, len(sets)):
        owner, row = sets[number]
        question = questions[owner]
        encoding, target = question.encoding, question.target
        source = source_of(encoding, np.flatnonzero(question.keep[row]))
        kept = source.read
        before = len(trie)
        if number > start and before + len(kept) > room:
            entered.stop = number
            return entered

        path = trie.path(
            encoding.ids[kept].tolist(), encoding.positions[kept].tolist(), source.stem
        )
        entered.new_nodes[owner] = entered.new_nodes.get(owner, 0) + len(trie) - before
        for column, place in enumerate(np.searchsorted(kept, target.rows)):
            reading = Reading(
                owner=owner,
                place=(row, column),
                slot=path[place],
                token=target.ids[column],
                rival=None if target.contrast is None else target.contrast[column],
                output=target.output,
            )
            entered.readings.append(reading)
    return entered


def known_nodes(questions: Sequence[Question], sets: Sequence[KeptSet], trie: Trie) -> set[int]:
    """Known nodes that the sets still to come will need."""
    needed: set[int] = set()
    for each in sets:
        encoding = questions[each.owner].encoding
        source = source_of_set(questions, each)
        tokens, positions = (
            encoding.ids[source.read].tolist(),
            encoding.positions[source.read].tolist(),
        )
        needed.update(trie.known(tokens, positions, source.stem))
    return needed


def read_answers(trie: Trie, readings: Sequence[Reading], results: Sequence[Scored]) -> None:
    """Put hidden states through the head and write value, rank, margin and prediction where they belong."""
    plain = [reading for reading in readings if reading.rival is None]
    contrasted = [reading for reading in readings if reading.rival is not None]
    for group in (plain, contrasted):
        group.sort(key=lambda reading: reading.slot)
        for start in range(0, len(group), HEAD):
            part = group[start : start + HEAD]
            answers = answers_at_nodes(trie, part)
            for number, reading in enumerate(part):
                result = results[reading.owner]
                result.value[reading.place] = answers.value[number, 0]
                result.rank[reading.place] = answers.rank[number, 0]
                result.margin[reading.place] = answers.margin[number, 0]
                result.predicted[reading.place] = answers.predicted[number, 0]


@torch.inference_mode()
def answers_at_nodes(trie: Trie, readings: Sequence[Reading]) -> Scored:
    """[n 1] answers of a few nodes, all of them with a contrast or none."""
    if trie.hidden is None:
        raise ValueError("a trie without nodes has no answers")
    slots = list(dict.fromkeys(reading.slot for reading in readings))
    place_of = {slot: place for place, slot in enumerate(slots)}
    filled = slots + [slots[-1]] * max(0, ROWS - len(slots))
    device = trie.hidden.device

    logits = logits_behind_blocks(trie.view, trie.hidden[torch.tensor(filled, device=device)])
    places = torch.tensor([place_of[reading.slot] for reading in readings], device=device)
    ids = torch.tensor([[reading.token] for reading in readings], device=device)
    contrast = None
    if readings[0].rival is not None:
        contrast = torch.tensor([[reading.rival] for reading in readings], device=device)
    columns = Columns(logits[places][:, None], ids, contrast)
    return answers_in(columns, [reading.output for reading in readings])
