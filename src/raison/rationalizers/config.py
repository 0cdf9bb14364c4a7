"""Everything that decides what a rationalizer is, in one frozen record (P1, its ablations and baselines)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import e, exp, log
from typing import Any

from raison.core.errors import InputError
from raison.core.from_settings import dataclass_from_settings, setting
from raison.core.json_record import Record
from raison.core.parameters import check_choice, check_in_range, check_integer

__all__ = ["ALL_BLOCKS", "VARIANTS", "RationalizerConfig", "pruning_levels"]

ENCODERS = ("pretrained", "gru")
PREDICTORS = ("rest", "whole", "apart")
HIDINGS = ("attention", "zero")
FULL_TEXTS = ("mid_cls", "predictor", "none")
READINGS = ("first", "mean")
ALL_BLOCKS = 0  # as the number of blocks that generate


@dataclass(frozen=True, eq=False)
class RationalizerConfig(Record):
    """generator: the first `blocks` of an encoder; behind each of its last `pruning` ones tokens are dropped for good.

    predictor: reads the input embeddings of the tokens that are left, and nothing else. It is the `rest` of the blocks
    (P1), the `whole` encoder, or a whole encoder of its own (`apart`, as in RNP).
    """

    sparsity: tuple[float, ...] = setting(
        (0.2,), "Share of the tokens that is kept; of pairs, give it twice.  [default: 0.2]"
    )
    blocks: int = setting(
        4, "Blocks that select; default: chosen by how alike token states are; 0: all."
    )
    pruning: int = setting(2, "The last so many of them drop tokens.")
    predictor: str = setting(
        "rest", "What reads the rationale: rest (of the blocks), whole, apart."
    )
    # dropped tokens get no attention; or their states are 0 (P1's code)
    hide: str = setting("attention", "How: attention, or zero.")
    # which reading of the full text is trained too: of the states before pruning, or the predictor's
    full_text: str = setting("mid_cls", "Also trained: mid_cls, predictor or none.")
    # the mean is of what is seen; the first token's is P1's code
    read: str = setting("mean", "What is classified: mean state, or the first token's.")
    # A2R: another predictor reads all tokens, weighed by how likely they are kept
    soft_predictor: bool = False
    never_empty: bool = True  # a text that would lose all of its tokens keeps the likeliest
    encoder: str = "pretrained"  # or gru: two-way GRUs over word embeddings (RNP as it was)
    width: int = 200  # of a gru, both directions together
    dropout: float = 0.1  # of what the heads read
    # of the hidden tokens: those of which training asks what seeing them would change
    hidden_share: float = 0.5

    def validate(self) -> None:
        check_integer("blocks", self.blocks, 1)
        check_integer("pruning", self.pruning, 1)
        check_integer("width", self.width, 2)
        check_choice("predictor", self.predictor, PREDICTORS)
        check_choice("hide", self.hide, HIDINGS)
        check_choice("full_text", self.full_text, FULL_TEXTS)
        check_choice("read", self.read, READINGS)
        check_choice("encoder", self.encoder, ENCODERS)
        self.check_sparsity()
        check_in_range("hidden_share", self.hidden_share, 0, 1)
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is a share from 0 up to less than 1, not {self.dropout}.")
        self.check_blocks()

    def check_sparsity(self) -> None:
        """One share of the tokens, or two; a single number becomes a tuple of one."""
        if not isinstance(self.sparsity, tuple):
            object.__setattr__(self, "sparsity", (self.sparsity,))
        if not 1 <= len(self.sparsity) <= 2:
            raise InputError(
                f"sparsity is one share, or two for the two texts of a pair, not {len(self.sparsity)}."
            )
        for share in self.sparsity:
            if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
                raise InputError(
                    f"sparsity is a share of the tokens between 0 and 1, such as 0.2, not {share!r}."
                )

    def check_blocks(self) -> None:
        """Whether blocks, pruning and the reading of the full text go together."""
        if self.pruning > self.blocks:
            raise InputError(
                f"{self.blocks} blocks can't drop tokens {self.pruning} times: give a smaller pruning."
            )
        if self.encoder == "gru":
            if (
                (self.blocks, self.pruning) != (1, 1)
                or self.predictor != "apart"
                or self.full_text == "mid_cls"
            ):
                raise InputError(
                    "encoder=gru has blocks=1, pruning=1, predictor=apart, full_text=predictor or none."
                )
            if self.width % 2:
                raise InputError(
                    f"A two-way GRU has half of the width in each direction: not {self.width}."
                )
        elif self.full_text == "mid_cls" and self.pruning == self.blocks:
            raise InputError(
                f"full_text=mid_cls reads the states before tokens are dropped, and all {self.blocks} blocks drop "
                "some: give a smaller pruning, or full_text=none."
            )

    @property
    def blocks_before_pruning(self) -> int:
        """Blocks of the generator that drop nothing."""
        return self.blocks - self.pruning

    @property
    def for_pairs(self) -> bool:
        """Whether each of two texts has a share of its own."""
        return len(self.sparsity) > 1

    def check_depth(self, depth: int, name: str) -> None:
        """Refuse an encoder of so many blocks if it can't be split like this."""
        last = depth - 1 if self.predictor == "rest" else depth
        if self.encoder == "pretrained" and self.blocks > last:
            why = (
                "the predictor needs at least one" if self.predictor == "rest" else "it has no more"
            )
            raise InputError(
                f"{name} has {depth} blocks, so the generator can have 1 to {last} of them, not {self.blocks}: {why}."
            )

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> RationalizerConfig:
        """The config of these settings; a name that it does not know is refused."""
        return dataclass_from_settings(cls, settings, "A rationalizer")


def pruning_levels(sparsity: float, count: int) -> list[float]:
    """Share of tokens kept behind each pruning block: ln((e^α (i+1) + e (n − i − 1)) / n), the last one α (P1)."""
    return [log((exp(sparsity) * (i + 1) + e * (count - i - 1)) / count) for i in range(count)]


RNP = {"predictor": "apart", "pruning": 1, "full_text": "none"}
GRU = {"encoder": "gru", "predictor": "apart", "blocks": 1, "pruning": 1, "full_text": "none"}

# Variants and baselines by name; what is not said is the user's (or the default)
VARIANTS: dict[str, dict[str, Any]] = {
    "plmr": {},
    "whole": {"predictor": "whole"},
    "no_pruning": {"pruning": 1},
    "no_full_text": {"full_text": "none"},
    "literal": {"hide": "zero", "read": "first"},
    "rnp": {**RNP, "blocks": ALL_BLOCKS},
    "all_layers": {"predictor": "whole", "blocks": ALL_BLOCKS},
    "a2r": {**RNP, "blocks": ALL_BLOCKS, "soft_predictor": True},
    "rnp_gru": GRU,
    "a2r_gru": {**GRU, "soft_predictor": True},
}
