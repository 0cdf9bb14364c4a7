"""From an example to the axis of tokens that everything else talks about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raison.core.errors import TooLong
from raison.core.records import Encoding, Example
from raison.core.text_splitting import stripped_span
from raison.models.codec import Pieces

if TYPE_CHECKING:
    from raison.models.runner.adapter import Adapter

__all__ = ["axis_of", "build", "outside_slots"]


def axis_of(
    model: Adapter, example: Example, names: tuple[str, ...], *, truncate: bool, from_start: bool = False
) -> Encoding:
    """Tokenize an example, cut it to the model's limit if asked, and lay it out on one axis."""
    pieces = model.codec(example.text, example.pair)
    surplus = model.fit(len(pieces.ids), truncate)
    if surplus:
        pieces = cut(pieces, surplus, from_start)
    texts = (example.text,) if example.pair is None else (example.text, example.pair)
    return build(model, example, pieces, names, texts, surplus)


def build(
    model: Adapter, example: Example, pieces: Pieces, names: tuple[str, ...], texts: tuple[str, ...], cut_off: int
) -> Encoding:
    """The encoding of ready pieces; special tokens and what surrounds template slots are fixed."""
    tokens = tuple(
        texts[s][a:b] if a >= 0 and b > a else model.codec.name(int(i))
        for i, a, b, s in zip(pieces.ids, pieces.start, pieces.end, pieces.segment, strict=True)
    )
    fixed = pieces.special.copy()
    if example.slots:
        fixed |= outside_slots(pieces, example)
    return Encoding(
        ids=pieces.ids,
        tokens=tokens,
        segments=names,
        texts=texts,
        segment=pieces.segment,
        start=pieces.start,
        end=pieces.end,
        positions=np.arange(len(pieces.ids)),
        fixed=fixed,
        types=pieces.types,
        slots=example.slots,
        truncated=cut_off,
        id=example.id,
    )


def cut(pieces: Pieces, surplus: int, from_start: bool) -> Pieces:
    """Drop `surplus` ordinary tokens from the longer text: its end, or its start for a language model."""
    places = [np.flatnonzero(~pieces.special & (pieces.segment == s)) for s in (0, 1)]
    left = [len(place) for place in places]
    if sum(left) <= surplus:
        raise TooLong("The model's limit leaves no room for any word of the text.")
    first, second = left
    # level the two lengths first, then take turns
    both = max(0, surplus - abs(first - second))
    longer = int(second > first)
    gone = [both // 2, both // 2]
    gone[longer] += surplus - both + both % 2
    drop = [place[:n] if from_start else place[len(place) - n :] for place, n in zip(places, gone, strict=True)]
    return pieces.take(np.setdiff1d(np.arange(len(pieces.ids)), np.concatenate(drop)))


def outside_slots(pieces: Pieces, example: Example) -> np.ndarray:
    """[t] tokens of a prompt template: they touch no slot (a token that does goes with the slot)."""
    result = np.ones(len(pieces.ids), bool)
    for t, (a, b) in enumerate(zip(pieces.start, pieces.end, strict=True)):
        core = stripped_span(example.text, int(a), int(b)) if a >= 0 else None
        if core and pieces.segment[t] == 0:
            result[t] = not any(s.start < core[1] and core[0] < s.end for s in example.slots)
    return result
