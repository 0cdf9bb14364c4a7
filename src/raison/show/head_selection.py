"""The selection of attention heads that matter: what `raison heads` counted, the chosen heads, their blocks.

`HeadStatistics` reads an artifact of `raison heads`; `HeadSelection` adds the masks that were made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raison.core.artifact import Artifact
from raison.core.errors import InputError
from raison.show.text_formats import clean_text

__all__ = [
    "BestHead",
    "HeadRelation",
    "HeadSelection",
    "HeadStatistics",
    "list_head_blocks",
    "signed_head_offset",
]

FIELDS = (
    "kinds",
    "relations",
    "direction",
    "alpha",
    "counts",
    "lambda",
    "lambda_max",
    "positional",
)


@dataclass(frozen=True)
class BestHead:
    """The head that finds a relation most often."""

    name: str  # block.head
    alpha: float

    def __str__(self) -> str:
        return f"head {self.name}: α {self.alpha:.2f}"


@dataclass(frozen=True)
class HeadRelation:
    """One syntactic relation: how often heads, and fixed relative positions, find the second word from the first."""

    name: str
    pairs: int  # of words in the corpus
    alpha: np.ndarray  # [maps heads]; empty where there is no pair
    shares: dict[int, float]  # λ: which share of the pairs is so many words apart
    max_lambda: float  # what a look at one fixed position finds

    @classmethod
    def of(cls, artifact: Artifact, name: str) -> HeadRelation:
        """A relation by its name in an artifact of heads."""
        data = artifact.data
        pairs = data["counts"][name]
        if not pairs:
            return cls(name, pairs=0, alpha=np.zeros((0, 0)), shares={}, max_lambda=0.0)
        shares = {}
        for distance, share in data["lambda"][name].items():
            shares[int(distance)] = share
        return cls(
            name,
            pairs=pairs,
            alpha=np.array(data["alpha"][name]),
            shares=shares,
            max_lambda=data["lambda_max"][name],
        )


@dataclass(frozen=True)
class HeadStatistics:
    """What `raison heads` counted; maps are attention maps, in the order of their calls."""

    kinds: tuple[str, ...]  # of the maps: self, encoder, decoder, cross
    direction: str  # from which word of a pair the other is looked for
    relations: tuple[HeadRelation, ...]
    offsets: np.ndarray  # [maps heads] the relative position that a head looks at most often
    shares: np.ndarray  # [maps heads] α of that position
    model: str
    corpus: str  # what the heads were watched on
    texts_cut: int  # at the model's limit
    texts_left_out: int

    @classmethod
    def of(cls, artifact: Artifact) -> HeadStatistics:
        """The statistics in an artifact of heads."""
        missing = [name for name in FIELDS if name not in artifact.data]
        if missing:
            raise InputError(
                f"This file of heads is not complete (no {', '.join(missing)}): make it anew with `raison heads`."
            )
        data, about = artifact.data, artifact.about
        corpus = about.get("corpus") or "a corpus"
        relations = [HeadRelation.of(artifact, name) for name in data["relations"]]
        return cls(
            kinds=tuple(data["kinds"]),
            direction=data["direction"],
            relations=tuple(relations),
            offsets=np.array(data["positional"]["offset"]),
            shares=np.array(data["positional"]["alpha"]),
            model=clean_text(artifact.model) or "a model",
            corpus=clean_text(f"{corpus}, {about.get('sentences', 0)} sentences"),
            texts_cut=about.get("texts cut") or 0,
            texts_left_out=about.get("texts left out") or 0,
        )

    @property
    def counted(self) -> list[HeadRelation]:
        """The relations that have pairs in the corpus."""
        return [relation for relation in self.relations if relation.pairs]

    @property
    def both_sides(self) -> bool:
        """Whether one look reaches both sides: a causal model finds a pair from the later word, wherever that is."""
        return not self.direction.startswith("dependent")

    @cached_property
    def margins(self) -> np.ndarray:
        """[maps heads] the largest α_k − max λ_k over the relations k; -1 where nothing was counted."""
        if not self.counted:
            return np.full(self.shares.shape, -1.0)
        margins: np.ndarray = self.margins_by_relation.max(0)
        return margins

    @cached_property
    def margins_by_relation(self) -> np.ndarray:
        """[relations maps heads] α − max λ of each relation that has pairs."""
        return np.stack([relation.alpha - relation.max_lambda for relation in self.counted])

    def best_relation(self, row: int, head: int) -> str:
        """The relation that a head finds best; none where nothing was counted."""
        if not self.counted:
            return ""
        best = int(self.margins_by_relation[:, row, head].argmax())
        return self.counted[best].name

    def alpha(self, relation: str, row: int, head: int) -> float:
        """How often a head finds a relation."""
        (table,) = [each.alpha for each in self.relations if each.name == relation]
        return float(table[row, head])

    @cached_property
    def blocks(self) -> list[str]:
        """Names of the maps: numbers, with their kind where there are several."""
        several = len(set(self.kinds)) > 1
        names = []
        for place, kind in enumerate(self.kinds):
            number = self.kinds[:place].count(kind)
            if several:
                names.append(f"{kind} {number}")
            else:
                names.append(str(number))
        return names

    def best_head(self, relation: HeadRelation) -> BestHead:
        """The head that finds a relation most often."""
        row, head = np.unravel_index(int(relation.alpha.argmax()), relation.alpha.shape)
        alpha = float(relation.alpha[row, head])
        return BestHead(f"{self.blocks[row]}.{head}", alpha)


@dataclass(frozen=True)
class HeadSelection:
    """Chosen heads, and the rule that chose them."""

    statistics: HeadStatistics
    syntactic: np.ndarray  # [maps heads]
    positional: np.ndarray
    syntactic_margin: float = 0.1
    positional_share: float = 0.8
    top: int = 0

    @classmethod
    def by_usual_thresholds(cls, statistics: HeadStatistics) -> HeadSelection:
        """The heads above the usual thresholds (`raison heads` has options for others)."""
        return cls(
            statistics,
            syntactic=statistics.margins > cls.syntactic_margin,
            positional=statistics.shares > cls.positional_share,
        )

    @property
    def any_kind(self) -> np.ndarray:
        """[maps heads] heads that were chosen for whatever reason."""
        chosen: np.ndarray = self.syntactic | self.positional
        return chosen

    @property
    def empty_blocks(self) -> list[str]:
        """Blocks without any chosen head."""
        empty = []
        for row, name in enumerate(self.statistics.blocks):
            if not self.any_kind[row].any():
                empty.append(name)
        return empty

    def rules(self) -> list[str]:
        """How many heads of each kind, and why them: syntactic ones, positional ones."""
        more = ""
        if self.top == 1:
            more = ", and the best of each block"
        elif self.top:
            more = f", and the best {self.top} of each block"
        syntactic = int(self.syntactic.sum())
        positional = int(self.positional.sum())
        return [
            f"{syntactic} syntactic: α > max λ + {self.syntactic_margin:g}{more}",
            f"{positional} positional: α > {self.positional_share:g}{more}",
        ]


def signed_head_offset(offset: int) -> str:
    """A relative position with its sign."""
    if not offset:
        return "0"
    return f"{offset:+d}".replace("-", "−")


def list_head_blocks(blocks: list[str]) -> str:
    """`block 3`, `blocks 0, 3–9 and 12`, `encoder block 1 and cross blocks 0 and 1`."""
    numbers_of_kind: dict[str, list[int]] = {}
    for block in blocks:
        kind, _, number = block.rpartition(" ")
        numbers_of_kind.setdefault(kind, []).append(int(number))
    names = []
    for kind, numbers in numbers_of_kind.items():
        names.append(f"{kind} {name_block_numbers(numbers)}".strip())
    return join_block_names(names)


def name_block_numbers(numbers: list[int]) -> str:
    """Numbers of blocks, more than two neighbours as a range."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])

    names: list[str] = []
    for run in runs:
        if len(run) > 2:
            names.append(f"{run[0]}–{run[-1]}")
        else:
            names += map(str, run)
    noun = "blocks" if len(numbers) > 1 else "block"
    return f"{noun} {join_block_names(names)}"


def join_block_names(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = names
    if not first:
        return last
    return f"{', '.join(first)} and {last}"
