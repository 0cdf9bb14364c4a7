"""Baselines of path methods: word embeddings that stand for an absent word (zero, pad, mask, mean, a text).

    zero         no embedding at all; RMSNorm divides it by almost nothing, so the path jumps at its very start
    pad          the embedding of the padding token
    mask         the embedding of the mask token
    mean         the mean of the word table (of each of the two, where encoder and decoder have their own)
    text:TEXT    the tokens of a text, laid over the words in order, and again from its start until all are covered
    auto         mask where the tokenizer has one, else pad, else mean

Only what may be removed becomes absent. Special tokens, the rows that a target is read from and its own tokens keep
their embeddings, so that what a path explains is what an explanation may score. Padding whose embedding is zero is
zero by another name: `auto` passes over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
import torch
from torch import nn

from raison.core.errors import InputError, Unsupported
from raison.core.records import Encoding, Target
from raison.core.registry import suggest_name
from raison.models.codec import Codec
from raison.models.protocol import Model
from raison.models.runner.batching import streams_of_batch_piece

__all__ = [
    "BASELINES",
    "Baseline",
    "WordEmbeddings",
    "check_baseline",
    "tokens_moved_from_baseline",
]

BASELINES = ("auto", "zero", "pad", "mask", "mean")
TEXT = "text:"  # before a text of the user's own, so that a misspelt name is no text
BLOCK = 8192  # rows of a word table averaged at a time


def check_baseline(name: object) -> None:
    """Refuse what is no baseline."""
    if isinstance(name, str) and name.startswith(TEXT):
        text = name.removeprefix(TEXT)
        if not text.strip():
            raise InputError("The text of the baseline is empty: write baseline='text:some words'.")
    elif name not in BASELINES:
        hint = suggest_name(str(name), list(BASELINES))
        known = ", ".join(BASELINES)
        raise InputError(
            f"There is no baseline {name!r}.{hint} Use one of {known}, "
            "or a text of your own as 'text:some words'."
        )


class EmbeddingModel(Protocol):
    """What a model has whose words are looked up in tables (offer "gradients")."""

    name: str
    codec: Codec

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""

    @property
    def tables(self) -> list[nn.Embedding]:
        """The word table of each stream; one for both where they share it."""

    def pieces_of(self, encoding: Encoding, position: int, text: str) -> list[int]:
        """Of a model that writes: ids of a text that could stand at a position of the encoding."""


class WordEmbeddings:
    """The word embeddings of a model, on the axis of an encoding."""

    def __init__(self, model: Model):
        self.model = cast("EmbeddingModel", model)
        self.tables = self.model.tables
        self.means: dict[int, torch.Tensor] = {}
        self.known = []  # per stream: ids of words
        for table in self.tables:
            words = self.vocabulary(table.num_embeddings)
            self.known.append(words)

    def vocabulary(self, size: int) -> np.ndarray:
        """Ids that are words: neither special tokens nor rows that the tokenizer does not know."""
        codec = self.model.codec
        count = min(size, len(codec.own))
        ids = np.arange(count)
        special = sorted(codec.special_ids)
        return np.setdiff1d(ids, special)

    def rows(self, stream: int, ids: Sequence[int] | np.ndarray) -> torch.Tensor:
        """[n d] embeddings of token ids."""
        table = self.tables[stream]
        with torch.inference_mode(False), torch.no_grad():
            indices = torch.as_tensor(np.array(ids), device=self.model.device)
            looked_up: torch.Tensor = table(indices)
            return looked_up.detach()

    def of(self, encoding: Encoding) -> torch.Tensor:
        """[t d] the embeddings of the text itself."""
        rows = []
        for stream, index in enumerate(streams_of_batch_piece(encoding)):
            ids = encoding.ids[index]
            rows_of_stream = self.rows(stream, ids)
            rows.append(rows_of_stream)
        return self.joined(encoding, rows)

    def joined(self, encoding: Encoding, rows: list[torch.Tensor]) -> torch.Tensor:
        """[t d] rows of each stream on the one axis."""
        first = rows[0]
        width = first.shape[-1]
        device = first.device
        result = torch.zeros(len(encoding), width, dtype=first.dtype, device=device)
        for index, rows_of_stream in zip(streams_of_batch_piece(encoding), rows, strict=True):
            places = torch.from_numpy(index).to(device)
            result[places] = rows_of_stream.to(device)
        return result

    def mean(self, stream: int) -> torch.Tensor:
        """[d] the mean of a stream's table."""
        if stream not in self.means:
            table = self.tables[stream]
            size = table.num_embeddings
            total = torch.zeros(table.embedding_dim, dtype=torch.float64)
            for start in range(0, size, BLOCK):
                end = min(start + BLOCK, size)
                block = self.rows(stream, range(start, end))
                precise = block.cpu().double()
                total = total + precise.sum(0)
            mean = total / size
            self.means[stream] = mean.to(table.weight)
        return self.means[stream]

    def has(self, token: int | None) -> bool:
        """Every table has a row for the token, and there is something in it."""
        if token is None:
            return False
        for stream, table in enumerate(self.tables):
            if token >= table.num_embeddings:
                return False
            embedding = self.rows(stream, [token])
            if not embedding.any():
                return False
        return True


@dataclass
class Baseline:
    """One baseline for one model; `name` says which, also where the model was left the choice."""

    words: WordEmbeddings
    name: str

    def __post_init__(self) -> None:
        model = self.words.model
        codec = model.codec
        token_of = {"mask": codec.mask_id, "pad": None}
        if codec.has_pad:
            token_of["pad"] = codec.pad_id
        if self.name == "auto":
            self.name = self.best_name(token_of)
        self.token = token_of.get(self.name)  # where a token stands for every absent word
        needs_token = self.name in token_of
        if needs_token and self.token is None:
            raise Unsupported(
                f"{model.name} has no {self.name} token to be a baseline: use baseline='mean' or 'auto'."
            )

    def best_name(self, token_of: dict[str, int | None]) -> str:
        """The first of the tokens that has an embedding; else the mean."""
        for name, token in token_of.items():
            if self.words.has(token):
                return name
        return "mean"

    def rows(self, encoding: Encoding, moved: np.ndarray) -> torch.Tensor:
        """[t d] the baseline of a text: absent where `moved` [t], the text's own embeddings elsewhere."""
        own = self.words.of(encoding)
        rows = []
        for stream, index in enumerate(streams_of_batch_piece(encoding)):
            moved_of_stream = moved[index]
            rows_of_stream = self.rows_of_stream(encoding, stream, moved_of_stream)
            rows.append(rows_of_stream)
        absent = self.words.joined(encoding, rows)
        is_absent = torch.from_numpy(moved).to(own.device)
        return torch.where(is_absent[:, None], absent, own)

    def rows_of_stream(self, encoding: Encoding, stream: int, moved: np.ndarray) -> torch.Tensor:
        """[n d] what stands for each token of a stream."""
        count = len(moved)
        if self.name == "zero":
            width = self.words.tables[stream].embedding_dim
            return torch.zeros(count, width, dtype=self.dtype, device=self.words.model.device)
        if self.name == "mean":
            return self.words.mean(stream).expand(count, -1)
        if self.token is not None:
            same_token = np.full(count, self.token)
            return self.words.rows(stream, same_token)
        ids = self.text_ids(encoding, stream)
        moved_so_far = np.cumsum(moved)
        place = np.maximum(moved_so_far - 1, 0)  # [n] the how-manyth of those that move
        repeated = ids[place % len(ids)]
        return self.words.rows(stream, repeated)

    @property
    def dtype(self) -> torch.dtype:
        first_table = self.words.tables[0]
        return first_table.weight.dtype

    def text_ids(self, encoding: Encoding, stream: int) -> np.ndarray:
        """The tokens of the user's text; a decoder may have a vocabulary of its own."""
        model = self.words.model
        text = self.name.removeprefix(TEXT)
        if stream:
            end = len(encoding)
            pieces = model.pieces_of(encoding, end, text)
            return np.array(pieces)
        encoded = model.codec(text, special=False)
        ids = np.asarray(encoded.ids)
        if not len(ids):
            raise InputError(
                "The tokenizer makes no tokens of the baseline's text: give some words."
            )
        return ids

    def notes(self, encoding: Encoding, moved: np.ndarray) -> list[str]:
        """What a reader should know: a text of which only the beginning fits."""
        if not self.name.startswith(TEXT):
            return []
        for stream, index in enumerate(streams_of_batch_piece(encoding)):
            ids = self.text_ids(encoding, stream)
            size = len(ids)
            moved_of_stream = moved[index]
            room = int(moved_of_stream.sum())
            if 0 < room < size:
                note = f"The baseline's text has {size} tokens, of which only the first {room} fit."
                return [note]
        return []


def tokens_moved_from_baseline(encoding: Encoding, target: Target, moved: str) -> np.ndarray:
    """[t] what goes from absent to present on a path: what may be removed, or all that the target may see."""
    if moved == "free":
        return target.free(encoding)
    length = len(encoding)
    return target.scope(length)
