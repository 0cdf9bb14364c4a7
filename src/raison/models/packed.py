"""New nodes of a trie as one packed sequence: every token gathers the keys and values of its own ancestors.

Sets of kept tokens that share a prefix share its nodes, so a search pays one token for most candidates. The family's
own eager attention does the arithmetic, each query with its ancestors as a batch row of its own, so soft caps, sinks
and biases need no code here; the family's own mask rule is asked about original positions, so windows need none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from raison import progress
from raison.models.base import Question, Scored
from raison.models.layout import streams_of
from raison.models.reading import Columns, read
from raison.models.tap import Call, running
from raison.models.trie import Trie

__all__ = ["Packed", "answer", "install_tail"]

NODES = 512  # per call: as fast as everything at once, and bounds memory
FLOATS = 2**22  # keys gathered at a time: stays in the cache of most machines
ROWS = 8  # fewer rows in a matrix product round differently
CHAIN = 32  # nodes in a row from which asking them at once pays
HEAD = 64  # rows of the vocabulary at a time


@dataclass
class Packed:
    """One packed call, as the tap sees it."""

    trie: Trie
    slots: torch.Tensor  # [q]
    ancestors: torch.Tensor  # [q d]
    depth: torch.Tensor  # [q]
    positions: torch.Tensor  # [q]
    seen: torch.Tensor  # [q d] positions of the ancestors
    chains: list[slice]  # runs of nodes that are each other's parents, long enough to be asked at once
    source: torch.Tensor | None = None  # [q l] where each query's source stands among the packed encoder states
    there: torch.Tensor | None = None  # [q l] False behind the end of a source
    layer: int = 0  # self-attention calls so far

    def mask(self, rule: Callable[..., torch.Tensor] | None, dtype: torch.dtype) -> torch.Tensor:
        """[1 1 q d] additive: the family's rule about original positions, and nothing behind the path."""
        zero = torch.zeros(1, 1, 1, 1, dtype=torch.long, device=self.seen.device)
        allowed = torch.arange(self.seen.shape[1], device=self.seen.device) < self.depth[:, None]
        if rule is not None:
            allowed = allowed & rule(zero, zero, self.positions[None, None, :, None], self.seen[None, None])
        lowest = torch.finfo(dtype).min
        return (
            torch.zeros((), dtype=dtype, device=self.seen.device)
            .where(allowed, lowest)
            .reshape(1, 1, *allowed.shape[-2:])
        )

    def attend(
        self,
        eager: Any,
        module: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, None]:
        """[1 q h d] attention of every query over its own ancestors (or its own source)."""
        bias = kwargs.pop("position_bias", None)
        if getattr(module, "raison_kind", "self") == "cross":
            keys, values, index, bias = key[0], value[0], self.source, None
            lengths = self.there.sum(1)  # type: ignore[union-attr]
            mask = torch.zeros((), dtype=query.dtype).where(self.there, torch.finfo(query.dtype).min)[None, None]  # type: ignore[arg-type]
        else:
            self.trie.write(self.layer, self.slots, key[0], value[0])
            keys, values, index = self.trie.keys[self.layer], self.trie.values[self.layer], self.ancestors
            lengths = self.depth
            self.layer += 1
        result = query.new_zeros(query.shape[2], query.shape[1], values.shape[-1])
        for rows, chain in self.blocks(lengths, keys.shape[0] * keys.shape[2]):
            width = int(lengths[rows].max())
            if width:
                # a chain asks about the path to its end, all queries at once; others each about a path of their own
                part = slice(rows.stop - 1, rows.stop) if chain else rows
                flat = index[part, :width].reshape(-1)  # type: ignore[index]
                shape = (keys.shape[0], part.stop - part.start, width, -1)
                gathered = [pool.index_select(1, flat).view(shape).transpose(0, 1) for pool in (keys, values)]
                asked, shown = query[0, :, rows], mask[0, 0, rows, :width]  # type: ignore[index]
                asked, shown = (asked[None], shown[None, None]) if chain else (row_by_row(asked), shown[:, None, None])
                extra = {}
                if bias is not None:
                    near = bias[0, :, rows, :width]
                    extra = {"position_bias": near[None] if chain else row_by_row(near)}
                found, _ = eager(module, asked, *gathered, shown, **extra, **kwargs)
                result[rows] = found[0] if chain else found[:, 0]
        result[lengths == 0] = 0.0  # a query that may see nothing takes nothing
        return result[None], None

    def blocks(self, lengths: torch.Tensor, width: int) -> Iterator[tuple[slice, bool]]:
        """Queries that run together: long chains, in which each node is the next one's parent, and the rest."""
        start = 0
        for chain in [*self.chains, slice(len(lengths), len(lengths))]:
            while start < chain.start:
                stop = min(chain.start, start + max(1, FLOATS // (max(1, int(lengths[start])) * width)))
                stop = min(stop, start + max(1, FLOATS // (max(1, int(lengths[start:stop].max())) * width)))
                yield slice(start, stop), False
                start = stop
            if chain.stop > chain.start:
                yield chain, True
            start = chain.stop


def row_by_row(tensor: torch.Tensor) -> torch.Tensor:
    """[h q d] as [q h 1 d]: every query is a row of the batch."""
    return tensor.transpose(0, 1)[:, :, None]


def chains_of(parent: np.ndarray, slots: np.ndarray) -> list[slice]:
    """Where long runs of nodes stand, each the parent of the next (and so all on the same source)."""
    ends = np.flatnonzero(parent[slots[1:]] != slots[:-1]) + 1
    borders = [0, *ends.tolist(), len(slots)]
    return [slice(a, b) for a, b in pairwise(borders) if b - a >= CHAIN]


# -- answering questions ------------------------------------------------------------------------------


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
        if len(trie) > room // 2:
            trie.forget(on_the_way(questions, jobs[start:], trie))
        known = len(trie)
        rows, stop, spent = gather(questions, jobs, start, trie, room)
        new = np.arange(known, len(trie))
        try:
            encode(model, questions, jobs[start:stop], trie, results)
            run(model, trie, new)
        except BaseException:
            trie.forget(range(known))  # nodes without their numbers must not be believed
            raise
        for owner, count in spent.items():
            results[owner].tokens += count
        read_rows(model, trie, rows, results)
        start = stop
    for result in results:
        result.forwards = len(result.value)
    return results


def room_of(trie: Trie, limit: int) -> int:
    """How many nodes fit; before the first one nobody knows how large they are."""
    per_node = trie.bytes // max(1, len(trie))
    return max(1, limit // per_node) if per_node else 2 * NODES


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
    if not jobs or questions[jobs[0][0]].encoding.segments[0] != "source":
        return
    waiting: dict[int, dict[Hashable, tuple[np.ndarray, np.ndarray]]] = {}
    for owner, row in jobs:
        encoding = questions[owner].encoding
        source = streams_of(encoding)[0]
        source = source[questions[owner].keep[row][source]]
        stem = (encoding.ids[source].tobytes(), encoding.positions[source].tobytes())
        group = waiting.setdefault(len(source), {})
        if stem not in trie.sources and stem not in group:
            group[stem] = (encoding.ids[source], encoding.positions[source])
            results[owner].tokens += len(source)
    device = model.device
    width = model.hf.config.d_model
    for length, group in waiting.items():
        stems = list(group)
        if length == 0:
            trie.sources.update({stem: torch.zeros(0, width, device=device) for stem in stems})
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


# -- the two halves of a model ------------------------------------------------------------------------


def blocks_of(view: Any) -> Any:
    """Everything before the head: the decoder of an encoder-decoder, else the model inside the model."""
    if getattr(view.config, "is_encoder_decoder", False):
        return view.get_decoder()
    return getattr(view, view.base_model_prefix)


def install_tail(view: Any) -> None:
    """Let the view's own forward begin behind the blocks, where a call brings their result.

    What follows the blocks (a bias, a scale, a soft cap, the head) is the model's business; so its own code runs.
    """
    from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

    from raison.models.tap import current

    try:
        blocks = blocks_of(view)
    except (AttributeError, TypeError):
        return  # no such half: the probe will find that nothing can be packed
    if blocks is None or blocks is view:
        return
    plain = blocks.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        call = current()
        if call is not None and call.tail is not None:
            return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=call.tail)  # type: ignore[arg-type]
        return plain(*args, **kwargs)

    blocks.forward = forward


def tail(view: Any, hidden: torch.Tensor) -> torch.Tensor:
    """[n v] logits of last hidden states [n d]."""
    ids = torch.zeros(len(hidden), 1, dtype=torch.long, device=hidden.device)
    inputs: dict[str, Any] = {"input_ids": ids}
    if getattr(view.config, "is_encoder_decoder", False):
        from transformers.modeling_outputs import BaseModelOutput

        inputs = {"decoder_input_ids": ids, "encoder_outputs": BaseModelOutput(hidden[:, None])}  # type: ignore[arg-type]
    with running(Call(tail=hidden[:, None])):
        return view(**inputs, use_cache=False).logits[:, 0]
