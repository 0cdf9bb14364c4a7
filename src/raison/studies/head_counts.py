"""Counts of what every attention head looks at, over the texts of a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from raison.core.errors import Unsupported
from raison.core.json_record import JsonObject
from raison.core.records import Encoding
from raison.datasets.conllu import Sentence
from raison.models.protocol import Map, Trace
from raison.studies.head_pairs import PairFinder, TokenPairs, sentence_tokens_of_pairs

__all__ = ["HeadCounts"]

PARSED = ("self", "encoder")  # maps over the text that has a tree
DIGITS = 6
Value = TypeVar("Value")


class HeadCounts:
    """Counts over all texts; one row per attention map."""

    def __init__(
        self, longest: Trace, relations: Sequence[str], *, subtypes: bool, specials: bool
    ) -> None:
        """`longest` is the trace of the longest text: it shows most surely whether the model looks ahead."""
        head_numbers = {attention.weights.shape[0] for attention in longest.maps}
        if len(head_numbers) != 1:
            raise Unsupported(
                "The blocks of this model differ in their number of heads, so they make no table."
            )
        self.kinds = [attention.kind for attention in longest.maps]
        self.heads = head_numbers.pop()
        self.relations = relations
        self.specials = specials
        self.causal = True
        for attention in longest.maps:
            if attention.kind in PARSED and looks_ahead(attention):
                self.causal = False
        self.finder = PairFinder(relations, subtypes=subtypes, causal=self.causal)
        self.longest = len(longest.encoding)

        maps = len(self.kinds)
        # in the two directions
        shape_of_hits = (2, maps, len(relations), self.heads)
        self.hits = np.zeros(shape_of_hits, np.int64)
        # of r = -longest .. longest
        self.offset_count = 2 * self.longest + 1
        shape_of_offsets = (maps, self.heads, self.offset_count)
        self.offsets = np.zeros(shape_of_offsets, np.int64)
        self.queries = np.zeros(maps, np.int64)
        self.texts = 0
        self.tokens = 0
        self.cut = 0

    # -- counting ----------------------------------------------------------------------------------

    def add(self, trace: Trace, sentence: Sentence) -> None:
        """Count one text."""
        encoding = trace.encoding
        in_sentence = sentence_tokens_of_pairs(encoding)
        self.texts += 1
        self.tokens += int(in_sentence.sum())
        self.cut += encoding.truncated > 0
        directions = self.finder.find(encoding, sentence)
        for number, attention in enumerate(trace.maps):
            weights = attention.weights.cpu().double().numpy()  # [h s t]
            best_column = weights.argmax(-1)  # of equal weights the first
            best = attention.cols[best_column]  # [h s] on the axis
            has_weight = weights > 0
            visible = np.asarray(np.any(has_weight, axis=0))  # [s t]
            self.add_offsets(number, attention, encoding, visible=visible, best=best)
            if attention.kind not in PARSED:
                continue
            for way, pairs in enumerate(directions):
                hits = self.hits[way, number]
                self.add_hits(hits, pairs, attention, best)

    def add_hits(
        self, hits: np.ndarray, pairs: TokenPairs, attention: Map, best: np.ndarray
    ) -> None:
        """Count the pairs whose query looks at the other word, by relation and head."""
        count = len(pairs)
        if not count:
            return
        tokens = pairs.keys.shape[1]
        row_of_token = np.zeros(tokens, np.int64)
        rows = attention.rows
        row_of_token[rows] = np.arange(len(rows))
        row_of_query = row_of_token[pairs.query]
        looked_at = best[:, row_of_query]  # [h p]
        numbers = np.arange(count)
        found = pairs.keys[numbers, looked_at]  # [h p]
        np.add.at(hits, pairs.relation, found.T)

    def add_offsets(
        self,
        number: int,
        attention: Map,
        encoding: Encoding,
        *,
        visible: np.ndarray,
        best: np.ndarray,
    ) -> None:
        """Count the relative positions at which the heads of one map look; `visible` [s t], `best` [h s]."""
        rows = attention.rows
        columns = attention.cols
        others = columns[None, :] != rows[:, None]
        visible_others = visible & others
        if self.specials:
            counted = np.ones(len(rows), bool)
        else:
            in_text = encoding.start[rows] >= 0
            sees_others = visible_others.any(1)
            counted = in_text & sees_others
            if "context" in encoding.segments:
                in_sentence = sentence_tokens_of_pairs(encoding)
                counted &= in_sentence[rows]

        own_position = encoding.positions[rows]
        best_position = encoding.positions[best]
        offset = best_position - own_position[None, :]  # [h s]
        width = self.offset_count
        cells = self.heads * width
        first_cell = np.arange(self.heads) * width
        cell = first_cell[:, None] + offset + self.longest
        counted_cells = cell[:, counted].reshape(-1)
        counts = np.bincount(counted_cells, minlength=cells)
        self.offsets[number] += counts.reshape(self.heads, width)
        self.queries[number] += int(counted.sum())

    # -- the tables of the file --------------------------------------------------------------------

    @property
    def used(self) -> slice:
        """The directions that count: a causal pair is allowed in one of the two only."""
        if self.causal:
            return slice(0, 2)
        return slice(0, 1)

    @property
    def pairs(self) -> np.ndarray:
        """[k] pairs behind α."""
        asked = self.finder.asked[self.used]
        pairs: np.ndarray = asked.sum(0)
        return pairs

    def data(self) -> JsonObject:
        """What the file holds: α by relation, the baseline λ, and the best position of each head."""
        distances = self.finder.distances
        reachable = distances
        direction = "dependent to its head word"
        if self.causal:
            # it looks from the later word, so one fixed position reaches a pair whichever of the two comes first
            reachable = [fold_signs_of_head_distances(counts) for counts in distances]
            direction = "later to the earlier word"
        shape = {}
        for kind in self.kinds:
            maps = self.kinds.count(kind)
            shape[kind] = [maps, self.heads]
        parsed = [kind for kind in PARSED if kind in self.kinds]
        pairs = self.pairs
        used_hits = self.hits[self.used]
        hits = used_hits.sum(0)
        shares = map(head_shares_by_distance, distances)
        largest_shares = map(largest_share_of_counts, reachable)
        from_dependent = self.direction(0)
        from_head = self.direction(1)
        return {
            "shape": shape,
            "kinds": self.kinds,
            "parsed": parsed,
            "relations": list(self.relations),
            "direction": direction,
            "alpha": self.shares_by_relation(hits, pairs),
            "counts": self.by_relation(pairs),
            "lambda": self.by_relation(shares),
            "lambda_max": self.by_relation(largest_shares),
            "directions": {"dependent": from_dependent, "head": from_head},
            "positional": self.positional(),
        }

    def direction(self, way: int) -> JsonObject:
        """α and the pairs of one direction alone."""
        asked = self.finder.asked[way]
        hits = self.hits[way]
        return {
            "alpha": self.shares_by_relation(hits, asked),
            "counts": self.by_relation(asked),
        }

    def positional(self) -> JsonObject:
        """The best relative position of each head and its share of the queries."""
        counts = self.offsets.copy()
        if not self.specials:
            # r = 0 is the token itself
            looks_at_itself = np.array(self.kinds) != "cross"
            counts[looks_at_itself, :, self.longest] = 0
        best = counts.argmax(-1)
        offset = best - self.longest
        largest = counts.max(-1)
        queries = self.queries[:, None]
        share = share_of_counts(largest, queries)
        return {
            "offset": offset.tolist(),
            "alpha": rounded_head_counts(share),
            "counts": self.queries.tolist(),
        }

    def shares_by_relation(
        self, hits: np.ndarray, asked: np.ndarray
    ) -> dict[str, list[list[float]]]:
        """[maps heads] of shares by relation."""
        shares = {}
        for k, name in enumerate(self.relations):
            hits_of_relation = hits[:, k]
            share = share_of_counts(hits_of_relation, asked[k])
            shares[name] = rounded_head_counts(share)
        return shares

    def by_relation(self, values: Iterable[Value]) -> dict[str, Value]:
        """One value for each relation, by its name."""
        pairs = zip(self.relations, values, strict=True)
        return dict(pairs)


def looks_ahead(attention: Map) -> bool:
    """Some token has weight on a later one."""
    weights_ahead = attention.weights.triu(1)
    return bool((weights_ahead > 0).any())


def share_of_counts(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Shares; 0 where there was nothing to count."""
    at_least_one = np.maximum(whole, 1)
    ratio: np.ndarray = part / at_least_one
    return ratio


def rounded_head_counts(values: np.ndarray) -> list[list[float]]:
    """The rows of a table as lists, to six digits."""
    rounded = np.round(values, DIGITS)
    rows: list[list[float]] = rounded.tolist()
    return rows


def fold_signs_of_head_distances(counts: Mapping[int, int]) -> Counter[int]:
    """Counts by the length of a distance, whichever of the two words comes first."""
    folded: Counter[int] = Counter()
    for distance, number in counts.items():
        length = abs(distance)
        folded[length] += number
    return folded


def head_shares_by_distance(counts: Mapping[int, int]) -> dict[int, float]:
    """Shares by distance, nearest first."""
    total = sum(counts.values())
    nearest_first = sorted(counts, key=lambda distance: (abs(distance), distance))
    shares = {}
    for distance in nearest_first:
        share = counts[distance] / total
        shares[distance] = round(share, DIGITS)
    return shares


def largest_share_of_counts(counts: Mapping[int, int]) -> float:
    """The share of the most frequent distance: what a head reaches that looks at one fixed position."""
    shares = head_shares_by_distance(counts)
    return max(shares.values(), default=0.0)
