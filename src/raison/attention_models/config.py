"""Everything that decides what an attention classifier is, and how it is trained: two frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raison.core.errors import InputError
from raison.core.json_record import Record
from raison.core.parameters import (
    check_choice,
    check_in_range,
    check_integer,
    dataclass_from_settings,
)

__all__ = ["ATTENTIONS", "COMBINATIONS", "ENCODERS", "ClassifierConfig", "ClassifierTraining"]

ENCODERS = ("bilstm", "transformer")
ATTENTIONS = ("additive", "dot")
COMBINATIONS = ("none", "concat", "residual")


@dataclass(frozen=True, eq=False)
class ClassifierConfig(Record):
    """words → e [t, width] → encoder → h [t, width] → scores a → weights α = φ(a) → Σ α h → linear → logits.

    The encoder is as wide as the embeddings (half of it in each direction of a BiLSTM), so that h − e and h + e exist
    (P3). `combine` is what attention and decoder read: h, [h; e] or h + e.
    """

    width: int = 300  # of embeddings and hidden states, d
    encoder: str = "bilstm"  # or transformer
    layers: int = 1
    heads: int = 1  # of a transformer
    attention: str = (
        "additive"  # v·tanh(W h + b) with W [d/2, d] (no bias behind v), or dot: ⟨q, h⟩ / √d
    )
    query_std: float | None = (
        1.0  # dot: q ~ N(0, query_std²); None: torch's own, with which α stays uniform (P3 C)
    )
    normalizer: str = "softmax"  # or sparsemax, sparsegen(lam=…), entmax(alpha=…)
    combine: str = "none"  # or concat, residual
    dropout: float = 0.0  # of embeddings and of what the decoder reads, in training
    longest: int = 512  # tokens of a text; a transformer has as many positions

    def validate(self) -> None:
        check_integer("width", self.width, 2)
        check_integer("layers", self.layers, 1)
        check_integer("heads", self.heads, 1)
        check_integer("longest", self.longest, 3)
        check_choice("encoder", self.encoder, ENCODERS)
        check_choice("attention", self.attention, ATTENTIONS)
        check_choice("combine", self.combine, COMBINATIONS)
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is a share from 0 up to less than 1, not {self.dropout}.")
        if self.encoder == "bilstm" and self.width % 2:
            raise InputError(
                f"A BiLSTM has half of the width in each direction: give an even width, not {self.width}."
            )
        if self.encoder == "transformer" and self.width % self.heads:
            raise InputError(
                f"{self.heads} heads can't share a width of {self.width}: give a width that they divide."
            )
        if self.query_std is not None:
            check_in_range("query_std", self.query_std, 0)

    @property
    def read_width(self) -> int:
        """The width of what attention and decoder read."""
        return 2 * self.width if self.combine == "concat" else self.width

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> ClassifierConfig:
        """The config of these settings; a name that it does not know is refused."""
        return dataclass_from_settings(cls, settings, "An attention classifier")


@dataclass(frozen=True, eq=False)
class ClassifierTraining(Record):
    """How a classifier is trained; defaults are P3's, where it says so."""

    embeddings: str = "random"  # random, a file (or folder) of GloVe vectors, or a pretrained encoder such as minilm
    freeze: bool | None = (
        None  # embeddings stay as they are; None: where they were read, and with mlm
    )
    tying: float = 0.0  # δ
    mlm: float = 0.0  # η
    mlm_share: float = 0.15  # of the tokens that mlm asks about
    lr: float = 1e-3
    attention_lr: float = 1.0  # of the attention's parameters, as a factor
    weight_decay: float = 1e-5
    clip: float = 5.0  # largest norm of the gradient
    batch: int = 32
    epochs: int = 20  # at most
    patience: int = 4  # epochs without a better F1 of the development part
    least: int = 1  # how often a word stands in the training texts to have a vector
    held_out: float = (
        0.1  # share of the training part that is held out where there is no development part
    )
    longest: int | None = None  # tokens of a text at most; longer ones are cut

    def validate(self) -> None:
        for name in ("batch", "epochs", "patience", "least"):
            check_integer(name, getattr(self, name), 1)
        for name in ("tying", "mlm", "weight_decay", "clip"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} is a number from 0 up, not {getattr(self, name)}.")
        for name in ("lr", "attention_lr"):
            check_in_range(name, getattr(self, name), 0)
        check_in_range("mlm_share", self.mlm_share, 0, 1)
        check_in_range("held_out", self.held_out, 0, 0.9)
        if self.mlm and self.freeze is False:
            raise InputError(
                "mlm tells words by the frozen embeddings, so they can't be trained: leave freeze away (--tune)."
            )

    @property
    def freezes_embeddings(self) -> bool:
        """Whether embeddings stay as they are; if nothing is said, where they were read, and with mlm."""
        if self.freeze is not None:
            return self.freeze
        return self.embeddings != "random" or bool(self.mlm)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> ClassifierTraining:
        """The training of these settings; a name that it does not know is refused."""
        return dataclass_from_settings(cls, settings, "A training")
