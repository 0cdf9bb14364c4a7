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

FAR = 24  # characters between the place of a piece and the end of the one before, at most


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
        types = None
        if self.types is not None:
            types = self.types[chosen]
        return Pieces(
            ids=self.ids[chosen],
            start=self.start[chosen],
            end=self.end[chosen],
            segment=self.segment[chosen],
            special=self.special[chosen],
            types=types,
        )

    def without_surplus(self, surplus: int, *, from_start: bool = False) -> Pieces:
        """Without so many ordinary tokens of the longer text: of its end, or of its start."""
        first = self.ordinary_of_segment(0)
        second = self.ordinary_of_segment(1)
        if len(first) + len(second) <= surplus:
            raise TooLong("The model's limit leaves no room for any word of the text.")

        # level the two lengths first, then take turns
        difference = abs(len(first) - len(second))
        both = max(0, surplus - difference)
        half = both // 2
        gone = [half, half]
        longer = int(len(second) > len(first))
        gone[longer] = surplus - half

        dropped: list[int] = []
        for places, count in zip((first, second), gone, strict=True):
            if from_start:
                dropped += places[:count]
            else:
                kept = len(places) - count
                dropped += places[kept:]
        everything = np.arange(len(self.ids))
        return self.take(np.setdiff1d(everything, dropped))

    def ordinary_of_segment(self, number: int) -> list[int]:
        """Where the ordinary tokens of a text stand."""
        ordinary = ~self.special
        inside = self.segment == number
        places: list[int] = np.flatnonzero(ordinary & inside).tolist()
        return places


class Codec:
    """A private copy of a tokenizer, used for reading only."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        if tokenizer is None or not hasattr(tokenizer, "convert_ids_to_tokens"):
            raise ModelError(
                "This model has no tokenizer: pass one with raison.load(model, tokenizer=...)."
            )
        own = copy.deepcopy(tokenizer)
        self.own = own
        self.fast: FastTokenizer | None = None
        self.lock = threading.Lock()  # slow tokenizers only
        if getattr(own, "is_fast", False):
            self.fast = own.backend_tokenizer
            self.fast.no_padding()
            self.fast.no_truncation()

        input_names = getattr(own, "model_input_names", ())
        self.typed = "token_type_ids" in input_names
        self.special_ids = frozenset(own.all_special_ids)
        self.mask_id: int | None = own.mask_token_id
        self.has_pad = own.pad_token_id is not None
        self.pad_id = 0
        # an id to fill unseen places with; any will do, but it must exist
        for token in (own.pad_token_id, own.eos_token_id, own.bos_token_id):
            if token is not None:
                self.pad_id = int(token)
                break

    def name(self, token: int) -> str:
        """The token as it reads in text: a special token's own name, else its characters."""
        if token in self.special_ids:
            names = self.own.convert_ids_to_tokens([token])
            return str(names[0])
        return self.text([token])

    def chat(self, message: str) -> str | None:
        """A user's message in the model's own chat format, up to where the answer begins; None if it has none."""
        if not getattr(self.own, "chat_template", None):
            return None
        turns = [{"role": "user", "content": message}]
        with failing_as(no_chat_for_codec):
            rendered = self.own.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=True
            )
            text = str(rendered)

        first = self.own.bos_token
        if not first or not text.startswith(first):
            return text
        is_added_again = self("x").ids[0] == self.own.bos_token_id
        if is_added_again:
            return text.removeprefix(first)
        return text

    def text(self, ids: Iterable[int]) -> str:
        """The text that tokens spell."""
        numbers = [int(token) for token in ids]
        with failing_as(no_text_for_codec):
            return str(self.own.decode(numbers))

    def __call__(self, text: str, pair: str | None = None, special: bool = True) -> Pieces:
        whole = text
        if pair is not None:
            whole = text + pair
        try:
            # each would fail in its own way, some with a crash inside C++
            encoded = whole.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"The text holds characters that are not valid Unicode ({error}): re-encode it as UTF-8."
            ) from None
        limits.check_text_size(len(encoded))
        with failing_as(partial(no_tokens, text)):
            if self.fast is not None:
                return self.pieces_of_fast(self.fast, text, pair, special)
            with self.lock:
                return self.pieces_of_slow(text, pair, special)

    def target(self, text: str) -> list[int]:
        """Tokens of what an encoder-decoder writes: some cut the language of the target in another way."""
        encoded = text.encode("utf-8", "surrogatepass")
        limits.check_text_size(len(encoded))
        with failing_as(partial(no_tokens, text)), self.lock:
            found = self.own(text_target=text, add_special_tokens=False)
            ids = found["input_ids"]
            return [int(token) for token in ids]

    def bare(self, text: str) -> list[int]:
        """Tokens of a text that goes on where another stopped: without the ▁ that SentencePiece puts in front."""
        ids: list[int] = self(text, special=False).ids.tolist()
        if not ids or text[:1].isspace():
            return ids
        names = self.own.convert_ids_to_tokens(ids[:1])
        first = str(names[0])
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
        ids = np.array(found.ids, dtype=np.int64)
        offsets = np.array(found.offsets, dtype=np.int64)
        spans = offsets.reshape(-1, 2)

        sequence = np.full(len(ids), -1, dtype=np.int64)
        for token, number in enumerate(found.sequence_ids):
            if number is not None:
                sequence[token] = number
        for number, source in enumerate([text, pair or ""]):
            places = np.flatnonzero(sequence == number)
            widen_spans(spans, places, source)

        added = sequence < 0  # by the tokenizer; "[SEP]" typed by a user is text
        spans[added] = -1
        types = None
        if self.typed:
            types = np.array(found.type_ids, dtype=np.int64)
        return Pieces(
            ids=ids,
            start=spans[:, 0].copy(),
            end=spans[:, 1].copy(),
            segment=segments_of_tokens(sequence),
            special=added,
            types=types,
        )

    def pieces_of_slow(self, text: str, pair: str | None, special: bool) -> Pieces:
        """What a tokenizer in Python makes of texts; where its pieces stand has to be found."""
        texts = [text]
        if pair is not None:
            texts.append(pair)
        parts = []
        for each in texts:
            found = self.own(each, add_special_tokens=False)
            parts.append(found["input_ids"])

        whole = list(chain(*parts))
        if special:
            whole = self.own.build_inputs_with_special_tokens(*parts)
        ids = np.array(whole, dtype=np.int64)
        sequence = np.full(len(ids), -1)
        start = sequence.copy()
        end = sequence.copy()
        unknown = set(map(str, self.own.all_special_tokens))
        cursor = 0
        for number, part in enumerate(parts):
            cursor = place_of_part(whole, part, cursor)
            names = self.own.convert_ids_to_tokens(part)
            spans = align_pieces_with_characters(list(names), texts[number], unknown)
            for token, (begin, stop) in enumerate(spans, start=cursor):
                sequence[token] = number
                start[token] = begin
                end[token] = stop
            cursor += len(part)

        types = None
        if self.typed and special:
            numbers = self.own.create_token_type_ids_from_sequences(*parts)
            types = np.array(numbers)
        elif self.typed:
            types = np.array(sequence)
        return Pieces(
            ids=ids,
            start=start,
            end=end,
            segment=segments_of_tokens(sequence),
            special=sequence < 0,
            types=types,
        )


def no_tokens(text: str, reason: str) -> InputError:
    """A text that this tokenizer can't cut, though it may cut others."""
    return InputError(
        f"The model's tokenizer fails on the text {text[:40]!r} ({reason}): look into its tokenizer files, or use "
        "another text."
    )


def no_text_for_codec(reason: str) -> ModelError:
    return ModelError(
        f"The model's tokenizer can't turn tokens into text ({reason}): look into its tokenizer files."
    )


def no_chat_for_codec(reason: str) -> ModelError:
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
    later_places = places[1:]
    begins_of_next = [*spans[later_places, 0], len(text)]
    for place, following in zip(places, begins_of_next, strict=True):
        start, end = spans[place]
        is_number = before < start < end and text[start].isdigit()
        if is_number:
            while before < start and text[start - 1].isdigit():
                start -= 1
        if accented and start < end:
            while end < following and unicodedata.combining(text[end]):
                end += 1
        spans[place] = start, end
        before = max(before, end)


def segments_of_tokens(sequence: np.ndarray) -> np.ndarray:
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
    size = len(part)
    last = len(whole) - size
    for offset in range(start, last + 1):
        if whole[offset : offset + size] == part:
            return offset
    raise ModelError(
        "This slow tokenizer rewrites its pieces, so tokens can't be matched to the text."
    )


def spans_of_letter_groups(text: str) -> Iterator[Span]:
    """Spans of characters that normalisation merges: a letter and its accents, ｶ and ﾞ, the parts of 한."""
    start = 0
    for place in range(1, len(text) + 1):
        before = text[start:place]
        following = text[place : place + 1]  # nothing behind the last character
        together = unicodedata.normalize("NFKC", before + following)
        apart = unicodedata.normalize("NFKC", before)
        apart += unicodedata.normalize("NFKC", following)
        if not following or together == apart:
            yield start, place
            start = place


def bare_characters(text: str) -> str:
    """A text after compatibility normalisation, without white space."""
    normal = unicodedata.normalize("NFKC", text)
    return "".join(normal.split())


def align_pieces_with_characters(names: list[str], text: str, unknown: set[str]) -> list[Span]:
    """Character spans of SentencePiece pieces in the text they came from.

    The pieces spell the text after compatibility normalisation, with ▁ for a space. Both are reduced to bare
    characters with a map back to the text; a piece that can't be found there (an unknown token) gets what
    lies between its neighbours.
    """
    bare = ""
    origins: list[Span] = []  # of each bare character
    for start, end in spans_of_letter_groups(text):
        plain = bare_characters(text[start:end])
        bare += plain
        origins += [(start, end)] * len(plain)

    places = places_of_pieces(names, bare, unknown)
    spans: list[Span] = []
    left, right = 0, min(1, len(text))  # the span before, or the first character
    for first, last in places_with_gaps_filled(places, len(bare)):
        if first < last:
            left, _ = origins[first]
            _, right = origins[last - 1]
        else:
            # a piece without letters: the space before what follows, which may be within a ligature: ﷺ
            place = len(text)
            if first < len(origins):
                place, _ = origins[first]
            left = max(left, place - 1)
            right = max(right, place)
        spans.append((left, right))
    return spans


def places_of_pieces(names: list[str], bare: str, unknown: set[str]) -> list[Span | None]:
    """Where each piece stands among the bare characters; None where it can't be found."""
    places: list[Span | None] = []
    cursor = 0
    for name in names:
        piece = ""
        if name not in unknown:
            without_marks = name.replace("▁", "")
            piece = bare_characters(without_marks)
        size = len(piece)
        place = bare.find(piece, cursor, cursor + size + FAR)
        if not piece or place < 0:
            places.append(None)
            continue
        cursor = place + size
        places.append((place, cursor))
    return places


def places_with_gaps_filled(places: list[Span | None], size: int) -> list[Span]:
    """The places, where those that are not known lie between their neighbours."""
    begins_behind = []  # where what is known behind each place begins, from the last place on
    after = size
    for place in reversed(places):
        begins_behind.append(after)
        if place is not None:
            after, _ = place

    filled = []
    before = 0
    for place, after in zip(places, reversed(begins_behind), strict=True):
        if place is None:
            place = (min(before, after), after)
        else:
            _, before = place
        filled.append(place)
    return filled
