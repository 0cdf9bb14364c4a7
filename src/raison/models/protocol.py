"""The two questions every model answers, and the plain records in which it answers them.

`trace` runs forward and backward and shows what happened inside; `score` says how likely the target is when
only some tokens are kept. Every attribution method, rationale search and metric is a function of the two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from raison.core.errors import InputError, Unsupported
from raison.core.records import Encoding, Example, Target

if TYPE_CHECKING:
    import torch
    from torch import nn
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from raison.models.attention.residual_writes import Write
    from raison.models.codec import Codec
    from raison.models.relevance.mode import Rules
    from raison.models.runner.runner import Runner
    from raison.models.runner.score_cache import Memory

__all__ = [
    "PREDICTED",
    "REMOVALS",
    "Budget",
    "InspectableModel",
    "Map",
    "Model",
    "OwnModel",
    "Prediction",
    "Question",
    "Scored",
    "Selecting",
    "SelfExplaining",
    "TargetSpec",
    "TextGenerator",
    "Trace",
    "missing_protocol_members",
]

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
    # exact: only equal lengths together, nothing padded; left | right: padded batches
    padding: str = "exact"
    # texts per forward pass, for a model whose answers depend on what runs beside them
    rows: int | None = None


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
        if not self.says_how_likely(target):
            return None

        best, second = self.top[0][1], self.top[1][1]
        if second <= 0:
            return None
        log_best, log_second = np.log(best), np.log(second)
        return Scored(
            value=np.array([[log_best]]),
            rank=np.zeros((1, 1), np.int64),
            margin=np.array([[log_best - log_second]]),
            predicted=np.array([[self.target.ids[0]]]),
        )

    def says_how_likely(self, target: Target) -> bool:
        """Whether `target` is the log-probability of the one outcome that is predicted, and its rival is known."""
        if not (self.probable and self.exclusive) or target.kind not in ("label", "token"):
            return False  # the other outcomes (of a tagger, of several labels) are no alternatives to this one
        if len(self.top) < 2 or len(self.target.ids) > 1 or target.contrast is not None:
            return False
        return target.output == "log_prob" and replace(self.target, output="log_prob") == target


@dataclass(frozen=True, kw_only=True)
class TargetSpec:
    """What a user wants explained; only the model knows what it means for a text."""

    # label, answer, continuation, number of a token, slice, "all"; None: the prediction
    target: object = None
    contrast: object = None  # why the target rather than this
    output: str | None = None  # logit | log_prob | prob; None: what suits the task
    # what the model says about the whole text, if it was asked already
    prediction: Prediction | None = None

    @property
    def number(self) -> int | None:
        """The target as a number, where it is one."""
        return None if isinstance(self.target, bool) else whole_number(self.target)

    @property
    def inside(self) -> bool:
        """The target stands in the text already."""
        if isinstance(self.target, str):
            return self.target == "all"
        return self.number is not None or isinstance(self.target, slice)


def whole_number(value: object) -> int | None:
    """A Python or NumPy integer as a Python one; None for anything else."""
    return int(value) if isinstance(value, (int, np.integer)) else None


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
    # [t d] input of each block, then the last output
    hidden: list[torch.Tensor] = field(default_factory=list)
    hidden_gradient: list[torch.Tensor] = field(default_factory=list)
    maps: list[Map] = field(default_factory=list)
    readout: np.ndarray | None = None  # [t] shares of the rows from which the answer is read
    # what each map's attention writes into the residual stream
    writes: list[Write] = field(default_factory=list)
    # of each block: how far a row moves without a token's value
    zeroed: list[Map] = field(default_factory=list)
    relevance: torch.Tensor | None = None  # [t] of each token, under the rules of the trace
    # total relevance between the blocks, from the last to the first
    cuts: list[float] = field(default_factory=list)
    strange: tuple[str, ...] = ()  # functions of the model for which the rules have no rule
    logit: float = 0.0  # what relevance starts from under rules that pass gradients on; summed over the target's tokens
    # relevance that ends in biases and other constants that are added, under such rules
    constants: float = 0.0


@runtime_checkable
class Model(Protocol):
    """Anything that can be explained. Whoever writes one may subclass `OwnModel`, which has all but three of these."""

    @property
    def name(self) -> str:
        """What the model is called in results and messages."""

    @property
    def task(self) -> str:
        """classification | tagging | qa | causal | seq2seq | callable, or a word of your own."""

    @property
    def offers(self) -> frozenset[str]:
        """What methods may ask for: some of gradients, attention, hidden, score, heads, own."""

    @property
    def removals(self) -> tuple[str, ...]:
        """What absence may mean here, of `REMOVALS`; the first is the default."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes or tags; empty where there are none."""

    @property
    def generates(self) -> bool:
        """Targets are tokens of a vocabulary: the model is a `TextGenerator`."""

    @property
    def probable(self) -> bool:
        """Outcomes have probabilities, so that a target can be read as a log-probability."""

    @property
    def problem(self) -> str:
        """What a classifier decides: single_label | multi_label | regression; "" for all other models."""

    @property
    def shares_prefixes(self) -> bool:
        """Sets of kept tokens that begin alike are computed together, which pays where many of them do."""

    @property
    def rounding(self) -> float:
        """Values that are closer than this are equal to the model's precision; 0 where nobody knows."""

    @property
    def max_tokens(self) -> int | None:
        """The longest input in tokens, where there is a limit."""

    @property
    def head_statistics(self) -> str | None:
        """A file that says what kind each attention head is, where one comes with the model (offer "heads")."""

    def encode(self, examples: Sequence[Example], *, truncate: bool = False) -> list[Encoding]:
        """Tokens of each example on one axis."""

    def resolve_targets(
        self, encoding: Encoding, target_spec: TargetSpec = PREDICTED
    ) -> list[tuple[Encoding, Target]]:
        """The targets that are asked for, each with the encoding it belongs to (written text makes it longer)."""

    def predict(self, encodings: Sequence[Encoding]) -> list[Prediction]:
        """What the model says about each whole text."""

    def trace(
        self,
        encodings: Sequence[Encoding],
        targets: Sequence[Target],
        *,
        want: frozenset[str],
        embeddings: Sequence[torch.Tensor] | None = None,
        heads: np.ndarray | None = None,
        rules: Rules | None = None,
    ) -> Iterator[tuple[int, Trace]]:
        """One trace for each pair, in any order, with its index; under `rules` it tells relevance, not gradients."""

    def score(
        self,
        questions: Sequence[Question],
        *,
        removal: str | None = None,
        heads: np.ndarray | None = None,
        memory: Memory | None = None,
    ) -> list[Scored]:
        """Answers to all questions, batched together; with a `memory` nothing is computed twice."""


@runtime_checkable
class TextGenerator(Model, Protocol):
    """A model that writes text."""

    def write(self, encoding: Encoding, longest: int | None = None) -> list[int]:
        """Ids of the tokens that the model writes for a text, greedily; at most `longest` of them."""

    def ids_of(self, wanted: object, encoding: Encoding, position: int) -> list[int]:
        """Ids of a text that could stand at a position of the encoding (or `wanted` itself, where it is ids)."""

    def pieces_of(self, encoding: Encoding, position: int, text: str) -> list[int]:
        """Ids of a text that could stand at a position, whatever its words are."""

    def text_of(self, ids: Sequence[int]) -> str:
        """The text that tokens spell."""

    def first_position(self, encoding: Encoding) -> int:
        """The first position that has something to be predicted from."""

    def next_target(self, encoding: Encoding, token: int, position: int | None = None) -> Target:
        """One token as a target: behind the encoding, or at a position of it."""


@runtime_checkable
class InspectableModel(Model, Protocol):
    """A model whose weights can be read: any but a function and a model of your own."""

    @property
    def hf(self) -> PreTrainedModel:
        """The user's model: read, never changed."""

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The user's tokenizer: never called, see `codec`."""

    @property
    def codec(self) -> Codec:
        """Text to tokens and back."""

    @property
    def device(self) -> torch.device:
        """Where the model computes."""

    @property
    def tables(self) -> list[nn.Embedding]:
        """The word table of each stream, as a module."""

    @property
    def runner(self) -> Runner:
        """What runs the model."""

    def with_budget(self, budget: Budget) -> InspectableModel:
        """The same model in other batches."""

    def with_weights(self, hf: PreTrainedModel) -> InspectableModel:
        """The same for another model of the same architecture and tokens."""


@runtime_checkable
class SelfExplaining(Model, Protocol):
    """A model that says itself which words it rests on (offer "own")."""

    def own(self, encodings: Sequence[Encoding]) -> list[np.ndarray]:
        """[t] of each text: how much each token counts; special tokens have 0."""


@runtime_checkable
class Selecting(SelfExplaining, Protocol):
    """A model that answers from a part of the text, which it selects."""

    def selected(self, encodings: Sequence[Encoding]) -> list[np.ndarray]:
        """[t] of each text: True for the tokens that the answer was made from."""


class OwnModel(ABC):
    """A model of your own that can be asked, not looked into: define encode, predict and score.

    What else the protocol asks has defaults here; override what is otherwise.
    """

    name: str = "model"
    task: str = "callable"
    offers: frozenset[str] = frozenset({"score"})
    removals: tuple[str, ...] = ("delete",)
    labels: tuple[str, ...] = ()
    generates: bool = False
    probable: bool = False
    problem: str = ""
    shares_prefixes: bool = False
    rounding: float = 0.0
    max_tokens: int | None = None
    head_statistics: str | None = None

    @abstractmethod
    def encode(self, examples: Sequence[Example], *, truncate: bool = False) -> list[Encoding]:
        """See `Model`."""

    @abstractmethod
    def predict(self, encodings: Sequence[Encoding]) -> list[Prediction]:
        """See `Model`."""

    @abstractmethod
    def score(
        self,
        questions: Sequence[Question],
        *,
        removal: str | None = None,
        heads: np.ndarray | None = None,
        memory: Memory | None = None,
    ) -> list[Scored]:
        """See `Model`."""

    def resolve_targets(
        self, encoding: Encoding, target_spec: TargetSpec = PREDICTED
    ) -> list[tuple[Encoding, Target]]:
        """What the model predicts; another target is refused."""
        if target_spec.target is not None or target_spec.contrast is not None:
            raise InputError(
                f"{self.name} is explained for what it predicts: leave target and contrast away."
            )
        prediction = target_spec.prediction or self.predict([encoding])[0]
        return [(encoding, prediction.target)]

    def trace(
        self,
        encodings: Sequence[Encoding],
        targets: Sequence[Target],
        *,
        want: frozenset[str],
        embeddings: Sequence[torch.Tensor] | None = None,
        heads: np.ndarray | None = None,
        rules: Rules | None = None,
    ) -> Iterator[tuple[int, Trace]]:
        """Refuses: there is nothing to look into."""
        raise Unsupported(
            f"{self.name} can be asked, but not looked into: choose a method that needs only scores."
        )


MEMBERS = tuple(sorted(name for name in vars(Model) if not name.startswith("_")))


def missing_protocol_members(model: object) -> list[str]:
    """Names of what the `Model` protocol asks for and an object lacks."""
    return [name for name in MEMBERS if not hasattr(model, name)]
