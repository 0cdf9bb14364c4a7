"""Answers to questions through a trie: prefixes that several kept sets have in common are nodes, each computed
once, as encoder sources are.

Candidates, steps, targets and texts of a search share their prefixes, so it pays one token for most candidates. What a
model computes at a node: encoder states of its source, then keys, values and hidden states.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch

from raison.core import progress
from raison.core.records import Encoding, Target
from raison.models.attention.call import Call
from raison.models.prefix.trie import Packed, Trie, chains_of
from raison.models.protocol import Question, Scored
from raison.models.runner import meter
from raison.models.runner.answers import Columns, answers_in, blank_answers
from raison.models.runner.runner import (
    ModelInputs,
    Runner,
    blocks_of_view,
    logits_of_view_behind_blocks,
)
from raison.models.runner.score_cache import Memory

__all__ = ["score_by_prefixes"]

NODES = 512  # per call: as fast as everything at once, and bounds memory
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
    output: str
    rival: int | None = None


@dataclass
class Entered:
    """What is done before the trie is full: the numbers to read, and what the new nodes cost."""

    stop: int  # number of the first set that is left
    readings: list[Reading] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)  # of each set
    new_nodes: dict[int, int] = field(default_factory=dict)  # by question


def score_by_prefixes(
    runner: Runner, questions: Sequence[Question], memory: Memory
) -> list[Scored]:
    """Answers to all questions through the memory's trie, whose nodes stay below its room."""
    trie = trie_of(memory, runner)
    results = [blank_answers(question) for question in questions]
    sets = sets_of_questions(questions)
    start = 0
    while start < len(sets):
        room = nodes_that_fit(trie, memory.room)
        was_full = start > 0
        if was_full or nearly_full(trie, room):
            to_come = sets[start:]
            needed = known_nodes(questions, to_come, trie)
            trie.forget(needed)
        if nearly_full(trie, room):  # still no place for new ones: begin again
            trie.forget()

        known = len(trie)
        try:
            entered = enter_sets(questions, sets, start, trie, room)
            encoded = encode_sources(runner, trie, entered.sources)
            new = np.arange(known, len(trie))
            compute_nodes(runner, trie, new)
        except BaseException:
            trie.forget(range(known))  # nodes without their numbers must not be believed
            raise

        for number, length in encoded.items():
            owner = sets[start + number].owner
            results[owner].tokens += length
        for owner, count in entered.new_nodes.items():
            results[owner].tokens += count
        read_answers(trie, entered.readings, results)
        start = entered.stop

    for result in results:
        result.forwards = len(result.value)
        meter.count_passes(result.forwards, tokens=result.tokens)
    return results


def sets_of_questions(questions: Sequence[Question]) -> list[KeptSet]:
    """All sets that the questions ask about."""
    sets = []
    for owner, question in enumerate(questions):
        for row in range(len(question.keep)):
            kept_set = KeptSet(owner, row)
            sets.append(kept_set)
    return sets


def trie_of(memory: Memory, runner: Runner) -> Trie:
    """The prefixes that were computed with the runner's present weights."""
    view = runner.view
    if memory.trie is None or memory.trie.view is not view:
        memory.trie = Trie(view)
    return memory.trie


def nearly_full(trie: Trie, room: int) -> bool:
    """Whether more than three quarters of its room are taken."""
    return 4 * len(trie) > 3 * room


def nodes_that_fit(trie: Trie, limit: int) -> int:
    """How many nodes fit into so many bytes; before the first one nobody knows how large they are."""
    nodes = max(1, len(trie))
    per_node = trie.bytes // nodes
    if not per_node:
        return 2 * NODES
    # pools grow by doubling, so that only a power of two keeps their memory below the limit
    fits = limit // per_node
    power = max(0, fits.bit_length() - 1)
    return 1 << power


def source_of_set(questions: Sequence[Question], kept_set: KeptSet) -> Source:
    """What a set of kept tokens stands on."""
    question = questions[kept_set.owner]
    keep = question.keep[kept_set.row]
    kept = np.flatnonzero(keep)
    return source_of(question.encoding, kept)


def enter_sets(
    questions: Sequence[Question], sets: Sequence[KeptSet], start: int, trie: Trie, room: int
) -> Entered:
    """Enter the nodes of as many sets as there is room for, beginning with `start`."""
    entered = Entered(stop=len(sets))
    for number in range(start, len(sets)):
        kept_set = sets[number]
        source = source_of_set(questions, kept_set)
        before = len(trie)
        fits = before + len(source.read) <= room
        if number > start and not fits:
            entered.stop = number
            return entered

        path = trie.path(source.tokens, source.positions, source.stem)
        new_nodes = len(trie) - before
        owner = kept_set.owner
        target = questions[owner].target
        earlier_nodes = entered.new_nodes.get(owner, 0)
        entered.new_nodes[owner] = earlier_nodes + new_nodes
        entered.sources.append(source)
        entered.readings += readings_of_set(kept_set, target, source, path)
    return entered


def readings_of_set(
    kept_set: KeptSet, target: Target, source: Source, path: list[int]
) -> list[Reading]:
    """The numbers of a set, one for each token of its target; `path` holds the nodes of its tokens."""
    readings = []
    places = np.searchsorted(source.read, target.rows)
    for column, place in enumerate(places):
        reading = Reading(
            owner=kept_set.owner,
            place=(kept_set.row, column),
            slot=path[place],
            token=target.ids[column],
            output=target.output,
        )
        if target.contrast is not None:
            reading.rival = target.contrast[column]
        readings.append(reading)
    return readings


def known_nodes(questions: Sequence[Question], sets: Sequence[KeptSet], trie: Trie) -> set[int]:
    """Known nodes that the sets still to come will need."""
    needed: set[int] = set()
    for kept_set in sets:
        source = source_of_set(questions, kept_set)
        path = trie.known(source.tokens, source.positions, source.stem)
        needed.update(path)
    return needed


def read_answers(trie: Trie, readings: Sequence[Reading], results: Sequence[Scored]) -> None:
    """Put hidden states through the head and write value, rank, margin and prediction where they belong."""
    plain = []
    contrasted = []
    for reading in readings:
        if reading.rival is None:
            plain.append(reading)
        else:
            contrasted.append(reading)

    for group in (plain, contrasted):
        group.sort(key=lambda reading: reading.slot)
        for start in range(0, len(group), HEAD):
            part = group[start : start + HEAD]
            answers = answers_at_nodes(trie, part)
            for number, reading in enumerate(part):
                result = results[reading.owner]
                place = reading.place
                result.value[place] = answers.value[number, 0]
                result.rank[place] = answers.rank[number, 0]
                result.margin[place] = answers.margin[number, 0]
                result.predicted[place] = answers.predicted[number, 0]


@torch.inference_mode()
def answers_at_nodes(trie: Trie, readings: Sequence[Reading]) -> Scored:
    """[n 1] answers of a few nodes, all of them with a contrast or none."""
    if trie.hidden is None:
        raise ValueError("a trie without nodes has no answers")
    place_of: dict[int, int] = {}  # of each slot among the distinct ones
    places = []
    ids = []
    contrast_ids = []
    for reading in readings:
        place = place_of.setdefault(reading.slot, len(place_of))
        places.append(place)
        ids.append([reading.token])
        contrast_ids.append([reading.rival])
    slots = list(place_of)
    missing = max(0, ROWS - len(slots))
    slots += [slots[-1]] * missing

    device = trie.hidden.device
    rows = torch.tensor(slots, device=device)
    states = trie.hidden[rows]
    logits = logits_of_view_behind_blocks(trie.view, states)

    row_of_reading = torch.tensor(places, device=device)
    own = logits[row_of_reading]
    outcomes = torch.tensor(ids, device=device)
    columns = Columns(own[:, None], outcomes)
    if readings[0].rival is not None:
        columns.contrast = torch.tensor(contrast_ids, device=device)
    outputs = [reading.output for reading in readings]
    return answers_in(columns, outputs)


# -- what a model computes at nodes --------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """What the nodes of a set stand on: the kept source tokens of an encoder-decoder; nothing in other models."""

    encoding: Encoding
    places: np.ndarray  # positions of the source tokens on the axis
    read: np.ndarray  # positions of the kept tokens that the decoder reads
    encodes: bool  # there is an encoder

    @property
    def tokens(self) -> list[int]:
        """Ids of what the decoder reads."""
        ids: list[int] = self.encoding.ids[self.read].tolist()
        return ids

    @property
    def positions(self) -> list[int]:
        """Original positions of what the decoder reads."""
        positions: list[int] = self.encoding.positions[self.read].tolist()
        return positions

    @cached_property
    def stem(self) -> Hashable:
        """The source tokens with their positions, as a key."""
        if not self.encodes:
            return None
        ids = self.encoding.ids[self.places]
        positions = self.encoding.positions[self.places]
        return ids.tobytes(), positions.tobytes()


def source_of(encoding: Encoding, kept: np.ndarray) -> Source:
    """The source of a set of kept tokens, and what the decoder reads of it."""
    if encoding.segments[0] != "source":
        nothing = kept[:0]
        return Source(encoding, places=nothing, read=kept, encodes=False)
    inside = encoding.segment[kept] == 0
    places = kept[inside]
    prefix = kept[~inside]
    return Source(encoding, places=places, read=prefix, encodes=True)


def encode_sources(runner: Runner, trie: Trie, sources: Sequence[Source]) -> dict[int, int]:
    """Compute encoder states of every new source, those of equal length together.

    Returns the lengths of the new ones, by their numbers.
    """
    new: dict[int, int] = {}
    by_length: dict[int, dict[Hashable, Source]] = {}
    for number, source in enumerate(sources):
        if not source.encodes:
            return {}
        length = len(source.places)
        group = by_length.setdefault(length, {})
        stem = source.stem
        if stem not in trie.sources and stem not in group:
            group[stem] = source
            new[number] = length

    for length, group in by_length.items():
        if length == 0:
            weight = next(trie.view.parameters())
            width = runner.loaded.setting("d_model")
            nothing = weight.new_zeros(0, width)
            for stem in group:
                trie.sources[stem] = nothing
            continue
        several = list(group.values())
        step = max(1, runner.budget.tokens // length)
        for start in range(0, len(several), step):
            part = several[start : start + step]
            states = encoder_states(runner, trie, part)
            for source, state in zip(part, states, strict=True):
                trie.sources[source.stem] = state
    return new


def encoder_states(runner: Runner, trie: Trie, sources: Sequence[Source]) -> torch.Tensor:
    """[n l d] encoder states of sources of equal length."""
    ids = []
    positions = []
    for source in sources:
        encoding = source.encoding
        ids.append(encoding.ids[source.places])
        positions.append(encoding.positions[source.places])

    tokens = runner.put(np.stack(ids))
    call = Call(positions=[runner.put(np.stack(positions))])
    inputs: ModelInputs = {
        "input_ids": tokens,
        "attention_mask": torch.ones_like(tokens),
    }
    encoder = trie.view.get_encoder()
    return runner.run_part(encoder, call, inputs)


def compute_nodes(runner: Runner, trie: Trie, new: np.ndarray) -> None:
    """Compute new nodes, parents before children, and keep their keys, values and hidden states."""
    if not len(new):
        return
    by_stem: dict[Hashable, list[int]] = {}
    for slot in new.tolist():
        stem = trie.stems[slot]
        by_stem.setdefault(stem, []).append(slot)
    # sources together; parents come first
    order = list(chain.from_iterable(by_stem.values()))

    blocks = blocks_of_view(trie.view)
    total = len(order)
    for start in range(0, total, NODES):
        end = min(start + NODES, total)
        slots = np.array(order[start:end])
        packed = packed_nodes(runner, trie, slots)
        inputs = arguments_of_nodes(runner, trie, slots, packed)
        positions = packed.positions[None]
        call = Call(positions=[positions], packed=packed)
        with torch.inference_mode():
            hidden = runner.run_part(blocks, call, inputs)
            trie.write_hidden(packed.slots, hidden[0])
        progress.report(end, total)


def packed_nodes(runner: Runner, trie: Trie, slots: np.ndarray) -> Packed:
    """The nodes as one packed sequence."""
    ancestors = trie.ancestors(slots)
    depth = trie.depth[slots]
    positions = trie.position[slots]
    seen = trie.position[ancestors]
    return Packed(
        trie=trie,
        slots=runner.put(slots),
        ancestors=runner.put(ancestors),
        depth=runner.put(depth),
        positions=runner.put(positions),
        seen=runner.put(seen),
        chains=chains_of(trie.parent, slots),
    )


def arguments_of_nodes(
    runner: Runner, trie: Trie, slots: np.ndarray, packed: Packed
) -> ModelInputs:
    """What the blocks are called with for these nodes; where they stand on sources, `packed` gets these."""
    ids = trie.token[slots]
    tokens = runner.put(ids)[None]
    inputs: ModelInputs = {
        "input_ids": tokens,
        "use_cache": False,
        "attention_mask": torch.ones_like(tokens),
    }
    if runner.loaded.family.positions == "argument":
        positions = packed.positions[None]
        inputs["position_ids"] = runner.position_ids(positions)

    stems = [trie.stems[slot] for slot in slots.tolist()]
    if stems[0] is not None:
        states = put_sources(runner, trie, stems, packed)
        inputs["encoder_hidden_states"] = states[None]
        inputs["encoder_attention_mask"] = torch.ones(
            1, len(states), dtype=torch.long, device=states.device
        )
    return inputs


def put_sources(
    runner: Runner, trie: Trie, stems: Sequence[Hashable], packed: Packed
) -> torch.Tensor:
    """[s d] the encoder states of all sources; `packed` gets where each node's source stands among them."""
    states: list[torch.Tensor] = []  # of the distinct sources, one behind the other
    start_of: dict[Hashable, int] = {}  # where each of them begins
    end = 0
    for stem in dict.fromkeys(stems):
        state = trie.sources[stem]
        states.append(state)
        start_of[stem] = end
        end += len(state)

    starts = []
    sizes = []
    for stem in stems:
        state = trie.sources[stem]
        starts.append([start_of[stem]])
        sizes.append([len(state)])
    longest = max(1, np.max(sizes))
    columns = np.arange(longest)[None]
    there = columns < np.array(sizes)
    places = np.where(there, columns + np.array(starts), 0)
    packed.source = runner.put(places)
    packed.there = runner.put(there)

    if end:
        return torch.cat(states)
    _, width = states[0].shape
    return states[0].new_zeros(1, width)
