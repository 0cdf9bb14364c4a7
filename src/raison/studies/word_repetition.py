"""Repetition of a word that stands alone: is the same word predicted behind it? (P0 section 4.2)

    f(y_{t+1} = w | y_t = w)          only w is left, at its position t
    f(y_{t+1} = w | y_1, y_t = w)     one other word is left as well, at the first position

A language model has learned what follows the first token of a text from that token alone, but has never seen a token
alone at a later position, unless words were dropped in training. With rotary positions the first line does not depend
on t, the second does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raison.core import progress
from raison.core.errors import InputError
from raison.core.records import Example
from raison.models.protocol import Question
from raison.models.runner.score_cache import Memory

__all__ = ["WordRepetition", "frequent_words", "repetition_of_word"]

BEFORE = "a"  # so that a word is read as it is within a text
WORD = re.compile(r"(?<!\S)[^\W\d_]+(?!\S)")


@dataclass(frozen=True)
class WordRepetition:
    """What a model says behind one word: [t] for each position of it."""

    alone: np.ndarray  # f(w | w), positions from the first on
    alone_top: np.ndarray  # whether w is the first choice
    beside: np.ndarray  # f(w | another word first, w), positions from the second on
    beside_top: np.ndarray


def frequent_words(model: Any, texts: Iterable[str], count: int) -> list[str]:
    """The most frequent words of texts that are one token with the space before them, most frequent first; with it."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(WORD.findall(text))

    before = len(ids_of_word_tokens(model, BEFORE))
    words: list[str] = []
    for word, _ in counts.most_common():
        ids = ids_of_word_tokens(model, f"{BEFORE} {word} {word}")
        is_one_token = len(ids) == before + 2 and ids[-1] == ids[-2]
        if is_one_token:
            words.append(f" {word}")
        if len(words) == count:
            break
    return words


def ids_of_word_tokens(model: Any, text: str) -> np.ndarray:
    """The ids of a text's own tokens."""
    (encoding,) = model.encode([Example(text)])
    return np.asarray(encoding.ids[~encoding.fixed])


def repetition_of_word(model: Any, word: str, other: str, size: int) -> WordRepetition:
    """Every position of a word up to `size` − 1, alone and with `other` at the first position."""
    alone, alone_top = repetition_probabilities(model, word * size, others=0)
    beside, beside_top = repetition_probabilities(model, other + word * (size - 1), others=1)
    return WordRepetition(alone, alone_top, beside, beside_top)


def repetition_probabilities(
    model: Any, text: str, *, others: int
) -> tuple[np.ndarray, np.ndarray]:
    """[t] probability of the word again, and whether it is the first choice, when only the `others` and it are there.

    The text is the word over and over behind the others; what stands around the word that is asked about is deleted.
    """
    (encoding,) = model.encode([Example(text)], truncate=True)
    places = np.flatnonzero(~encoding.fixed)
    word = int(encoding.ids[places[-1]])
    different = np.flatnonzero(encoding.ids[places] != word)
    begin = 0
    if len(different):  # some tokenizers put a lone space before everything
        begin = int(different[-1]) + 1
    if not others <= begin <= len(places) - 2:
        written = text.split()[-1]
        raise InputError(
            f"{model.name} does not read {written!r} as one token: choose other words."
        )

    # the word itself stays: it is what the target is read from
    keep = np.zeros((1, len(encoding)), bool)
    kept_others = places[begin - others : begin]
    keep[0, kept_others] = True
    questions = []
    for place in places[begin:-1]:
        next_target = model.next_target(encoding, word, int(place) + 1)
        target = replace(next_target, output="prob")
        questions.append(Question(encoding, target, keep))
    with progress.silence():
        answers = model.score(questions, removal="delete", memory=Memory(limit=0))
    probabilities = []
    first_choices = []
    for answer in answers:
        probabilities.append(answer.value[0, 0])
        first_choices.append(answer.rank[0, 0] == 0)
    return np.array(probabilities), np.array(first_choices, dtype=float)
