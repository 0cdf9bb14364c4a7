"""Text to tokens with offsets, without ever calling the user's tokenizer.

A fast tokenizer keeps padding and truncation as state and changes it when called; two threads that call it
get in each other's way. So the codec owns a copy whose state is set once, and only reads from it.
"""

from __future__ import annotations

import copy
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from raison.core import limits
from raison.core.errors import InputError, ModelError
from raison.models.panics import checked

__all__ = ["Codec", "Pieces"]


@dataclass
class Pieces:
    """Tokens of one or two texts as the tokenizer makes them."""

    ids: np.ndarray  # [t]
    start: np.ndarray  # [t] -1 for special tokens
    end: np.ndarray  # [t]
    segment: np.ndarray  # [t] 0 or 1; special tokens go with the text before them
    special: np.ndarray  # [t]
    types: np.ndarray | None

    def take(self, chosen: np.ndarray) -> Pieces:
        """Some of the tokens."""
        return Pieces(
            ids=self.ids[chosen],
            start=self.start[chosen],
            end=self.end[chosen],
            segment=self.segment[chosen],
            special=self.special[chosen],
            types=None if self.types is None else self.types[chosen],
        )


class Codec:
    """A private copy of a tokenizer, used for reading only."""

    def __init__(self, tokenizer: Any):
        if tokenizer is None or not hasattr(tokenizer, "convert_ids_to_tokens"):
            raise ModelError(
                "This model has no tokenizer: pass one with raison.load(model, tokenizer=...)."
            )
        self.own = copy.deepcopy(tokenizer)
        is_fast = getattr(self.own, "is_fast", False)
        self.fast: Any = self.own.backend_tokenizer if is_fast else None
        self.lock = threading.Lock()  # slow tokenizers only
        if self.fast is not None:
            self.fast.no_padding()
            self.fast.no_truncation()
        self.typed = "token_type_ids" in getattr(self.own, "model_input_names", ())
        self.special_ids = frozenset(self.own.all_special_ids)

    @property
    def mask_id(self) -> int | None:
        token: int | None = self.own.mask_token_id
        return token

    @property
    def pad_id(self) -> int:
        """An id to fill unseen places with; any will do, but it must exist."""
        for found in (self.own.pad_token_id, self.own.eos_token_id, self.own.bos_token_id):
            if found is not None:
                return int(found)
        return 0

    @property
    def has_pad(self) -> bool:
        return self.own.pad_token_id is not None

    def name(self, token: int) -> str:
        """The token as it reads in text: a special token's own name, else its characters."""
        if token in self.special_ids:
            return str(self.own.convert_ids_to_tokens([token])[0])
        return self.text([token])

    def chat(self, message: str) -> str | None:
        """A user's message in the model's own chat format, up to where the answer begins; None if it has none."""
        if not getattr(self.own, "chat_template", None):
            return None
        turns = [{"role": "user", "content": message}]
        apply = partial(
            self.own.apply_chat_template, turns, tokenize=False, add_generation_prompt=True
        )
        text = str(checked(apply, no_chat))
        first = self.own.bos_token
        doubled = first and text.startswith(first) and self("x").ids[0] == self.own.bos_token_id
        return text[len(first) :] if doubled else text

    def text(self, ids: Any) -> str:
        numbers = [int(i) for i in ids]
        return str(checked(partial(self.own.decode, numbers), no_text))

    def __call__(self, text: str, pair: str | None = None, special: bool = True) -> Pieces:
        try:
            size = len(
                f"{text}{pair or ''}".encode()
            )  # each would fail in its own way, some with a crash inside C++
        except UnicodeEncodeError as error:
            raise InputError(
                f"The text holds characters that are not valid Unicode ({error}): re-encode it as UTF-8."
            ) from None
        limits.check_text_size(size)
        return checked(partial(self.pieces, text, pair, special), partial(no_tokens, text))

    def pieces(self, text: str, pair: str | None, special: bool) -> Pieces:
        if self.fast is not None:
            return self.from_fast(text, pair, special)
        with self.lock:
            return self.from_slow(text, pair, special)

    def target(self, text: str) -> list[int]:
        """Tokens of what an encoder-decoder writes: some cut the language of the target in another way."""
        limits.check_text_size(len(text.encode("utf-8", "surrogatepass")))

        def cut() -> list[int]:
            with self.lock:
                found = self.own(text_target=text, add_special_tokens=False)["input_ids"]
            return [int(token) for token in found]

        return checked(cut, partial(no_tokens, text))

    def bare(self, text: str) -> list[int]:
        """Tokens of a text that goes on where another stopped: without the ▁ that SentencePiece puts in front."""
        ids = [int(i) for i in self(text, special=False).ids]
        first = str(self.own.convert_ids_to_tokens(ids[:1])[0]) if ids else ""
        if not first.startswith("▁") or text[:1].isspace():
            return ids
        known = self.own.get_vocab()
        if first == "▁":
            return ids[1:]
        return [known[first[1:]], *ids[1:]] if first[1:] in known else ids

    def from_fast(self, text: str, pair: str | None, special: bool) -> Pieces:
        found = self.fast.encode(text, pair, add_special_tokens=special)
        ids = np.array(found.ids, dtype=np.int64)
        spans = np.array(found.offsets, dtype=np.int64).reshape(-1, 2)
        sequence = np.array(
            [-1 if number is None else number for number in found.sequence_ids], dtype=np.int64
        )
        for number, source in enumerate([text] if pair is None else [text, pair]):
            widen(spans, np.flatnonzero(sequence == number), source)
        added = sequence < 0  # by the tokenizer; "[SEP]" typed by a user is text
        return Pieces(
            ids=ids,
            start=np.where(added, -1, spans[:, 0]),
            end=np.where(added, -1, spans[:, 1]),
            segment=segments_of(sequence),
            special=added,
            types=np.array(found.type_ids, dtype=np.int64) if self.typed else None,
        )

    def from_slow(self, text: str, pair: str | None, special: bool) -> Pieces:
        texts = [text] if pair is None else [text, pair]
        parts = [self.own(each, add_special_tokens=False)["input_ids"] for each in texts]
        whole = (
            self.own.build_inputs_with_special_tokens(*parts) if special else list(chain(*parts))
        )
        ids = np.array(whole, dtype=np.int64)
        sequence = np.full(len(ids), -1)
        start, end = sequence.copy(), sequence.copy()
        cursor = 0
        for number, (part, source) in enumerate(zip(parts, texts, strict=True)):
            cursor = find(whole, part, cursor)
            names = self.own.convert_ids_to_tokens(part)
            spans = align(names, source, set(map(str, self.own.all_special_tokens)))
            for token, (begin, stop) in enumerate(spans, start=cursor):
                sequence[token], start[token], end[token] = number, begin, stop
            cursor += len(part)
        types = None
        if self.typed:
            types = np.array(
                self.own.create_token_type_ids_from_sequences(*parts) if special else sequence
            )
        return Pieces(
            ids=ids,
            start=start,
            end=end,
            segment=segments_of(sequence),
            special=sequence < 0,
            types=types,
        )


def no_tokens(text: str, reason: str) -> InputError:
    """A text that this tokenizer can't cut, though it may cut others."""
    return InputError(
        f"The model's tokenizer fails on the text {text[:40]!r} ({reason}): look into its tokenizer files, or use "
        "another text."
    )


def no_text(reason: str) -> ModelError:
    return ModelError(
        f"The model's tokenizer can't turn tokens into text ({reason}): look into its tokenizer files."
    )


def no_chat(reason: str) -> ModelError:
    return ModelError(
        f"The model's chat template can't be applied ({reason}): look into its tokenizer files."
    )


def widen(spans: np.ndarray, places: np.ndarray, text: str) -> None:
    """A normalizer may write several characters as one: a number as any number, a letter and its accent as one letter.

    The library then tells the last digit, or the bare letter; here the token gets the characters beside it that no
    other token has.
    """
    if not len(places):
        return
    accented = not text.isascii()
    before = 0
    for place, following in zip(places, [*spans[places[1:], 0], len(text)], strict=True):
        start, end = spans[place]
        if before < start < end and text[start].isdigit():
            while before < start and text[start - 1].isdigit():
                start -= 1
        while accented and start < end < following and unicodedata.combining(text[end]):
            end += 1
        spans[place] = start, end
        before = max(before, end)


def segments_of(sequence: np.ndarray) -> np.ndarray:
    """Give special tokens (-1) the segment of the text before them (the first, at the front)."""
    result: np.ndarray = sequence.copy()
    last = 0
    for token, value in enumerate(sequence):
        if value >= 0:
            last = int(value)
        result[token] = last
    return result


def find(whole: list[int], part: list[int], start: int) -> int:
    """Where `part` begins in `whole`."""
    for offset in range(start, len(whole) - len(part) + 1):
        if whole[offset : offset + len(part)] == part:
            return offset
    raise ModelError(
        "This slow tokenizer rewrites its pieces, so tokens can't be matched to the text."
    )


def clusters(text: str) -> Iterator[tuple[int, int]]:
    """Spans of characters that normalisation merges: a letter and its accents, ｶ and ﾞ, the parts of 한."""
    start = 0
    for place in range(1, len(text) + 1):
        before, char = text[start:place], text[place : place + 1]
        apart = unicodedata.normalize("NFKC", before) + unicodedata.normalize("NFKC", char)
        if not char or unicodedata.normalize("NFKC", before + char) == apart:
            yield start, place
            start = place


def align(names: list[str], text: str, unknown: set[str]) -> list[tuple[int, int]]:
    """Character spans of SentencePiece pieces in the text they came from.

    The pieces spell the text after compatibility normalisation, with ▁ for a space. Both are reduced to bare
    characters with a map back to the text; a piece that can't be found there (an unknown token) gets what
    lies between its neighbours.
    """
    letters: list[str] = []
    origin: list[tuple[int, int]] = []  # of each letter
    for start, end in clusters(text):
        plain = "".join(unicodedata.normalize("NFKC", text[start:end]).split())
        letters.extend(plain)
        origin.extend([(start, end)] * len(plain))
    bare = "".join(letters)
    found: list[tuple[int, int] | None] = []
    cursor = 0
    for name in names:
        piece = (
            ""
            if name in unknown
            else "".join(unicodedata.normalize("NFKC", name.replace("▁", "")).split())
        )
        place = bare.find(piece, cursor, cursor + len(piece) + 24) if piece else -1
        if place < 0:
            found.append(None)
        else:
            found.append((place, place + len(piece)))
            cursor = place + len(piece)
    spans: list[tuple[int, int]] = []
    for number, span in enumerate(found):
        if span is None:
            before = next((other[1] for other in reversed(found[:number]) if other), 0)
            after = next((other[0] for other in found[number + 1 :] if other), len(bare))
            span = (min(before, after), after)
        a, b = span
        if a < b:
            spans.append((origin[a][0], origin[b - 1][1]))
        else:  # a piece without letters: the space before what follows
            place = origin[a][0] if a < len(origin) else len(text)
            left, right = (
                spans[-1] if spans else (0, min(1, len(text)))
            )  # the space may be within a ligature: ﷺ
            spans.append((max(left, place - 1), max(right, place)))
    return spans
