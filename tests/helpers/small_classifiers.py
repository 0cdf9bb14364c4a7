"""Attention classifiers that fit into a test, and reviews that they can learn from in seconds."""

from __future__ import annotations

import numpy as np

from raison.attention_models.build import new_classifier
from raison.attention_models.config import ClassifierConfig
from raison.attention_models.module import AttentionClassifier
from raison.attention_models.vocabulary import words_tokenizer
from raison.attention_models.word_vectors import random_vectors
from raison.core.records import Example
from raison.training.seeds import seeded_generator

__all__ = ["BAD", "CONFIGS", "GOOD", "REST", "SMALL", "built", "reviews"]

GOOD = ["lovely", "funny", "warm", "clever", "moving"]
BAD = ["dull", "stale", "loud", "empty", "tired"]
REST = ["film", "story", "the", "a", "is", "and", "ending", "cast", "it", "very"]

# how a small classifier is trained
SMALL = {"epochs": 8, "batch": 16, "patience": 8, "lr": 5e-3}

# every encoder, attention, normalizer and combination at least once
CONFIGS = [
    {},
    {"encoder": "transformer", "layers": 2, "heads": 2},
    {"attention": "dot", "normalizer": "sparsemax", "combine": "concat"},
    {"normalizer": "sparsegen(lam=0.6)", "combine": "residual", "layers": 2},
    {"normalizer": "entmax(alpha=1.3)", "encoder": "transformer", "combine": "concat"},
]


def reviews(count: int, seed: int = 0) -> list[Example]:
    """Texts whose label is decided by one word among others."""
    rng = np.random.default_rng(seed)
    examples = []
    for number in range(count):
        label = int(rng.integers(2))
        words = [REST[k] for k in rng.integers(len(REST), size=rng.integers(4, 12))]
        words[rng.integers(len(words))] = (BAD, GOOD)[label][rng.integers(5)]
        examples.append(
            Example(" ".join(words), label=("negative", "positive")[label], id=str(number))
        )
    return examples


def built(
    seed: int = 0, double: bool = True, labels=("negative", "positive"), **settings
) -> AttentionClassifier:
    """An untrained classifier that knows the words of the reviews, with its tokenizer as an attribute."""
    config = ClassifierConfig(**{"width": 12, **settings})
    tokenizer = words_tokenizer([e.text for e in reviews(60)])
    vectors = random_vectors(len(tokenizer), 12, seeded_generator(seed)) * 5
    model = new_classifier(config, tokenizer, list(labels), vectors, seed)
    model = model.double() if double else model
    model.tokenizer = tokenizer
    return model.eval().requires_grad_(False)
