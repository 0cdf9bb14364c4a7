"""Word vectors for a vocabulary: random, from a GloVe file or folder, or from a pretrained encoder."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.attention_models.vocabulary import SPECIAL, vocabulary_of
from raison.core.errors import InputError

__all__ = ["glove_vectors", "pretrained_vectors", "random_vectors"]

PADDING = SPECIAL.index("[PAD]")
# how a pretrained tokenizer calls what stands for the special words here
SPECIAL_IDS = {
    "[PAD]": "pad_token_id",
    "[UNK]": "unk_token_id",
    "[CLS]": "cls_token_id",
    "[SEP]": "sep_token_id",
    "[MASK]": "mask_token_id",
}


def random_vectors(count: int, width: int, generator: torch.Generator) -> torch.Tensor:
    """[count, width] small vectors; that of padding is zero."""
    vectors = torch.randn(count, width, generator=generator) * 0.1
    vectors[PADDING] = 0
    return vectors


def glove_vectors(
    path: Path,
    tokenizer: PreTrainedTokenizerBase,
    generator: torch.Generator,
    width: int | None = None,
) -> tuple[torch.Tensor, int]:
    """[v, d] vectors of a GloVe file (a word and its numbers in each line, or a folder with glove.npy and words.txt),
    and how many words it has; the others are drawn with the spread of the file's."""
    words = vocabulary_of(tokenizer)
    if path.is_dir():
        known = read_vectors_of_folder(path, set(words))
    else:
        known = read_vectors_of_file(path, set(words), width)
    if not known:
        raise InputError(
            f"None of the words of the texts is in {path.name}: is it a file of word vectors?"
        )
    size = len(next(iter(known.values())))
    if width is not None and size != width:
        raise wrong_width_of_vectors(path, size, width)

    spread = float(np.std(np.stack(list(known.values()))))
    vectors = torch.randn(len(words), size, generator=generator) * spread
    for number, word in enumerate(words):
        if word in known:
            vectors[number] = torch.from_numpy(np.asarray(known[word], np.float32))
    vectors[PADDING] = 0
    return vectors, len(known)


def wrong_width_of_vectors(path: Path, size: int, width: int) -> InputError:
    """The error of a file whose vectors are not as wide as the model."""
    return InputError(
        f"{path.name} has vectors of {size} numbers, and the model wants {width}: set width to {size}."
    )


def read_vectors_of_folder(path: Path, wanted: set[str]) -> dict[str, np.ndarray]:
    """The vectors of the wanted words in a folder with glove.npy and words.txt."""
    try:
        words = (path / "words.txt").read_text(encoding="utf-8").split("\n")
        vectors = np.load(path / "glove.npy", mmap_mode="r")
    except OSError:
        raise InputError(
            f"{path.name} holds no glove.npy with words.txt: name a GloVe file or such a folder."
        ) from None
    known = {}
    for number, word in enumerate(words[: len(vectors)]):
        if word in wanted:
            known[word] = np.array(vectors[number])
    return known


def read_vectors_of_file(path: Path, wanted: set[str], width: int | None) -> dict[str, np.ndarray]:
    """The vectors of the wanted words in a file of lines."""
    if not path.is_file():
        raise InputError(f"There is no file of word vectors {str(path)!r}: check the path.")
    known: dict[str, np.ndarray] = {}
    size = 0  # numbers in a line, once one was read
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            # some words of published files hold spaces: numbers are counted from the end
            word, *values = line.rstrip().rsplit(" ", size or -1)
            if number == 1 and len(values) == 1:
                continue  # word2vec's first line: how many, how wide
            size = size or len(values)
            if width is not None and len(values) != width:
                raise wrong_width_of_vectors(path, len(values), width)
            if len(values) != size:
                raise InputError(
                    f"Line {number} of {path.name} has {len(values)} numbers instead of {size}."
                )
            if word in wanted:
                known[word] = read_vector(values, f"Line {number} of {path.name}")
    return known


def read_vector(values: list[str], line: str) -> np.ndarray:
    """The numbers of a line; `line` names it in messages."""
    try:
        vector = np.array(values, np.float32)
    except ValueError:
        raise InputError(f"{line} is not a word with its numbers.") from None
    if not np.isfinite(vector).all():
        raise InputError(f"{line} holds NaN or infinite numbers: use an intact file.")
    return vector


def pretrained_vectors(
    model: PreTrainedModel, pieces: PreTrainedTokenizerBase, tokenizer: PreTrainedTokenizerBase
) -> torch.Tensor:
    """[v, d] word embeddings of a pretrained encoder, whose tokenizer is `pieces`; a word of several has their mean."""
    table = cast(nn.Embedding, model.get_input_embeddings()).weight.detach().float()
    vectors = []
    for word in vocabulary_of(tokenizer):
        rows = piece_ids_of_word(pieces, word)
        vector = torch.zeros(table.shape[1])
        if rows:
            vector = table[rows].mean(0)
        vectors.append(vector)
    stacked = torch.stack(vectors)
    stacked[PADDING] = 0
    return stacked


def piece_ids_of_word(pieces: PreTrainedTokenizerBase, word: str) -> list[int]:
    """The tokens of a word, or of what stands for a special one; none where a tokenizer has no such token."""
    if word in SPECIAL_IDS:
        special = getattr(pieces, SPECIAL_IDS[word], None)
        if special is None:
            return []
        return [special]
    ids: list[int] = pieces(word, add_special_tokens=False)["input_ids"]
    return ids
