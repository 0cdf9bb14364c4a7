"""The two questions every model answers, and the plain records in which it answers them.

`trace` runs forward and backward and shows what happened inside; `score` says how likely the target is when
only some tokens are kept. Every attribution method, rationale search and metric is a function of the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from raison.core.records import Encoding, Example, Target

if TYPE_CHECKING:
    import torch

__all__ = ["PREDICTED", "REMOVALS", "Budget", "Map", "Model", "Prediction", "Question", "Scored", "TargetSpec", "Trace"]

REMOVALS = {
    "delete": "only the kept tokens run, at their original positions",
    "mask": "the whole text runs, and attention can't see what is removed",
    "mask_token": "a removed token becomes the tokenizer's mask token",
    "pad_token": "a removed token becomes the padding token",
    "zero": "the word embedding of a removed token becomes zero",
}


@dataclass(frozen=True)
class Budget:
    """How much one batch may hold, and how texts of different length share it."""

    tokens: int = 4096  # tokens per forward pass
    bytes: int = 512 * 2**20  # attention maps and vocabulary rows of one pass
    padding: str = "exact"  # exact: only equal lengths together, nothing padded; left | right: padded batches
    rows: int | None = None  # texts per forward pass, for a model whose answers depend on what runs beside them


@dataclass(frozen=True)
class Prediction:
    """What the model says about the whole text, and the target that follows from it."""

    target: Target
    value: float  # of the target: its probability, or what a regression or a function gives
    top: tuple[tuple[str, float], ...]  # the best outcomes with their values
    outcomes: tuple[tuple[int, ...], ...] = ()  # their ids, where they have some
    probable: bool = True  # values are probabilities
    exclusive: bool = True  # one outcome excludes the others

    def scored(self, target: Target) -> Scored | None:
        """The answer to "how likely is `target` given everything", if it is this prediction: no need to ask again."""
        if not (self.probable and self.exclusive) or target.kind not in ("label", "token"):
            return None  # the other outcomes (of a tagger, of several labels) are no alternatives to this one
        if len(self.top) < 2 or len(self.target.ids) > 1 or target.contrast is not None:
            return None
        if replace(self.target, output=target.output) != target or target.output != "log_prob" or self.top[1][1] <= 0:
            return None
        first, second = np.log(self.top[0][1]), np.log(self.top[1][1])
        number = np.array([[self.target.ids[0]]])
        return Scored(np.array([[first]]), np.zeros((1, 1), np.int64), np.array([[first - second]]), number)


@dataclass(frozen=True)
class TargetSpec:
    """What a user wants explained; only the adapter knows what it means for a text."""

    target: Any = (
        None  # a label, an answer, a continuation, the number of a token, a slice, "all"; None: the prediction
    )
    contrast: Any = None  # why the target rather than this
    output: str | None = None  # logit | log_prob | prob; None: what suits the task
    prediction: Prediction | None = None  # what the model says about the whole text, if it was asked already

    @property
    def number(self) -> int | None:
        """The target as a number, where it is one."""
        whole = isinstance(self.target, (int, np.integer)) and not isinstance(self.target, bool)
        return int(self.target) if whole else None

    @property
    def inside(self) -> bool:
        """The target stands in the text already."""
        return (
            self.number is not None
            or isinstance(self.target, slice)
            or (isinstance(self.target, str) and self.target == "all")
        )


PREDICTED = TargetSpec()


@dataclass(frozen=True)
class Question:
    """How likely is `target` when only `keep` [n t] of `encoding` is there? n answers."""

    encoding: Encoding
    target: Target
    keep: np.ndarray


@dataclass
class Scored:
    """The answers to one question; m is the number of tokens (rows) of the target, mostly 1."""

    value: np.ndarray  # [n m] in the unit of target.output
    rank: np.ndarray  # [n m] how many outcomes beat the target: 0 = it is the prediction
    margin: np.ndarray  # [n m] logit of the target minus the best other (or the contrast)
    predicted: np.ndarray  # [n m] the best outcome
    forwards: int = 0  # rows run
    tokens: int = 0  # tokens pushed through the blocks


@dataclass
class Map:
    """Attention from `rows` to `cols` of the encoding's axis."""

    kind: str  # self | encoder | decoder | cross
    layer: int
    rows: np.ndarray  # [s] positions on the axis
    cols: np.ndarray  # [t]
    weights: torch.Tensor  # [h s t]
    gradient: torch.Tensor | None = None  # of the target's value
    relevance: torch.Tensor | None = None  # under the rules of the trace
    block: int = -1  # the block it ran in, counted over both streams; -1: unknown


@dataclass
class Trace:
    """Tensors of one forward pass and its backward pass for one target; lives briefly, is never stored."""

    encoding: Encoding
    target: Target
    value: float  # in the unit of target.output, summed over the target's tokens
    embeddings: torch.Tensor | None = None  # [t d] word embeddings
    gradient: torch.Tensor | None = None  # [t d] of the value
    hidden: list[torch.Tensor] = field(default_factory=list)  # [t d] input of each block, then the last output
    hidden_gradient: list[torch.Tensor] = field(default_factory=list)
    maps: list[Map] = field(default_factory=list)
    readout: np.ndarray | None = None  # [t] shares of the rows from which the answer is read
    writes: list[Any] = field(default_factory=list)  # what each map's attention writes into the stream (writes.py)
    zeroed: list[Map] = field(default_factory=list)  # of each block: how far a row moves without a token's value
    relevance: torch.Tensor | None = None  # [t] of each token, under the rules of the trace
    cuts: list[float] = field(default_factory=list)  # total relevance between the blocks, from the last to the first
    strange: tuple[str, ...] = ()  # functions of the model for which the rules have no rule
    logit: float = 0.0  # what relevance starts from under rules that pass gradients on; summed over the target's tokens
    constants: float = 0.0  # relevance that ends in biases and other constants that are added, under such rules


@runtime_checkable
class Model(Protocol):
    """Anything that can be explained."""

    name: str
    task: str
    offers: frozenset[str]  # of {"gradients", "attention", "hidden", "score", "heads", "own"}
    removals: tuple[str, ...]  # what absence may mean here; the first is the default

    def encode(self, examples: Sequence[Example], *, truncate: bool = False) -> list[Encoding]:
        """Tokens of each example on one axis."""

    def resolve_targets(self, encoding: Encoding, target_spec: TargetSpec = PREDICTED) -> list[tuple[Encoding, Target]]:
        """The targets that are asked for, each with the encoding it belongs to (written text makes it longer)."""

    def predict(self, encodings: Sequence[Encoding]) -> list[Prediction]:
        """What the model says about each whole text."""

    def trace(
        self,
        encodings: Sequence[Encoding],
        targets: Sequence[Target],
        *,
        want: frozenset[str],
        embeddings: Sequence[Any] | None = None,
        heads: np.ndarray | None = None,
        rules: Any = None,
    ) -> Iterator[tuple[int, Trace]]:
        """One trace for each pair, in any order, with its index; under `rules` it tells relevance, not gradients."""

    def score(
        self,
        questions: Sequence[Question],
        *,
        removal: str | None = None,
        heads: np.ndarray | None = None,
        memory: Any = None,
    ) -> list[Scored]:
        """Answers to all questions, batched together; with a `memory` nothing is computed twice."""
