"""Builds a new attention classifier with random weights, and opens the word vectors that it starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.attention_models.config import ClassifierConfig
from raison.attention_models.module import AttentionClassifier, StoredClassifierConfig
from raison.attention_models.vocabulary import SPECIAL
from raison.attention_models.word_vectors import glove_vectors, pretrained_vectors, random_vectors
from raison.core.errors import InputError
from raison.models import catalog
from raison.models.load_options import LoadOptions
from raison.models.pretrained import checkpoint_from_folder_or_hub

__all__ = ["WordVectors", "new_classifier", "word_vectors"]


def new_classifier(
    config: ClassifierConfig,
    tokenizer: PreTrainedTokenizerBase,
    labels: Sequence[str],
    vectors: torch.Tensor,
    seed: int,
) -> AttentionClassifier:
    """A classifier with these word vectors; its other weights are a function of the seed."""
    stored = StoredClassifierConfig(
        config.to_dict(),
        len(tokenizer),
        special_ids=[SPECIAL.index(name) for name in ("[PAD]", "[CLS]", "[SEP]")],
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        pad_token_id=SPECIAL.index("[PAD]"),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AttentionClassifier(stored)
    with torch.no_grad():
        model.words.weight.copy_(vectors)
    return model


@dataclass(frozen=True)
class WordVectors:
    """The vectors of a vocabulary, and where they come from."""

    vectors: torch.Tensor  # [v d]
    origin: str  # random, the name of a file, or of a model
    known: int | None = None  # words that the file has a vector of


def word_vectors(
    embeddings: str, width: int, tokenizer: PreTrainedTokenizerBase, generator: torch.Generator
) -> WordVectors:
    """The vectors that `embeddings` names; `width` is that of random ones."""
    if embeddings == "random":
        return WordVectors(random_vectors(len(tokenizer), width, generator), "random")
    path = Path(embeddings).expanduser()
    if path.is_file() or (path / "words.txt").is_file():
        vectors, known = glove_vectors(path, tokenizer, generator)
        return WordVectors(vectors, path.name, known)
    model, pieces = pretrained_word_model(embeddings, path)
    return WordVectors(pretrained_vectors(model, pieces, tokenizer), path.name)


def pretrained_word_model(name: str, path: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A model of the catalog or of a folder, with its tokenizer."""
    if name in catalog.catalog_entries():
        return catalog.catalog_entries()[name].open()
    if path.is_dir():
        checkpoint = checkpoint_from_folder_or_hub(str(path), LoadOptions()).complete()
        return checkpoint.model, checkpoint.tokenizer
    raise InputError(
        f"{name!r} is no file of word vectors and no model here: write random, a GloVe file, or a model such as minilm."
    )
