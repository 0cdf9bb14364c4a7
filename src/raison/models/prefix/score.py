"""Answers to questions through a trie: a prefix that several sets have in common is computed once.

Candidates, steps, targets and texts of a search share their prefixes, so it pays one token for most candidates.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from raison.core import progress
from raison.models.attention.call import Call, running
from raison.models.prefix.packed import Packed, chains_of
from raison.models.prefix.trie import Trie
from raison.models.protocol import Question, Scored
from raison.models.runner import meter
from raison.models.runner.answers import Columns, read
from raison.models.runner.split_forward import blocks_of, tail

__all__ = ["answer"]

NODES = 512  # per call: as fast as everything at once, and bounds memory
ROWS = 8  # fewer rows in a matrix product round differently
HEAD = 128  # rows of the vocabulary at a time


@dataclass
class Row:
    """One number to read: which answer it belongs to, and at which node it stands."""

    owner: int
    place: tuple[int, int]  # set and target token
    slot: int
    token: int
    rival: int | None
    output: str


def answer(model: Any, questions: Sequence[Question], trie: Trie, limit: int) -> list[Scored]:
    """Answers to all questions through the trie, whose nodes stay below `limit` bytes."""
    results = [model.blank(question) for question in questions]
    jobs = [(owner, row) for owner, question in enumerate(questions) for row in range(len(question.keep))]
    start = 0
    while start < len(jobs):
        room = room_of(trie, limit)
        if start or 4 * len(trie) > 3 * room:  # it was full, or will be soon
            trie.forget(on_the_way(questions, jobs[start:], trie))
        if 4 * len(trie) > 3 * room:  # still no place for new ones: begin again
            trie.forget()
        known = len(trie)
        try:
            rows, stop, spent = gather(questions, jobs, start, trie, room)
            encode(model, questions, jobs[start:stop], trie, results)
            run(model, trie, np.arange(known, len(trie)))
        except BaseException:
            trie.forget(range(known))  # nodes without their numbers must not be believed
            raise
        for owner, count in spent.items():
            results[owner].tokens += count
        read_rows(model, trie, rows, results)
        start = stop
    for result in results:
        result.forwards = len(result.value)
        meter.count(result.forwards, tokens=result.tokens)
    return results


def room_of(trie: Trie, limit: int) -> int:
    """How many nodes fit; before the first one nobody knows how large they are."""
    per_node = trie.bytes // max(1, len(trie))
    # pools grow by doubling, so that only a power of two keeps their memory below the limit
    return 1 << max(0, (limit // per_node).bit_length() - 1) if per_node else 2 * NODES


def gather(
    questions: Sequence[Question], jobs: list[tuple[int, int]], start: int, trie: Trie, room: int
) -> tuple[list[Row], int, dict[int, int]]:
    """Rows to read for as many sets as there is room for, beginning with `start`; their nodes enter the trie."""
    rows: list[Row] = []
    spent: dict[int, int] = {}
    for number in range(start, len(jobs)):
        owner, row = jobs[number]
        question = questions[owner]
        encoding, target = question.encoding, question.target
        kept = np.flatnonzero(question.keep[row])
        stem, kept = stem_of(encoding, kept)
        before = len(trie)
        if number > start and before + len(kept) > room:
            return rows, number, spent
        path = trie.path(encoding.ids[kept].tolist(), encoding.positions[kept].tolist(), stem)
        spent[owner] = spent.get(owner, 0) + len(trie) - before
        places = np.searchsorted(kept, target.rows)
        for column, place in enumerate(places):
            rival = None if target.contrast is None else target.contrast[column]
            rows.append(Row(owner, (row, column), path[place], target.ids[column], rival, target.output))
    return rows, len(jobs), spent


def on_the_way(questions: Sequence[Question], jobs: list[tuple[int, int]], trie: Trie) -> set[int]:
    """Known nodes that the sets still to come will need."""
    needed: set[int] = set()
    for owner, row in jobs:
        encoding = questions[owner].encoding
        stem, kept = stem_of(encoding, np.flatnonzero(questions[owner].keep[row]))
        needed.update(trie.known(encoding.ids[kept].tolist(), encoding.positions[kept].tolist(), stem))
    return needed


def stem_of(encoding: Any, kept: np.ndarray) -> tuple[Hashable, np.ndarray]:
    """What a decoder's nodes stand on (the kept source tokens with their positions), and the kept tokens it reads."""
    if encoding.segments[0] != "source":
        return None, kept
    inside = encoding.segment[kept] == 0
    source = kept[inside]
    return (encoding.ids[source].tobytes(), encoding.positions[source].tobytes()), kept[~inside]


def encode(
    model: Any, questions: Sequence[Question], jobs: list[tuple[int, int]], trie: Trie, results: list[Scored]
) -> None:
    """Encoder states of every new set of source tokens, sets of equal length together."""
    waiting: dict[int, dict[Hashable, tuple[np.ndarray, np.ndarray]]] = {}
    for owner, row in jobs:
        encoding = questions[owner].encoding
        kept = np.flatnonzero(questions[owner].keep[row])
        stem, read = stem_of(encoding, kept)
        if stem is None:
            return
        source = kept[: len(kept) - len(read)]  # the source comes first on the axis
        group = waiting.setdefault(len(source), {})
        if stem not in trie.sources and stem not in group:
            group[stem] = (encoding.ids[source], encoding.positions[source])
            results[owner].tokens += len(source)
    device, width = model.device, model.hf.config.d_model
    nothing = next(trie.view.parameters()).new_zeros(0, width)
    for length, group in waiting.items():
        stems = list(group)
        if length == 0:
            trie.sources.update(dict.fromkeys(stems, nothing))
            continue
        step = max(1, model.budget.tokens // length)
        for start in range(0, len(stems), step):
            part = stems[start : start + step]
            ids, places = (torch.from_numpy(np.stack([group[stem][i] for stem in part])).to(device) for i in (0, 1))
            with torch.inference_mode(), running(Call(positions=[places])):
                states = trie.view.get_encoder()(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
            trie.sources.update(zip(part, states, strict=True))


def run(model: Any, trie: Trie, new: np.ndarray) -> None:
    """Compute new nodes, parents before children, and keep their keys, values and hidden states."""
    if not len(new):
        return
    first = {stem: i for i, stem in reversed(list(enumerate(trie.stems[slot] for slot in new)))}
    order = sorted(new.tolist(), key=lambda slot: first[trie.stems[slot]])  # sources together; parents come first
    for start in range(0, len(order), NODES):
        slots = np.array(order[start : start + NODES])
        inputs, call = arguments(model, trie, slots)
        with torch.inference_mode(), running(call):
            hidden = blocks_of(trie.view)(**inputs).last_hidden_state[0]
            trie.write_hidden(call.packed.slots, hidden)  # type: ignore[union-attr]
        progress.report(min(start + NODES, len(order)), len(order))


def arguments(model: Any, trie: Trie, slots: np.ndarray) -> tuple[dict[str, Any], Call]:
    """What the blocks are called with for these nodes."""
    device = model.device
    put = lambda a: torch.from_numpy(np.ascontiguousarray(a)).to(device)  # noqa: E731
    ancestors = trie.ancestors(slots)
    positions = put(trie.position[slots])
    packed = Packed(
        trie,
        put(slots),
        put(ancestors),
        put(trie.depth[slots]),
        positions,
        put(trie.position[ancestors]),
        chains_of(trie.parent, slots),
    )
    inputs: dict[str, Any] = {"input_ids": put(trie.token[slots])[None], "use_cache": False}
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    if model.family.positions == "argument":
        inputs["position_ids"] = positions[None] + model.family.offset(model.hf.config)
    stems = [trie.stems[slot] for slot in slots.tolist()]
    if stems[0] is not None:
        distinct = list(dict.fromkeys(stems))
        states = [trie.sources[stem] for stem in distinct]  # type: ignore[index]
        starts = dict(zip(distinct, np.cumsum([0, *(len(s) for s in states[:-1])]), strict=True))
        sizes = np.array([len(trie.sources[stem]) for stem in stems])  # type: ignore[index]
        places = np.arange(max(1, sizes.max()))[None] + np.array([starts[stem] for stem in stems])[:, None]
        there = np.arange(max(1, sizes.max()))[None] < sizes[:, None]
        packed.source, packed.there = put(np.where(there, places, 0)), put(there)
        joined = torch.cat(states) if sizes.any() else states[0].new_zeros(1, states[0].shape[1])
        inputs["encoder_hidden_states"] = joined[None]
        inputs["encoder_attention_mask"] = torch.ones(1, len(joined), dtype=torch.long, device=device)
    return inputs, Call(positions=[positions[None]], packed=packed)


def read_rows(model: Any, trie: Trie, rows: list[Row], results: list[Scored]) -> None:
    """Put hidden states through the head and write value, rank, margin and prediction where they belong."""
    for contrasts in (False, True):
        wanted = sorted((r for r in rows if (r.rival is not None) == contrasts), key=lambda r: r.slot)
        for start in range(0, len(wanted), HEAD):
            part = wanted[start : start + HEAD]
            slots = list(dict.fromkeys(row.slot for row in part))
            place = {slot: i for i, slot in enumerate(slots)}
            filled = slots + [slots[-1]] * max(0, ROWS - len(slots))
            device = model.device
            with torch.inference_mode():
                hidden = trie.hidden[torch.tensor(filled, device=device)]  # type: ignore[index]
                logits = tail(trie.view, hidden)[torch.tensor([place[row.slot] for row in part], device=device)]
                ids = torch.tensor([[row.token] for row in part], device=device)
                rivals = torch.tensor([[row.rival] for row in part], device=device) if contrasts else None
                found = read(Columns(logits[:, None], ids, rivals), [row.output for row in part])
            for name, values in found.items():
                for row, value in zip(part, values[:, 0], strict=True):
                    getattr(results[row.owner], name)[row.place] = value
