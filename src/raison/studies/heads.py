"""Which attention heads look at a syntactic relation or at a fixed relative position: statistics over a corpus (P4).

For every head, with j* = argmax_j A_ij the token that query i looks at most:

    positional   α_r = share of queries i with j* − i = r
    syntactic    α_k = share of the pairs of relation k in which j* of the query word is a token of the key word
    baseline     λ_k = distribution of the distance between the two words, in words; max λ_k is what a head would reach
                 that looked at one fixed relative position, whatever the words

A head is syntactic where α_k > max λ_k + 0.1 for some k, positional where max_r α_r > 0.8 (methods/headmask.py reads
both off the file that is written here). Song et al. 2024 (Mask-LRP, P4) section 4.2, after Voita et al. 2019.

Words are matched to tokens through their characters, never by what they spell: a token belongs to the word in which it
starts. Pairs whose words have no token of their own ("cannot" as one token) are left out and counted.

Which word looks at which. Where attention goes both ways the dependent looks at its head word, from its first token,
as in P4. A causal model can't look ahead, and in English a subject or an adjective stands before its head word: asked
that way, most pairs could never be found. Each pair has one allowed direction there, and it is the one that is counted:
the later word looks at the earlier one, from its last token, the first at which the model has read the whole word. A
fixed position then reaches a pair whichever of the two words comes first, so λ_k is of |id − head|. Causal models give
their first token what no other token gets (an attention sink), so pairs whose earlier word holds the very first token
are left out: a head that always looks there would find every subject that begins a sentence.

Deviations from P4: its text excludes r = 0 and its code does not, and its code counts special tokens as queries; here
both are left out (`specials=True` counts them as the code does). Its code matches words by string equality. Queries
that can see nothing but themselves are no evidence and not counted. In encoder-decoders only the encoder reads a text
that has a tree; the decoder and its cross-attention are measured for positions alone, over what the model writes (in
cross-attention r = 0 is the same place of the other text, and counts).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from raison.core import progress
from raison.core.artifact import Artifact
from raison.core.errors import InputError, Unsupported
from raison.core.records import Encoding, Example, Target
from raison.core.text_splitting import stripped_span
from raison.datasets.conllu import Sentence
from raison.methods.head_masks import head_masks
from raison.models.protocol import Map, Model, Trace

__all__ = ["RELATIONS", "head_statistics"]

RELATIONS = ("nsubj", "obj", "amod", "advmod")
PARSED = ("self", "encoder")  # maps over the text that has a tree
QUESTION = "What is said?"  # a QA model needs one; the sentence is its context
THRESHOLDS = {"syntactic": 0.1, "positional": 0.8}
DIGITS = 6


@dataclass(frozen=True)
class Pairs:
    """Pairs of one text in one direction, on the axis of its encoding."""

    relation: np.ndarray  # [p] number of the relation
    query: np.ndarray  # [p] the token that looks
    keys: np.ndarray  # [p t] the tokens of the other word


def head_statistics(
    model: Model,
    sentences: Sequence[Sentence],
    *,
    relations: Sequence[str] = RELATIONS,
    subtypes: bool = True,
    specials: bool = False,
    corpus: str = "",
) -> Artifact:
    """Count what every attention head looks at, over sentences with trees.

    `subtypes` counts nsubj:pass as nsubj. `specials` counts special tokens as queries and r = 0 as a position, as P4's
    released code does. `corpus` is the name that the file and its pictures give to the sentences.
    """
    if "attention" not in model.offers:
        raise Unsupported(f"{model.name} shows no attention, so its heads can't be told apart: use another model.")
    if not sentences or not relations:
        raise InputError("Heads are counted over sentences and relations: give at least one of each.")
    aims, read = readable(model, sentences)
    encodings, targets = [e for e, _ in aims], [t for _, t in aims]
    want = frozenset({"attention"})
    longest = max(aims, key=lambda aim: len(aim[0]))
    ((_, first),) = model.trace([longest[0]], [longest[1]], want=want)  # shows most surely whether it looks ahead
    tally = Tally(first, tuple(relations), subtypes, specials)
    for done, (index, trace) in enumerate(model.trace(encodings, targets, want=want), 1):
        tally.add(trace, read[index])
        progress.report(done, len(aims), "texts")
    if not tally.pairs.any():
        raise InputError(f"No sentence has a countable pair of {', '.join(relations)}: give more, or other relations.")
    found = Artifact("heads", tally.data(), model.name)
    synt, pos = head_masks(found, syntactic=THRESHOLDS["syntactic"], positional=THRESHOLDS["positional"])
    masks = {"synt": synt.astype(int), "pos": pos.astype(int)}  # for readers of the file; methods make their own
    about = {"corpus": corpus, **tally.about(), "texts left out": len(sentences) - len(read), "versions": versions()}
    return replace(found, data={**found.data, "thresholds": THRESHOLDS, "masks": masks}, about=about)


def readable(model: Model, sentences: Sequence[Sentence]) -> tuple[list[tuple[Encoding, Target]], list[Sentence]]:
    """The sentences that the model can read, ready to run; one that becomes no token does not end a corpus."""
    aims: list[tuple[Encoding, Target]] = []
    read: list[Sentence] = []
    for number, sentence in enumerate(sentences, 1):
        try:
            aims.append(aimed(model, sentence))
            read.append(sentence)
        except InputError:
            if number == len(sentences) and not read:
                raise
        progress.report(number, len(sentences), "encoding")  # an encoder-decoder writes meanwhile
    return aims, read


def aimed(model: Any, sentence: Sentence) -> tuple[Encoding, Target]:
    """The axis of a sentence, and a target that lets all of it run; which one, attention does not depend on."""
    qa = model.task == "qa"
    (encoding,) = model.encode([Example(QUESTION, sentence.text) if qa else Example(sentence.text)], truncate=True)
    row = int(np.flatnonzero(of_sentence(encoding))[0])
    simple = {
        "classification": Target("label", (0,)),
        "tagging": Target("tag", (0,), (row,)),
        "qa": Target("span", (row, row), (row, row)),
        "causal": Target("token", (0,), (len(encoding),), output="log_prob"),
    }
    return (encoding, simple[model.task]) if model.task in simple else model.resolve_targets(encoding)[0]


def of_sentence(encoding: Encoding) -> np.ndarray:
    """[t] tokens of the text that has the tree: not special, not a question, not what a model writes."""
    place = encoding.segments.index("context") if "context" in encoding.segments else 0
    inside = (encoding.segment == place) & (encoding.start >= 0)
    if not inside.any():
        raise InputError(f"Nothing of {encoding.texts[place][:40]!r} becomes a token: leave this sentence out.")
    return inside


def tokens_of(encoding: Encoding, sentence: Sentence) -> list[np.ndarray]:
    """The tokens of each word: those that start in it."""
    place = encoding.segments.index("context") if "context" in encoding.segments else 0
    text = encoding.texts[place]
    inside = np.flatnonzero(of_sentence(encoding))
    # the space that many tokenizers put in front of a word is no part of it
    cores = [stripped_span(text, int(encoding.start[t]), int(encoding.end[t])) for t in inside]
    starts = np.array([-1 if core is None else core[0] for core in cores])
    return [inside[(word.start <= starts) & (starts < word.end)] for word in sentence.words]


def looks_ahead(seen: Map) -> bool:
    """Some token has weight on a later one."""
    return bool((seen.weights.triu(1) > 0).any())


class Tally:
    """Counts over all texts; one row per attention map."""

    def __init__(self, longest: Trace, relations: tuple[str, ...], subtypes: bool, specials: bool) -> None:
        sizes = {seen.weights.shape[0] for seen in longest.maps}
        if len(sizes) != 1:
            raise Unsupported("The blocks of this model differ in their number of heads, so they make no table.")
        self.kinds = [seen.kind for seen in longest.maps]
        self.heads = sizes.pop()
        self.relations, self.subtypes, self.specials = relations, subtypes, specials
        self.causal = not any(looks_ahead(seen) for seen in longest.maps if seen.kind in PARSED)
        self.longest = len(longest.encoding)
        maps, kinds = len(self.kinds), len(relations)
        self.hits = np.zeros((2, maps, kinds, self.heads), np.int64)  # from the dependent, and from the head word
        self.asked = np.zeros((2, kinds), np.int64)  # pairs that could be found, in the same two directions
        self.distances: list[Counter[int]] = [Counter() for _ in relations]  # id − head of the pairs
        self.skipped: Counter[str] = Counter()
        self.offsets = np.zeros((maps, self.heads, 2 * self.longest + 1), np.int64)  # of r = -longest .. longest
        self.queries = np.zeros(maps, np.int64)
        self.texts = self.tokens = self.cut = 0

    def add(self, trace: Trace, sentence: Sentence) -> None:
        encoding = trace.encoding
        self.texts += 1
        self.tokens += int(of_sentence(encoding).sum())
        self.cut += encoding.truncated > 0
        directions = self.pairs_of(encoding, sentence)
        for number, seen in enumerate(trace.maps):
            weights = seen.weights.cpu().double().numpy()  # [h s t]
            best = seen.cols[weights.argmax(-1)]  # [h s] on the axis; of equal weights the first
            self.place(number, seen, encoding, weights, best)
            if seen.kind in PARSED:
                row = np.zeros(len(encoding), np.int64)
                row[seen.rows] = np.arange(len(seen.rows))
                for way, pairs in enumerate(directions):
                    if len(pairs.query):
                        found = pairs.keys[np.arange(len(pairs.query)), best[:, row[pairs.query]]]  # [h p]
                        np.add.at(self.hits[way, number], pairs.relation, found.T)

    def place(self, number: int, seen: Map, encoding: Encoding, weights: np.ndarray, best: np.ndarray) -> None:
        """Count relative positions of one map."""
        visible = (weights > 0).any(0)  # [s t]
        lonely = (visible & (seen.cols[None, :] != seen.rows[:, None])).sum(1) == 0
        wanted = (encoding.start[seen.rows] >= 0) & ~lonely
        if "context" in encoding.segments:
            wanted &= of_sentence(encoding)[seen.rows]
        if self.specials:
            wanted[:] = True
        r = encoding.positions[best] - encoding.positions[seen.rows][None, :]  # [h s]
        width = 2 * self.longest + 1
        cells = (np.arange(self.heads)[:, None] * width + r + self.longest)[:, wanted]
        counts = np.bincount(cells.reshape(-1), minlength=self.heads * width)
        self.offsets[number] += counts.reshape(self.heads, width)
        self.queries[number] += int(wanted.sum())

    def pairs_of(self, encoding: Encoding, sentence: Sentence) -> tuple[Pairs, Pairs]:
        """The pairs of a text from the dependent to the head word, and from the head word to the dependent."""
        tokens = tokens_of(encoding, sentence)
        known = {name: number for number, name in enumerate(self.relations)}
        rows: tuple[list, list] = ([], [])
        for dependent, word in enumerate(sentence.words):
            name = word.relation.partition(":")[0] if self.subtypes else word.relation
            if name not in known or word.head < 0:
                continue
            kind = known[name]
            ends = tokens[dependent], tokens[word.head]
            if not all(map(len, ends)) or np.intersect1d(*ends).size:
                self.skipped["no token of their own"] += 1
                continue
            if self.causal and encoding.start[0] >= 0 and min(t[0] for t in ends) == 0:
                self.skipped["at the first token"] += 1
                continue
            self.distances[kind][dependent - word.head] += 1
            for way in (0, 1):
                query, key = ends[way], ends[1 - way]
                if self.causal and query[0] < key[0]:
                    continue
                self.asked[way, kind] += 1
                rows[way].append((kind, int(query[-1 if self.causal else 0]), key))
        return packed(rows[0], len(encoding)), packed(rows[1], len(encoding))

    @property
    def used(self) -> slice:
        """The directions that count: a causal pair is allowed in one of the two only."""
        return slice(0, 2) if self.causal else slice(0, 1)

    @property
    def pairs(self) -> np.ndarray:
        """[k] pairs behind α."""
        return self.asked[self.used].sum(0)

    def data(self) -> dict[str, Any]:
        """The tables of the file."""
        reached = [fold(counts) if self.causal else counts for counts in self.distances]  # by one fixed position
        ways = {
            name: {"alpha": self.table(self.hits[way], self.asked[way]), "counts": self.named(self.asked[way])}
            for way, name in enumerate(("dependent", "head"))
        }
        return {
            "shape": {kind: [self.kinds.count(kind), self.heads] for kind in dict.fromkeys(self.kinds)},
            "kinds": self.kinds,
            "parsed": [kind for kind in PARSED if kind in self.kinds],
            "relations": list(self.relations),
            "direction": "later to the earlier word" if self.causal else "dependent to its head word",
            "alpha": self.table(self.hits[self.used].sum(0), self.pairs),
            "counts": self.named(self.pairs),
            "lambda": self.named(map(normalised, self.distances)),
            "lambda_max": self.named(max(normalised(counts).values(), default=0.0) for counts in reached),
            "directions": ways,  # from the dependent, and from the head word
            "positional": self.positional(),
        }

    def positional(self) -> dict[str, Any]:
        """The best relative position of each head and its share of the queries."""
        counts = self.offsets.copy()
        if not self.specials:
            own = [kind != "cross" for kind in self.kinds]  # r = 0 is the token itself
            counts[own, :, self.longest] = 0
        best = counts.argmax(-1)
        share = ratio(np.take_along_axis(counts, best[..., None], -1)[..., 0], self.queries[:, None])
        return {"offset": (best - self.longest).tolist(), "alpha": rounded(share), "counts": self.queries.tolist()}

    def table(self, hits: np.ndarray, asked: np.ndarray) -> dict[str, Any]:
        """[maps heads] of shares by relation."""
        return {name: rounded(ratio(hits[:, k], asked[k])) for k, name in enumerate(self.relations)}

    def named(self, values: Iterable[Any]) -> dict[str, Any]:
        return dict(zip(self.relations, values, strict=True))

    def about(self) -> dict[str, Any]:
        """What was read."""
        return {
            "sentences": self.texts,
            "tokens": self.tokens,
            "pairs left out": dict(self.skipped),
            "texts cut": self.cut,
            "subtypes": self.subtypes,
            "specials": self.specials,
        }


def packed(rows: list[tuple[int, int, np.ndarray]], size: int) -> Pairs:
    keys = np.zeros((len(rows), size), bool)
    for number, (_, _, key) in enumerate(rows):
        keys[number, key] = True
    return Pairs(np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.int64), keys)


def ratio(part: np.ndarray, whole: Any) -> np.ndarray:
    """Shares; 0 where there was nothing to count."""
    return part / np.maximum(whole, 1)


def fold(counts: Counter[int]) -> Counter[int]:
    result: Counter[int] = Counter()
    for distance, number in counts.items():
        result[abs(distance)] += number
    return result


def normalised(counts: Counter[int]) -> dict[int, float]:
    """Shares by distance, nearest first."""
    total = sum(counts.values())
    return {d: round(counts[d] / total, DIGITS) for d in sorted(counts, key=lambda d: (abs(d), d))}


def rounded(values: np.ndarray) -> list[list[float]]:
    return np.round(values, DIGITS).tolist()


def versions() -> dict[str, str]:
    return {name: version(name) for name in ("raison", "torch", "transformers")}
