"""The config of a rationalizer, the settings of its training, the weights of its loss, and variants by name (P1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import e, exp, log

from raison.core.errors import InputError
from raison.core.from_settings import dataclass_from_settings, setting
from raison.core.json_record import Record, record_field
from raison.core.parameters import check_choice, check_in_range, check_integer, check_not_negative

__all__ = [
    "ALL_BLOCKS",
    "VARIANTS",
    "LossWeights",
    "RationalizerConfig",
    "RationalizerTraining",
    "pruning_levels",
]

ENCODERS = ("pretrained", "gru")
PREDICTORS = ("rest", "whole", "apart")
HIDINGS = ("attention", "zero")
FULL_TEXTS = ("mid_cls", "predictor", "none")
READINGS = ("first", "mean")
ALL_BLOCKS = 0  # as the number of blocks that generate
RATE_OF_BLOCKS = 5e-5
RATE_OF_LORA = 2e-4  # adapters have few weights, which may take larger steps


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
            is_number = isinstance(share, (int, float)) and not isinstance(share, bool)
            if not is_number or not 0 < share < 1:
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
            one_block = self.blocks == 1 and self.pruning == 1
            if not one_block or self.predictor != "apart" or self.full_text == "mid_cls":
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
        last, why = depth, "it has no more"
        if self.predictor == "rest":
            last, why = depth - 1, "the predictor needs at least one"
        if self.encoder == "pretrained" and self.blocks > last:
            raise InputError(
                f"{name} has {depth} blocks, so the generator can have 1 to {last} of them, not {self.blocks}: {why}."
            )

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> RationalizerConfig:
        """The config of these settings; a name that it does not know is refused."""
        return dataclass_from_settings(cls, settings, "A rationalizer")


@dataclass(frozen=True, eq=False)
class LossWeights(Record):
    """How much each term of the loss counts."""

    rationale: float = 2.0
    full_text: float = 1.0
    sparsity: float = setting(5.0, "λ_s.", option="--sparsity-weight")
    # P1: 10, with which short texts collapse
    coherence: float = setting(0.1, "λ_c: neighbours are treated alike.")
    soft_predictor: float = 1.0
    human: float = setting(0.0, "Weight of human rationales, where the data has some.")

    def validate(self) -> None:
        for name, value in vars(self).items():
            if not value >= 0:
                raise InputError(f"The weight of {name} is a number from 0 up, not {value}.")


@dataclass(frozen=True, eq=False)
class RationalizerTraining(Record):
    """How a rationalizer is trained."""

    weights: LossWeights = record_field("LossWeights", default=LossWeights())
    lora: int = setting(0, "Train an adapter of this rank; 0: all weights of the blocks.")
    lr: float = setting(
        RATE_OF_BLOCKS, "Of the blocks; default: 2e-4 with --lora, else 5e-5.", derived=True
    )
    head_lr: float = setting(5e-4, "Of the heads.")
    weight_decay: float = 0.01
    clip: float = 1.0  # largest norm of the gradient
    batch: int = setting(32, "Texts in a batch.")
    epochs: int = setting(6, "At most so many.")
    patience: int = setting(3, "Epochs without a better accuracy after which it stops.")
    # in them the selection is not judged yet
    warm: float = setting(1.0, "Epochs in which the predictor reads random parts.")
    # share of the training part that is held out where there is no development part
    held_out: float = 0.1
    longest: int = setting(256, "Tokens of a text; longer ones are cut.")
    bfloat16: bool = setting(False, "Compute in bfloat16: faster on CPUs that have it.")
    half: bool = setting(False, "Write the adapter in float16.")

    def validate(self) -> None:
        check_integer("batch", self.batch, 1)
        check_integer("epochs", self.epochs, 1)
        check_integer("patience", self.patience, 1)
        check_integer("longest", self.longest, 1)
        check_integer("lora", self.lora, 0)
        check_not_negative("weight_decay", self.weight_decay)
        check_not_negative("clip", self.clip)
        check_not_negative("warm", self.warm)
        check_in_range("lr", self.lr, 0)
        check_in_range("head_lr", self.head_lr, 0)
        check_in_range("held_out", self.held_out, 0, 0.9)
        if self.warm >= self.epochs:
            raise InputError(
                f"After {self.warm:g} epochs of warm-up none of {self.epochs} is left: give more epochs."
            )
        if self.half and not self.lora:
            raise InputError(
                "half stores an adapter in float16: give lora a rank, or leave half away."
            )

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> RationalizerTraining:
        """The training of these settings; where they name no rate, an adapter has a larger one than whole blocks."""
        usual = {"lr": RATE_OF_BLOCKS}
        if settings.get("lora"):
            usual["lr"] = RATE_OF_LORA
        return dataclass_from_settings(cls, {**usual, **settings}, "A training")


def pruning_levels(sparsity: float, count: int) -> list[float]:
    """Share of tokens kept behind each pruning block: ln((e^α (i+1) + e (n − i − 1)) / n), the last one α (P1)."""
    levels = []
    for number in range(1, count + 1):
        total = exp(sparsity) * number + e * (count - number)
        levels.append(log(total / count))
    return levels


RNP = {"predictor": "apart", "pruning": 1, "full_text": "none"}
GRU = {"encoder": "gru", "predictor": "apart", "blocks": 1, "pruning": 1, "full_text": "none"}

# Variants and baselines by name; what is not said is the user's (or the default)
VARIANTS: dict[str, dict[str, object]] = {
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
