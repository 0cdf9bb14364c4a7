"""What a model computes at the nodes of a trie: encoder states of sources, then keys, values and hidden states."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from raison.core import progress
from raison.core.records import Encoding
from raison.models.attention.call import Call, running
from raison.models.prefix.packed import Packed, chains_of
from raison.models.prefix.trie import Trie
from raison.models.runner.runner import ModelInputs, Runner
from raison.models.runner.split_forward import blocks_of

__all__ = ["NODES", "Source", "compute_nodes", "encode_sources", "source_of"]

NODES = 512  # per call: as fast as everything at once, and bounds memory


@dataclass(frozen=True)
class Source:
    """What the nodes of a set stand on: the kept source tokens of an encoder-decoder; nothing in other models."""

    encoding: Encoding
    places: np.ndarray  # positions of the source tokens on the axis
    read: np.ndarray  # positions of the kept tokens that the decoder reads
    encodes: bool  # there is an encoder

    @cached_property
    def stem(self) -> Hashable:
        """The source tokens with their positions, as a key."""
        if not self.encodes:
            return None
        return self.encoding.ids[self.places].tobytes(), self.encoding.positions[
            self.places
        ].tobytes()


def source_of(encoding: Encoding, kept: np.ndarray) -> Source:
    """The source of a set of kept tokens, and what the decoder reads of it."""
    if encoding.segments[0] != "source":
        return Source(encoding, kept[:0], kept, encodes=False)
    inside = encoding.segment[kept] == 0
    return Source(encoding, kept[inside], kept[~inside], encodes=True)


def encode_sources(runner: Runner, trie: Trie, sources: Iterable[Source]) -> dict[int, int]:
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
        if source.stem not in trie.sources and source.stem not in group:
            group[source.stem] = source
            new[number] = length

    for length, group in by_length.items():
        if length == 0:
            nothing = next(trie.view.parameters()).new_zeros(0, runner.loaded.setting("d_model"))
            trie.sources.update(dict.fromkeys(group, nothing))
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
    ids = np.stack([source.encoding.ids[source.places] for source in sources])
    positions = np.stack([source.encoding.positions[source.places] for source in sources])
    tokens = runner.put(ids)
    with torch.inference_mode(), running(Call(positions=[runner.put(positions)])):
        output = trie.view.get_encoder()(input_ids=tokens, attention_mask=torch.ones_like(tokens))
    states: torch.Tensor = output.last_hidden_state
    return states


def compute_nodes(runner: Runner, trie: Trie, new: np.ndarray) -> None:
    """Compute new nodes, parents before children, and keep their keys, values and hidden states."""
    if not len(new):
        return
    first: dict[Hashable, int] = {}
    for slot in new.tolist():
        first.setdefault(trie.stems[slot], slot)
    order = sorted(
        new.tolist(), key=lambda slot: first[trie.stems[slot]]
    )  # sources together; parents come first
    for start in range(0, len(order), NODES):
        slots = np.array(order[start : start + NODES])
        packed = packed_nodes(runner, trie, slots)
        inputs = arguments_of_nodes(runner, trie, slots, packed)
        call = Call(positions=[packed.positions[None]], packed=packed)
        with torch.inference_mode(), running(call):
            hidden = blocks_of(trie.view)(**inputs).last_hidden_state[0]
            trie.write_hidden(packed.slots, hidden)
        progress.report(min(start + NODES, len(order)), len(order))


def packed_nodes(runner: Runner, trie: Trie, slots: np.ndarray) -> Packed:
    """The nodes as one packed sequence."""
    ancestors = trie.ancestors(slots)
    return Packed(
        trie=trie,
        slots=runner.put(slots),
        ancestors=runner.put(ancestors),
        depth=runner.put(trie.depth[slots]),
        positions=runner.put(trie.position[slots]),
        seen=runner.put(trie.position[ancestors]),
        chains=chains_of(trie.parent, slots),
    )


def arguments_of_nodes(
    runner: Runner, trie: Trie, slots: np.ndarray, packed: Packed
) -> ModelInputs:
    """What the blocks are called with for these nodes; where they stand on sources, `packed` gets these."""
    tokens = runner.put(trie.token[slots])[None]
    inputs: ModelInputs = {
        "input_ids": tokens,
        "use_cache": False,
        "attention_mask": torch.ones_like(tokens),
    }
    family = runner.loaded.family
    if family.positions == "argument":
        inputs["position_ids"] = packed.positions[None] + family.offset(runner.loaded.hf.config)

    stems = [trie.stems[slot] for slot in slots.tolist()]
    if stems[0] is None:
        return inputs
    distinct = list(dict.fromkeys(stems))
    states = [trie.sources[stem] for stem in distinct]
    lengths = [len(state) for state in states]
    starts = dict(zip(distinct, np.cumsum([0, *lengths[:-1]]), strict=True))
    sizes = np.array([len(trie.sources[stem]) for stem in stems])
    columns = np.arange(max(1, sizes.max()))[None]
    there = columns < sizes[:, None]
    places = columns + np.array([starts[stem] for stem in stems])[:, None]
    packed.source, packed.there = runner.put(np.where(there, places, 0)), runner.put(there)

    joined = torch.cat(states) if sizes.any() else states[0].new_zeros(1, states[0].shape[1])
    inputs["encoder_hidden_states"] = joined[None]
    inputs["encoder_attention_mask"] = torch.ones(
        1, len(joined), dtype=torch.long, device=joined.device
    )
    return inputs
