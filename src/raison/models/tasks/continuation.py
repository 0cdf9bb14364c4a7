"""Encodings that are extended by tokens behind the text, which a model has written or could write, and shortened
where they get too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.core.records import Encoding
from raison.models.codec import Codec

__all__ = ["AddedTokens", "extended_encoding", "shortened_encoding", "with_tokens_behind"]


@dataclass(frozen=True)
class AddedTokens:
    """Tokens to be put behind an encoding, all of one segment."""

    ids: Sequence[int]
    tokens: Sequence[str]
    starts: Sequence[int]  # characters of the segment's text; -1 for special tokens
    ends: Sequence[int]
    segment: int  # number of the segment
    first_position: int
    fixed: bool = False


def extended_encoding(encoding: Encoding, ids: Sequence[int], codec: Codec) -> Encoding:
    """The encoding with tokens of a continuation at its end, as a segment of their own."""
    text, starts, ends = spans_of_tokens(ids, codec)
    segments = (*encoding.segments, "continuation")
    added = AddedTokens(
        ids=ids,
        tokens=[codec.name(token) for token in ids],
        starts=starts,
        ends=ends,
        segment=segments.index("continuation"),
        first_position=int(encoding.positions[-1]) + 1,
    )
    encoding = replace(encoding, segments=segments, texts=(*encoding.texts, text))
    return with_tokens_behind(encoding, added)


def with_tokens_behind(encoding: Encoding, added: AddedTokens) -> Encoding:
    """The encoding with more tokens at its end."""
    count = len(added.ids)
    positions = np.arange(added.first_position, added.first_position + count)
    types = encoding.types
    if types is not None:
        types = longer_array_of_encoding(types, [0] * count)
    return replace(
        encoding,
        ids=longer_array_of_encoding(encoding.ids, added.ids),
        tokens=(*encoding.tokens, *added.tokens),
        segment=longer_array_of_encoding(encoding.segment, [added.segment] * count),
        start=longer_array_of_encoding(encoding.start, added.starts),
        end=longer_array_of_encoding(encoding.end, added.ends),
        positions=longer_array_of_encoding(encoding.positions, positions),
        fixed=longer_array_of_encoding(encoding.fixed, [added.fixed] * count),
        types=types,
    )


def longer_array_of_encoding(array: np.ndarray, more: Sequence[int] | np.ndarray) -> np.ndarray:
    """An array with more numbers of its own kind at its end."""
    return np.concatenate([array, np.asarray(more, dtype=array.dtype)])


def shortened_encoding(encoding: Encoding, surplus: int) -> Encoding:
    """The encoding without its first ordinary tokens."""
    ordinary = np.flatnonzero(~encoding.fixed)
    kept = np.setdiff1d(np.arange(len(encoding)), ordinary[:surplus])
    types = encoding.types
    if types is not None:
        types = types[kept]
    return replace(
        encoding,
        ids=encoding.ids[kept],
        tokens=tuple(encoding.tokens[place] for place in kept),
        segment=encoding.segment[kept],
        start=encoding.start[kept],
        end=encoding.end[kept],
        fixed=encoding.fixed[kept],
        types=types,
        positions=np.arange(len(kept)),
        truncated=encoding.truncated + surplus,
    )


def spans_of_tokens(ids: Sequence[int], codec: Codec) -> tuple[str, list[int], list[int]]:
    """Written text and where each of its tokens begins and ends in it.

    Ends are the lengths of growing prefixes. The bytes of an unfinished character read as a replacement sign,
    so lengths may not run ahead of the text nor back; a token that adds nothing belongs to the character before.
    """
    text = codec.text(ids)
    starts, ends = [], []
    longest = min(1, len(text))
    before = 0
    for count in range(1, len(ids) + 1):
        length = min(len(codec.text(ids[:count])), len(text))
        longest = max(longest, length)
        starts.append(min(before, longest - 1))
        ends.append(longest)
        before = longest
    return text, starts, ends
