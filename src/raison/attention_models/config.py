"""The config of an attention classifier and the settings of its training: two frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from raison.core.errors import InputError
from raison.core.from_settings import dataclass_from_settings, setting
from raison.core.json_record import Record
from raison.core.parameters import check_choice, check_in_range, check_integer, check_not_negative

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

    encoder: str = setting("bilstm", "bilstm or transformer.")
    # additive: v·tanh(W h + b) with W [d/2, d] (no bias behind v); dot: ⟨q, h⟩ / √d
    attention: str = setting("additive", "additive or dot.")
    normalizer: str = setting(
        "softmax", "softmax, sparsemax, sparsegen(lam=0.6) or entmax(alpha=1.5)."
    )
    combine: str = setting("none", "What is attended to: none (hidden states), concat or residual.")
    # d; where word vectors are read, it follows from them
    width: int = setting(
        300, "Of embeddings and hidden states; default: the vectors', or 300.", derived=True
    )
    layers: int = setting(1, "Of the encoder.")
    heads: int = setting(1, "Of a transformer.")
    dropout: float = setting(0.0, "Of embeddings and of what is decoded.")  # in training
    # dot: q ~ N(0, query_std²); None: torch's own, with which α stays uniform (P3 C)
    query_std: float | None = 1.0
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
    def from_settings(cls, settings: Mapping[str, object]) -> ClassifierConfig:
        """The config of these settings; a name that it does not know is refused."""
        return dataclass_from_settings(cls, settings, "An attention classifier")


@dataclass(frozen=True, eq=False)
class ClassifierTraining(Record):
    """How a classifier is trained; defaults are P3's, where it says so."""

    embeddings: str = setting(
        "random", "random, a GloVe file, or a pretrained encoder such as minilm."
    )
    freeze: bool | None = setting(
        None,
        "Embeddings stay as they are; default: where they were read.",  # and with mlm
        option="--freeze/--tune",
    )
    tying: float = setting(0.0, "δ: hidden states are kept near the embeddings.")
    mlm: float = setting(0.0, "η: hidden states must tell their words.")
    mlm_share: float = 0.15  # of the tokens that mlm asks about
    lr: float = setting(1e-3, "Rate of training.")
    attention_lr: float = 1.0  # of the attention's parameters, as a factor
    weight_decay: float = 1e-5
    clip: float = 5.0  # largest norm of the gradient
    batch: int = setting(32, "Texts in a batch.")
    epochs: int = setting(20, "At most so many.")
    patience: int = setting(4, "Epochs without a better F1 after which it stops.")
    least: int = setting(1, "How often a word stands in the training texts to have a vector.")
    # share of the training part that is held out where there is no development part
    held_out: float = 0.1
    longest: int | None = setting(None, "Tokens of a text; longer ones are cut.")

    def validate(self) -> None:
        check_integer("batch", self.batch, 1)
        check_integer("epochs", self.epochs, 1)
        check_integer("patience", self.patience, 1)
        check_integer("least", self.least, 1)
        check_not_negative("tying", self.tying)
        check_not_negative("mlm", self.mlm)
        check_not_negative("weight_decay", self.weight_decay)
        check_not_negative("clip", self.clip)
        check_in_range("lr", self.lr, 0)
        check_in_range("attention_lr", self.attention_lr, 0)
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
    def from_settings(cls, settings: Mapping[str, object]) -> ClassifierTraining:
        """The training of these settings; a name that it does not know is refused."""
        return dataclass_from_settings(cls, settings, "A training")
