"""Pairs of words in a syntactic relation, found as tokens of a model: which token looks, and at which tokens.

Words are matched to tokens through their characters, never by what they spell: a token belongs to the word in which it
starts. Pairs whose words have no token of their own ("cannot" as one token) are left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from raison.core.errors import InputError
from raison.core.records import Encoding
from raison.core.text_splitting import stripped_span
from raison.datasets.conllu import Sentence

__all__ = ["DirectedPairs", "PairFinder", "TokenPairs", "sentence_tokens_of_pairs"]

FROM_DEPENDENT, FROM_HEAD = 0, 1  # the two directions: which of the two words looks


@dataclass(frozen=True)
class TokenPairs:
    """Pairs of one text in one direction, on the axis of its encoding."""

    relation: np.ndarray  # [p] number of the relation
    query: np.ndarray  # [p] the token that looks
    keys: np.ndarray  # [p t] the tokens of the other word

    def __len__(self) -> int:
        return len(self.query)


@dataclass
class DirectedPairs:
    """Pairs of one text in one direction, while they are found."""

    relations: list[int] = field(default_factory=list)
    queries: list[int] = field(default_factory=list)
    keys: list[np.ndarray] = field(default_factory=list)  # [k] tokens of the other word

    def add(self, relation: int, query: int, key: np.ndarray) -> None:
        self.relations.append(relation)
        self.queries.append(query)
        self.keys.append(key)

    def on_axis(self, size: int) -> TokenPairs:
        """The pairs with their keys as masks over an axis of so many tokens."""
        masks = np.zeros((len(self.keys), size), bool)
        for mask, key in zip(masks, self.keys, strict=True):
            mask[key] = True
        relations = np.array(self.relations, np.int64)
        queries = np.array(self.queries, np.int64)
        return TokenPairs(relations, queries, masks)


class PairFinder:
    """Finds the pairs of sentences, and counts those that can be found and those that were left out."""

    def __init__(self, relations: Sequence[str], *, subtypes: bool, causal: bool) -> None:
        self.number_of = {name: number for number, name in enumerate(relations)}
        self.subtypes = subtypes
        self.causal = causal
        # pairs that could be found, in the two directions
        self.asked = np.zeros((2, len(relations)), np.int64)
        # id − head of the pairs
        self.distances: list[Counter[int]] = [Counter() for _ in relations]
        self.skipped: Counter[str] = Counter()  # pairs that were left out, by the reason

    def find(self, encoding: Encoding, sentence: Sentence) -> tuple[TokenPairs, TokenPairs]:
        """The pairs of a text from the dependent to the head word, and from the head word to the dependent."""
        tokens = tokens_of_words(encoding, sentence)
        directions = (DirectedPairs(), DirectedPairs())
        for dependent, word in enumerate(sentence.words):
            name = word.relation
            if self.subtypes:
                name, _, _ = name.partition(":")
            if name not in self.number_of or word.head < 0:
                continue
            relation = self.number_of[name]
            of_dependent = tokens[dependent]
            of_head = tokens[word.head]
            reason = self.reason_to_skip(encoding, of_dependent, of_head)
            if reason:
                self.skipped[reason] += 1
                continue
            self.distances[relation][dependent - word.head] += 1
            ends = (of_dependent, of_head)
            for way, pairs in enumerate(directions):
                query = ends[way]
                key = ends[1 - way]
                if self.causal and query[0] < key[0]:
                    continue
                self.asked[way, relation] += 1
                looking = query[-1] if self.causal else query[0]
                pairs.add(relation, int(looking), key)
        size = len(encoding)
        from_dependent, from_head = directions
        return from_dependent.on_axis(size), from_head.on_axis(size)

    def reason_to_skip(self, encoding: Encoding, one: np.ndarray, other: np.ndarray) -> str:
        """Why the pair of two words is left out; "" where it counts."""
        has_tokens = len(one) > 0 and len(other) > 0
        if not has_tokens or np.intersect1d(one, other).size:
            return "no token of their own"

        first = min(one[0], other[0])
        if self.causal and encoding.start[0] >= 0 and first == 0:
            return "at the first token"
        return ""


def segment_of_syntactic_tree(encoding: Encoding) -> int:
    """The text that has the tree: of a question with its context, the context."""
    if "context" not in encoding.segments:
        return 0
    return encoding.segments.index("context")


def sentence_tokens_of_pairs(encoding: Encoding) -> np.ndarray:
    """[t] tokens of the text that has the tree: not special, not a question, not what a model writes."""
    segment = segment_of_syntactic_tree(encoding)
    inside: np.ndarray = (encoding.segment == segment) & (encoding.start >= 0)
    if not inside.any():
        raise InputError(
            f"Nothing of {encoding.texts[segment][:40]!r} becomes a token: leave this sentence out."
        )
    return inside


def tokens_of_words(encoding: Encoding, sentence: Sentence) -> list[np.ndarray]:
    """The tokens of each word: those that start in it."""
    text = encoding.texts[segment_of_syntactic_tree(encoding)]
    inside = np.flatnonzero(sentence_tokens_of_pairs(encoding))
    starts = np.full(len(inside), -1)
    for place, token in enumerate(inside):
        # the space that many tokenizers put in front of a word is no part of it
        start = int(encoding.start[token])
        end = int(encoding.end[token])
        core = stripped_span(text, start, end)
        if core is not None:
            starts[place] = core[0]
    tokens_of_words = []
    for word in sentence.words:
        in_word = (word.start <= starts) & (starts < word.end)
        tokens_of_words.append(inside[in_word])
    return tokens_of_words
