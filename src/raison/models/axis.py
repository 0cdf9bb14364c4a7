"""From an example to the axis of tokens that everything else talks about."""

from __future__ import annotations

import numpy as np

from raison.core.errors import TooLong
from raison.core.records import Encoding, Example
from raison.core.text_splitting import stripped_span
from raison.models.codec import Codec, Pieces
from raison.models.loaded_model import LoadedModel

__all__ = ["axis_of"]


def axis_of(
    loaded: LoadedModel,
    example: Example,
    names: tuple[str, ...],
    *,
    truncate: bool,
    from_start: bool = False,
) -> Encoding:
    """Tokenize an example, cut it to the model's limit if asked, and lay it out on one axis.

    Special tokens and what surrounds template slots are fixed.
    """
    pieces = loaded.codec(example.text, example.pair)
    surplus = loaded.surplus(len(pieces.ids), truncate=truncate)
    if surplus:
        pieces = cut(pieces, surplus, from_start)
    texts = (example.text,) if example.pair is None else (example.text, example.pair)
    fixed = pieces.special.copy()
    if example.slots:
        fixed |= outside_slots(pieces, example)
    return Encoding(
        ids=pieces.ids,
        tokens=names_of_tokens(pieces, texts, loaded.codec),
        segments=names,
        texts=texts,
        segment=pieces.segment,
        start=pieces.start,
        end=pieces.end,
        positions=np.arange(len(pieces.ids)),
        fixed=fixed,
        types=pieces.types,
        slots=example.slots,
        truncated=surplus,
        id=example.id,
    )


def names_of_tokens(pieces: Pieces, texts: tuple[str, ...], codec: Codec) -> tuple[str, ...]:
    """What a person reads: the characters of each token, or the name of one that has none."""
    names = []
    for token, start, end, segment in zip(
        pieces.ids, pieces.start, pieces.end, pieces.segment, strict=True
    ):
        inside = start >= 0 and end > start
        names.append(texts[segment][start:end] if inside else codec.name(int(token)))
    return tuple(names)


def cut(pieces: Pieces, surplus: int, from_start: bool) -> Pieces:
    """Drop `surplus` ordinary tokens from the longer text: its end, or its start for a language model."""
    ordinary = ~pieces.special
    places = [np.flatnonzero(ordinary & (pieces.segment == segment)) for segment in (0, 1)]
    first, second = len(places[0]), len(places[1])
    if first + second <= surplus:
        raise TooLong("The model's limit leaves no room for any word of the text.")
    # level the two lengths first, then take turns
    both = max(0, surplus - abs(first - second))
    longer = int(second > first)
    gone = [both // 2, both // 2]
    gone[longer] += surplus - both + both % 2
    dropped = []
    for place, count in zip(places, gone, strict=True):
        dropped.append(place[:count] if from_start else place[len(place) - count :])
    kept = np.setdiff1d(np.arange(len(pieces.ids)), np.concatenate(dropped))
    return pieces.take(kept)


def outside_slots(pieces: Pieces, example: Example) -> np.ndarray:
    """[t] tokens of a prompt template: they touch no slot (a token that does goes with the slot)."""
    result = np.ones(len(pieces.ids), bool)
    for token, (start, end) in enumerate(zip(pieces.start, pieces.end, strict=True)):
        if start < 0 or pieces.segment[token] != 0:
            continue
        core = stripped_span(example.text, int(start), int(end))
        if core:
            touches = [slot.start < core[1] and core[0] < slot.end for slot in example.slots]
            result[token] = not any(touches)
    return result
