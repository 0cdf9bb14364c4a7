"""Answers that were already given: no set of tokens is evaluated twice, and no prefix of one where models can share it.

A memory belongs to its caller (a search, a metric), has a byte budget and dies with it: nothing is hidden on the
model, so nothing can leak between calls or threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from raison.core.records import Encoding, Target
from raison.models.protocol import Question, Scored

if TYPE_CHECKING:
    from raison.models.prefix.trie import Trie

__all__ = ["Memory", "Recall"]

# value, rank, margin, predicted [m] of one set
Row = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
# which encoding, target, removal and heads answers are about
Place = tuple[int, Target, str, bytes]
OVERHEAD = 700  # bytes of Python objects per remembered row, roughly


@dataclass
class Recall:
    """One question sorted out: which of its sets are known, which must run, and how to put them together."""

    place: Place
    sets: list[bytes]  # distinct sets of visible tokens
    known: dict[bytes, Row]
    rows: np.ndarray  # [n] distinct set of each row of the question
    question: Question  # the sets that must run, in order
    asked: list[bytes]  # what they are called

    def complete(self, scored: Scored) -> Scored:
        """The answers to every row, from the new ones and the known ones."""
        if not len(self.rows):
            return scored
        new = self.new_answers(scored)
        answers = []
        for key in self.sets:
            answers.append(new[key] if key in new else self.known[key])
        columns = [np.stack(column)[self.rows] for column in zip(*answers, strict=True)]
        value, rank, margin, predicted = columns
        return Scored(value, rank, margin, predicted, scored.forwards, scored.tokens)

    def new_answers(self, scored: Scored) -> dict[bytes, Row]:
        """The new answers by what they are about."""
        rows = zip(scored.value, scored.rank, scored.margin, scored.predicted, strict=True)
        return dict(zip(self.asked, rows, strict=True))


@dataclass
class Memory:
    """Answers by encoding, target, removal and set of visible tokens, up to `limit` bytes."""

    limit: int = 64 * 2**20
    # bytes for what a causal model computed at prefixes; 0: nothing is shared
    room: int = 512 * 2**20
    used: int = 0
    trie: Trie | None = None  # what a causal model computed at prefixes
    _answers: dict[Place, dict[bytes, Row]] = field(default_factory=dict)
    # an id is only valid while its encoding lives
    _alive: dict[int, Encoding] = field(default_factory=dict)

    def recall(self, question: Question, removal: str, heads: np.ndarray | None) -> Recall:
        """Sort a question out; rows that show the model the same tokens are one set."""
        encoding, target = question.encoding, question.target
        visible = target.visible(np.atleast_2d(question.keep), encoding)
        packed = np.packbits(visible, axis=1)
        distinct, first, rows = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        sets = [row.tobytes() for row in distinct]
        switched = b"" if heads is None else np.asarray(heads, dtype=np.float64).tobytes()
        place = (id(encoding), target, removal, switched)
        known = self._answers.get(place, {})
        unknown = []
        asked = []
        for index, key in zip(first, sets, strict=True):
            if key not in known:
                unknown.append(index)
                asked.append(key)
        return Recall(
            place=place,
            sets=sets,
            known=known,
            rows=rows.reshape(-1),
            question=Question(encoding, target, visible[unknown]),
            asked=asked,
        )

    def store(self, recall: Recall, scored: Scored) -> None:
        """Remember the answers to the sets that were run, as long as there is room."""
        if self.limit == 0:
            return
        self._alive[recall.place[0]] = recall.question.encoding
        answers = self._answers.setdefault(recall.place, {})
        for key, row in recall.new_answers(scored).items():
            cost = OVERHEAD + len(key) + 32 * scored.value.shape[1]
            if self.used + cost > self.limit:
                return
            if key not in answers:  # another question of the same call may have asked it
                answers[key] = row
                self.used += cost
