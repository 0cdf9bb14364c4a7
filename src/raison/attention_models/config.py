"""Everything that decides what an attention classifier is, in one frozen record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raison.core.errors import InputError
from raison.core.from_settings import filled
from raison.core.spec import between, one_of, whole

__all__ = ["ATTENTIONS", "COMBINATIONS", "ENCODERS", "Design"]

ENCODERS = ("bilstm", "transformer")
ATTENTIONS = ("additive", "dot")
COMBINATIONS = ("none", "concat", "residual")


@dataclass(frozen=True)
class Design:
    """words → e [t, width] → encoder → h [t, width] → scores a → weights α = φ(a) → Σ α h → linear → logits.

    The encoder is as wide as the embeddings (half of it in each direction of a BiLSTM), so that h − e and h + e exist
    (P3). `combine` is what attention and decoder read: h, [h; e] or h + e.
    """

    width: int = 300  # of embeddings and hidden states, d
    encoder: str = "bilstm"  # or transformer
    layers: int = 1
    heads: int = 1  # of a transformer
    attention: str = "additive"  # v·tanh(W h + b) with W [d/2, d] (no bias behind v), or dot: ⟨q, h⟩ / √d
    spread: float | None = 1.0  # dot: q ~ N(0, spread²) at first; None: torch's own, with which α stays uniform (P3 C)
    normalizer: str = "softmax"  # or sparsemax, sparsegen(lam=…), entmax(alpha=…)
    combine: str = "none"  # or concat, residual
    dropout: float = 0.0  # of embeddings and of what the decoder reads, in training
    longest: int = 512  # tokens of a text; a transformer has as many positions

    def __post_init__(self) -> None:
        from raison.attention_models.normalizers import normalizer_of

        whole("width", self.width, 2)
        whole("layers", self.layers, 1)
        whole("heads", self.heads, 1)
        whole("longest", self.longest, 3)
        one_of("encoder", self.encoder, ENCODERS)
        one_of("attention", self.attention, ATTENTIONS)
        one_of("combine", self.combine, COMBINATIONS)
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is a share from 0 up to less than 1, not {self.dropout}.")
        normalizer_of(self.normalizer)
        if self.encoder == "bilstm" and self.width % 2:
            raise InputError(f"A BiLSTM has half of the width in each direction: give an even width, not {self.width}.")
        if self.encoder == "transformer" and self.width % self.heads:
            raise InputError(f"{self.heads} heads can't share a width of {self.width}: give a width that they divide.")
        if self.spread is not None:
            between("spread", self.spread, 0)

    @property
    def read_width(self) -> int:
        """Of what attention and decoder read."""
        return 2 * self.width if self.combine == "concat" else self.width

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Design:
        """The design of a config file; what it does not know is refused."""
        return filled(cls, stored, "An attention classifier")
