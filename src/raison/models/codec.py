"""The codec: text to tokens with their places in it, as spans of characters, and back, without ever calling the
user's tokenizer.

A fast tokenizer keeps padding and truncation as state and changes it when called; two threads that call it
get in each other's way. So the codec owns a copy whose state is set once, and only reads from it.
"""

from __future__ import annotations

import copy
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from raison.core import limits
from raison.core.errors import InputError, ModelError, TooLong
from raison.models.panics import failing_as

if TYPE_CHECKING:
    from tokenizers import Tokenizer as FastTokenizer
    from transformers import PreTrainedTokenizerBase

__all__ = ["Codec", "Pieces"]

Span: TypeAlias = tuple[int, int]  # of characters: from, up to


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

    def without_surplus(self, surplus: int, *, from_start: bool = False) -> Pieces:
        """Without so many ordinary tokens of the longer text: of its end, or of its start."""
        ordinary = ~self.special
        first = np.flatnonzero(ordinary & (self.segment == 0))
        second = np.flatnonzero(ordinary & (self.segment == 1))
        if len(first) + len(second) <= surplus:
            raise TooLong("The model's limit leaves no room for any word of the text.")

        # level the two lengths first, then take turns
        both = max(0, surplus - abs(len(first) - len(second)))
        longer = int(len(second) > len(first))
        gone = [both // 2, both // 2]
        gone[longer] += surplus - both + both % 2

        dropped = []
        for places, count in zip((first, second), gone, strict=True):
            dropped.append(places[:count] if from_start else places[len(places) - count :])
        return self.take(np.setdiff1d(np.arange(len(self.ids)), np.concatenate(dropped)))


class Codec:
    """A private copy of a tokenizer, used for reading only."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        if tokenizer is None or not hasattr(tokenizer, "convert_ids_to_tokens"):
            raise ModelError(
                "This model has no tokenizer: pass one with raison.load(model, tokenizer=...)."
            )
        self.own = copy.deepcopy(tokenizer)
        self.fast: FastTokenizer | None = None
        self.lock = threading.Lock()  # slow tokenizers only
        if getattr(self.own, "is_fast", False):
            self.fast = self.own.backend_tokenizer
            self.fast.no_padding()
            self.fast.no_truncation()
        self.typed = "token_type_ids" in getattr(self.own, "model_input_names", ())
        self.special_ids = frozenset(self.own.all_special_ids)
        self.mask_id: int | None = self.own.mask_token_id
        self.has_pad = self.own.pad_token_id is not None
        # an id to fill unseen places with; any will do, but it must exist
        ends = (self.own.pad_token_id, self.own.eos_token_id, self.own.bos_token_id)
        self.pad_id = next((int(token) for token in ends if token is not None), 0)

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
        with failing_as(no_chat):
            text = str(
                self.own.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
            )
        first = self.own.bos_token
        doubled = first and text.startswith(first) and self("x").ids[0] == self.own.bos_token_id
        return text.removeprefix(first) if doubled else text

    def text(self, ids: Iterable[int]) -> str:
        """The text that tokens spell."""
        numbers = [int(token) for token in ids]
        with failing_as(no_text):
            return str(self.own.decode(numbers))

    def __call__(self, text: str, pair: str | None = None, special: bool = True) -> Pieces:
        whole = f"{text}{pair or ''}"
        try:
            # each would fail in its own way, some with a crash inside C++
            size = len(whole.encode())
        except UnicodeEncodeError as error:
            raise InputError(
                f"The text holds characters that are not valid Unicode ({error}): re-encode it as UTF-8."
            ) from None
        limits.check_text_size(size)
        with failing_as(partial(no_tokens, text)):
            if self.fast is not None:
                return self.pieces_of_fast(self.fast, text, pair, special)
            with self.lock:
                return self.pieces_of_slow(text, pair, special)

    def target(self, text: str) -> list[int]:
        """Tokens of what an encoder-decoder writes: some cut the language of the target in another way."""
        limits.check_text_size(len(text.encode("utf-8", "surrogatepass")))
        with failing_as(partial(no_tokens, text)), self.lock:
            found = self.own(text_target=text, add_special_tokens=False)["input_ids"]
            return [int(token) for token in found]

    def bare(self, text: str) -> list[int]:
        """Tokens of a text that goes on where another stopped: without the ▁ that SentencePiece puts in front."""
        ids: list[int] = self(text, special=False).ids.tolist()
        if not ids or text[:1].isspace():
            return ids
        first = str(self.own.convert_ids_to_tokens(ids[:1])[0])
        if not first.startswith("▁"):
            return ids
        if first == "▁":
            return ids[1:]
        known = self.own.get_vocab()
        without_space = first[1:]
        if without_space not in known:
            return ids
        return [known[without_space], *ids[1:]]

    def pieces_of_fast(
        self, fast: FastTokenizer, text: str, pair: str | None, special: bool
    ) -> Pieces:
        """What a tokenizer of the tokenizers library makes of texts; it tells the offsets."""
        found = fast.encode(text, pair, add_special_tokens=special)
        spans = np.array(found.offsets, dtype=np.int64).reshape(-1, 2)
        numbers = [-1 if number is None else number for number in found.sequence_ids]
        sequence = np.array(numbers, dtype=np.int64)
        for number, source in enumerate([text, pair or ""]):
            widen_spans(spans, np.flatnonzero(sequence == number), source)
        added = sequence < 0  # by the tokenizer; "[SEP]" typed by a user is text
        return Pieces(
            ids=np.array(found.ids, dtype=np.int64),
            start=np.where(added, -1, spans[:, 0]),
            end=np.where(added, -1, spans[:, 1]),
            segment=segments_of(sequence),
            special=added,
            types=np.array(found.type_ids, dtype=np.int64) if self.typed else None,
        )

    def pieces_of_slow(self, text: str, pair: str | None, special: bool) -> Pieces:
        """What a tokenizer in Python makes of texts; where its pieces stand has to be found."""
        texts = [text] if pair is None else [text, pair]
        parts = [self.own(each, add_special_tokens=False)["input_ids"] for each in texts]
        whole = list(chain(*parts))
        if special:
            whole = self.own.build_inputs_with_special_tokens(*parts)
        ids = np.array(whole, dtype=np.int64)
        sequence = np.full(len(ids), -1)
        start = sequence.copy()
        end = sequence.copy()
        unknown = set(map(str, self.own.all_special_tokens))
        cursor = 0
        for number, (part, source) in enumerate(zip(parts, texts, strict=True)):
            cursor = place_of_part(whole, part, cursor)
            names = list(self.own.convert_ids_to_tokens(part))
            spans = align(names, source, unknown)
            for token, (begin, stop) in enumerate(spans, start=cursor):
                sequence[token] = number
                start[token] = begin
                end[token] = stop
            cursor += len(part)

        types = None
        if self.typed and special:
            types = np.array(self.own.create_token_type_ids_from_sequences(*parts))
        elif self.typed:
            types = np.array(sequence)
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


def widen_spans(spans: np.ndarray, places: np.ndarray, text: str) -> None:
    """Give tokens the characters that were merged into them.

    A normalizer may write several characters as one: a number as any number, a letter and its accent as one letter.

    The library then tells the last digit, or the bare letter; here the token gets the characters beside it that no
    other token has.
    """
    if not len(places):
        return
    accented = not text.isascii()
    before = 0
    begins_of_next = [*spans[places[1:], 0], len(text)]
    for place, following in zip(places, begins_of_next, strict=True):
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


def place_of_part(whole: list[int], part: list[int], start: int) -> int:
    """Where `part` begins in `whole`."""
    for offset in range(start, len(whole) - len(part) + 1):
        if whole[offset : offset + len(part)] == part:
            return offset
    raise ModelError(
        "This slow tokenizer rewrites its pieces, so tokens can't be matched to the text."
    )


def letter_groups(text: str) -> Iterator[Span]:
    """Spans of characters that normalisation merges: a letter and its accents, ｶ and ﾞ, the parts of 한."""
    start = 0
    for place in range(1, len(text) + 1):
        before, char = text[start:place], text[place : place + 1]
        apart = unicodedata.normalize("NFKC", before) + unicodedata.normalize("NFKC", char)
        if not char or unicodedata.normalize("NFKC", before + char) == apart:
            yield start, place
            start = place


def bare_characters(text: str) -> str:
    """A text after compatibility normalisation, without white space."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def align(names: list[str], text: str, unknown: set[str]) -> list[Span]:
    """Character spans of SentencePiece pieces in the text they came from.

    The pieces spell the text after compatibility normalisation, with ▁ for a space. Both are reduced to bare
    characters with a map back to the text; a piece that can't be found there (an unknown token) gets what
    lies between its neighbours.
    """
    bare = ""
    origins: list[Span] = []  # of each bare character
    for start, end in letter_groups(text):
        plain = bare_characters(text[start:end])
        bare += plain
        origins += [(start, end)] * len(plain)

    spans: list[Span] = []
    for first, last in with_gaps_filled(places_of_pieces(names, bare, unknown), len(bare)):
        if first < last:
            begin, _ = origins[first]
            _, end = origins[last - 1]
            spans.append((begin, end))
            continue
        # a piece without letters: the space before what follows, which may be within a ligature: ﷺ
        place = origins[first][0] if first < len(origins) else len(text)
        left, right = spans[-1] if spans else (0, min(1, len(text)))
        spans.append((max(left, place - 1), max(right, place)))
    return spans


def places_of_pieces(names: list[str], bare: str, unknown: set[str]) -> list[Span | None]:
    """Where each piece stands among the bare characters; None where it can't be found."""
    places: list[Span | None] = []
    cursor = 0
    for name in names:
        piece = "" if name in unknown else bare_characters(name.replace("▁", ""))
        end = cursor + len(piece) + 24
        place = bare.find(piece, cursor, end)
        if not piece or place < 0:
            places.append(None)
            continue
        cursor = place + len(piece)
        places.append((place, cursor))
    return places


def with_gaps_filled(places: list[Span | None], size: int) -> list[Span]:
    """The places, where those that are not known lie between their neighbours."""
    following = [size]  # where what is known behind each place begins, from the last place on
    for place in reversed(places):
        following.append(following[-1] if place is None else place[0])

    filled = []
    before = 0
    for number, place in enumerate(places):
        after = following[len(places) - 1 - number]
        if place is None:
            place = (min(before, after), after)
        else:
            before = place[1]
        filled.append(place)
    return filled
