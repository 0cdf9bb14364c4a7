"""A classifier that first selects its rationale and then predicts from that alone (P1, PLMR), inside any encoder.

    generator   h_i = block_i(h_{i−1} | M_{i−1});   m_i = keep(head(h_i));   M_i = m_i ⊙ M_{i−1}        pruning blocks i
    predictor   logits = W read(blocks(E ⊙ M)) + b                      E: input embeddings, so nothing else can leak

Special tokens are never part of a rationale. The generator sees them all; the predictor sees those in front of the last
word: the place of the very last one would tell how long the text is.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers.utils import ModelOutput

from raison.models.attention.call import Call, current, running
from raison.rationalizers.block_ranges import blocks_of, normed, placeless, stretch
from raison.rationalizers.config import Frame
from raison.rationalizers.gru import Recurrent
from raison.rationalizers.selection import Head, decided, reached_by, sampled, seeing, texts_of

__all__ = ["Rationalizer", "RationalizerConfig", "Selected"]

TYPE = "raison_rationalizer"
ROOM = 2  # tokens that the asked share gives a text; of fewer it is no failure that none stands out


class RationalizerConfig(PretrainedConfig):  # type: ignore[misc]
    """A frame, the config of the encoder inside, the tokens that are no words, and the labels."""

    model_type = TYPE

    def __init__(
        self,
        frame: dict[str, Any] | None = None,
        encoder: dict[str, Any] | None = None,
        special: list[int] | None = None,
        separator: int | None = None,
        base: str = "",
        typed: bool = False,
        longest: int | None = None,
        middle: float = 0.0,
        spread: float = 1.0,
        **more: Any,
    ):
        self.frame = frame if frame is not None else asdict(Frame())
        self.encoder = encoder or {}
        self.special = special or []
        self.separator = separator
        self.base = base  # the model that an adapter belongs to; empty where all weights are stored
        self.longest = longest  # tokens of a text that it was trained on at most
        self.middle, self.spread = middle, spread  # mean and deviation of the numbers that a regression learned from
        self.typed = typed  # token types tell the two texts of a pair apart
        for name in ("max_position_embeddings", "hidden_size", "num_attention_heads", "local_attention"):
            if name in self.encoder:
                more.setdefault(name, self.encoder[name])
        if not isinstance(base, str):
            raise ValueError(f"the base is the name of a model, not {base!r}")
        if not isinstance(self.special, list) or any(type(i) is not int for i in self.special):
            raise ValueError(f"special tokens are a list of numbers, not {special!r}")
        if separator is not None and (isinstance(separator, bool) or not isinstance(separator, int)):
            raise ValueError(f"the separator is the number of a token, not {separator!r}")
        super().__init__(**{"pad_token_id": self.encoder.get("pad_token_id"), **more})


@dataclass
class Selected(ModelOutput):  # type: ignore[misc]
    """What a pass tells: the answer from the rationale, and all that training and diagnostics read."""

    logits: torch.Tensor | None = None  # [b c]
    rationale: torch.Tensor | None = None  # [b t] what the predictor read, 0 or 1
    masks: tuple[torch.Tensor, ...] | None = None  # M_i [b t] behind each pruning block
    margins: tuple[torch.Tensor, ...] | None = None  # [b t] how much more is said for keeping than for dropping
    empty: torch.Tensor | None = None  # [b] two tokens might stay, and but for the rule that one does, none would
    real: torch.Tensor | None = None  # [b t] tokens that may be selected
    side: torch.Tensor | None = None  # [b t] which text of a pair
    full_logits: torch.Tensor | None = None  # [b c] from the full text
    soft_logits: torch.Tensor | None = None  # [b c] A2R's other predictor


@dataclass
class Tokens:
    """What the tokens of a batch are."""

    there: torch.Tensor  # [b t]
    real: torch.Tensor  # [b t] words: may be selected
    special: torch.Tensor  # [b t]
    lead: torch.Tensor  # [b t] special tokens that the predictor sees
    side: torch.Tensor  # [b t] 0 or 1


@dataclass
class Generated:
    """What the generator did."""

    masks: list[torch.Tensor]
    margins: list[torch.Tensor]
    empty: torch.Tensor
    entered: torch.Tensor  # [b t d] input embeddings
    mid: torch.Tensor  # [b t d] states before the first pruning block


class Rationalizer(PreTrainedModel):  # type: ignore[misc]
    """Generator and predictor of a frame; see the file's first lines for the equations."""

    config_class = RationalizerConfig
    base_model_prefix = "rationalizer"
    raison_task = "classification"

    @staticmethod
    def raison_adapted(hf: Any, tokenizer: Any, name: str) -> Any:
        """The model that `raison.load` makes of it."""
        from raison.rationalizers.adapter import selective

        return selective(hf, tokenizer, name)

    _supports_sdpa = True

    def __init__(self, config: RationalizerConfig, encoder: nn.Module | None = None):
        super().__init__(config)
        self.frame = frame = Frame.of(config.frame)
        self.num_labels = int(config.num_labels or 2)
        inner: Any = encoder if encoder is not None else made(config.encoder)
        self.encoder = inner
        if getattr(inner, "pooler", None) is not None:
            inner.pooler = None  # nobody reads it
        width = int(inner.config.hidden_size)
        if frame.encoder == "pretrained":
            if not config.special:
                raise ValueError("no special tokens are named, so [CLS] and its like would be taken for words")
            self.depth = len(blocks_of(self.encoder)[1])
            frame.fits(self.depth, type(self.encoder).__name__)
        self.reader = without_words(inner) if frame.predictor == "apart" else None
        self.soft_reader = without_words(inner) if frame.soft else None
        self.head = Head(width, frame.dropout, frame.pruning, len(frame.sparsity))
        self.dropout = nn.Dropout(frame.dropout)
        self.classifier = nn.Linear(width, self.num_labels)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """As torch and the encoder made them."""

    def get_input_embeddings(self) -> Any:
        return self.encoder.get_input_embeddings()

    def get_output_embeddings(self) -> None:
        return None

    # -- what the tokens are ------------------------------------------------------------------------

    def tokens(self, input_ids: torch.Tensor, there: torch.Tensor) -> Tokens:
        marked = torch.isin(input_ids, torch.tensor(self.config.special, device=input_ids.device))
        special, real = there & marked, there & ~marked
        follows = real.flip(-1).cumsum(-1).flip(-1) > 0  # a word comes later
        first = special & (special.cumsum(-1) == 1)
        parted = (input_ids == self.config.separator) if self.config.separator is not None else torch.zeros_like(there)
        return Tokens(there, real, special, special & (follows | first), (parted.cumsum(-1) > 0).long())

    # -- generator ----------------------------------------------------------------------------------

    def generate(self, inputs: dict[str, Any], tokens: Tokens, count: int | None = None) -> Generated:
        """The nested masks, and the states that others read; `count` of the pruning blocks, or all."""
        frame = self.frame
        kept = tokens.real.to(self.head.linear.weight.dtype)
        others = tokens.special.to(kept)
        masks: list[torch.Tensor] = []
        margins: list[torch.Tensor] = []
        empty = torch.zeros(len(kept), dtype=torch.bool, device=kept.device)
        if isinstance(self.encoder, Recurrent):
            entered = mid = self.encoder.embed(inputs["input_ids"])
            states = self.encoder(entered, tokens.there)
        else:
            before = frame.blocks - frame.pruning
            seen = stretch(self.encoder, 0, before + 1, inputs)
            entered, states = seen.entered, seen.left[-1]
            mid = seen.left[before - 1] if before else entered
        for number in range(frame.pruning if count is None else count):
            if number:
                block = frame.blocks - frame.pruning + number
                states = self.run(block, block + 1, inputs, kept + others, states).left[-1]
            logits = self.head(states)
            margin = logits[..., 1] - logits[..., 0]
            if self.training:
                chosen = sampled(logits)
            else:
                margin = margin + self.shift(number, tokens)
                among, side = kept.bool(), tokens.side if len(frame.sparsity) > 1 else None
                texts = texts_of(among, side), texts_of(tokens.real, side), frame.sparsity
                for part, real, share in zip(*texts, strict=True):
                    empty = empty | (~((margin > 0) & part).any(-1) & (real.sum(-1) * share >= ROOM))
                chosen = decided(margin, among, frame.least_one, side).to(kept)
            kept = chosen * kept
            masks.append(kept)
            margins.append(margin)
        return Generated(masks, margins, empty, entered, mid)

    def shift(self, number: int, tokens: Tokens) -> torch.Tensor:
        """[b t] what calibration adds to the margin, so that the asked share is reached."""
        offsets = self.head.offsets[number]
        return offsets[tokens.side] if len(offsets) > 1 else offsets.expand(tokens.side.shape)

    def run(
        self,
        first: int,
        last: int,
        inputs: dict[str, Any],
        seen: torch.Tensor,
        states: torch.Tensor | None,
        encoder: Any = None,
        factors: Sequence[torch.Tensor] | None = None,
    ) -> Any:
        """Blocks that see the tokens of `seen` [b t] only."""
        encoder = self.encoder if encoder is None else encoder
        if self.frame.hide == "zero":
            factors = [seen] * (last - first) if factors is None else factors
            return stretch(encoder, first, last, inputs, states=states, factors=factors)
        if not self.training:
            masked = {**inputs, "attention_mask": (seen > 0).long()}
            return stretch(encoder, first, last, masked, states=states)
        with reached_by(encoder), seeing(seen):
            return stretch(encoder, first, last, inputs, states=states)

    # -- predictor ----------------------------------------------------------------------------------

    def predict(
        self, inputs: dict[str, Any], tokens: Tokens, entered: torch.Tensor, kept: torch.Tensor, reader: Any
    ) -> torch.Tensor:
        """[b c] logits from the input embeddings of the kept tokens; `kept` [b t] may be weights."""
        seen = kept + tokens.lead.to(kept)
        if isinstance(self.encoder, Recurrent):
            states = reader(entered * kept[..., None], tokens.there)
            return self.answer(states, kept)
        first = self.frame.blocks if self.frame.predictor == "rest" else 0
        factors = None
        if self.frame.hide == "zero":  # P1's code: the first token is 0 at first, and stays from then on
            factors = [kept] + [seen] * (self.depth - first - 1)
        if self.frame.hide == "attention" and (self.training or not torch.is_grad_enabled()) and self.movable:
            seen, read = tried(seen, tokens.real, self.frame.tried)
            entered, seen, read = together(read, entered, seen)
            inputs = {"attention_mask": read.long()}
        told = self.run(first, self.depth, inputs, seen, entered, reader, factors).output
        return self.answer(told, seen)

    @cached_property
    def movable(self) -> bool:
        """Tokens can be moved together, so that those which nobody reads are not computed."""
        return placeless(self.encoder)

    def answer(self, states: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """[b c] the classifier on the mean state of what is seen, or on the first."""
        if self.frame.read == "first":  # of what is seen: padding may stand in front
            first = (seen > 0).long().argmax(1)
            pooled = states[torch.arange(len(states), device=states.device), first]
        else:
            if not self.training:  # what is not seen may be anything, even NaN
                states = states.masked_fill(seen[..., None] == 0, 0.0)
            pooled = (states * seen[..., None]).sum(1) / seen.sum(1, keepdim=True).clamp(min=1e-6)
        logits: torch.Tensor = self.classifier(self.dropout(pooled))
        if self.num_labels == 1:  # heads are fit for numbers about 0; bfloat16 is too coarse for others
            logits = (logits.float() if logits.dtype == torch.bfloat16 else logits) * self.config.spread
            logits = logits + self.config.middle
        return logits

    def full(self, inputs: dict[str, Any], tokens: Tokens, found: Generated) -> torch.Tensor | None:
        """[b c] the same classifier on the full text."""
        frame = self.frame
        if frame.full_text == "none":
            return None
        everything = tokens.there.to(found.mid)
        if frame.full_text == "mid_cls":
            return self.answer(normed(self.encoder, found.mid, inputs), everything)
        if isinstance(self.encoder, Recurrent):
            return self.predict(inputs, tokens, found.entered, everything, self.reader)
        if frame.predictor == "rest":
            told = stretch(self.encoder, frame.blocks, self.depth, inputs, states=found.mid)
        else:
            reader = self.encoder if self.reader is None else self.reader
            told = stretch(reader, 0, self.depth, inputs, states=found.entered)
        return self.answer(told.output, everything)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        rationale: torch.Tensor | None = None,
        full: bool | None = None,
        **kwargs: Any,
    ) -> Selected:
        """`rationale` [b t] is read in the place of the model's own; `full` adds the answer from the full text."""
        inputs, tokens = self.read(input_ids, attention_mask, token_type_ids, position_ids)
        if rationale is None and (moved := current()) is not None and moved.replace is not None:
            rationale = self.unmoved(inputs, tokens, moved)
        found = self.generate(inputs, tokens)
        kept = found.masks[-1] if rationale is None else rationale.to(found.masks[-1]) * tokens.real
        reader = self.encoder if self.reader is None else self.reader
        logits = self.predict(inputs, tokens, found.entered, kept, reader)
        soft = None
        if self.soft_reader is not None and self.training:
            weights = torch.sigmoid(found.margins[-1]) * tokens.real
            soft = self.predict(inputs, tokens, found.entered, weights, self.soft_reader)
        return Selected(
            logits=logits,
            rationale=kept,
            masks=tuple(found.masks),
            margins=tuple(found.margins),
            empty=found.empty,
            real=tokens.real,
            side=tokens.side,
            full_logits=self.full(inputs, tokens, found) if (self.training if full is None else full) else None,
            soft_logits=soft,
        )

    @torch.no_grad()
    def unmoved(self, inputs: dict[str, Any], tokens: Tokens, call: Call) -> torch.Tensor:
        """[b t] what is selected of the text itself, while a method moves its embeddings (along a path, by noise).

        A choice made anew at every point would make the answer jump, and no path of gradients adds up over a jump.
        """
        with running(Call(positions=call.positions, view=call.view, blocked=call.blocked)):
            return self.generate(inputs, tokens).masks[-1]

    def read(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
    ) -> tuple[dict[str, Any], Tokens]:
        """What the encoder takes of a batch, and what its tokens are."""
        there = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        if self.config.pad_token_id is not None:  # padding in the place of a word: the word is not there
            there = there & (input_ids != self.config.pad_token_id)
        return self.arguments(input_ids, there, token_type_ids, position_ids), self.tokens(input_ids, there)

    def arguments(self, ids: torch.Tensor, there: torch.Tensor, types: Any, positions: Any) -> dict[str, Any]:
        """What this encoder takes of a batch."""
        given = {
            "input_ids": ids,
            "attention_mask": there.long(),
            "token_type_ids": types,
            "position_ids": positions,
        }
        if isinstance(self.encoder, Recurrent):
            return {"input_ids": ids}
        known = inspect.signature(self.encoder.forward).parameters
        return {key: value for key, value in given.items() if value is not None and key in known}


def tried(seen: torch.Tensor, real: torch.Tensor, share: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The weights [b t] of what is seen, and which tokens have to be read for them and their gradients.

    A hidden token changes no other, so each can be tried alone: a random share is, with a gradient that is as much
    larger as they are fewer, which is right on average.
    """
    shown = seen > 0
    if not seen.requires_grad:
        return seen, shown
    drawn = real & ~shown & (torch.rand(seen.shape, device=seen.device) < share)
    slope = shown.to(seen) + drawn.to(seen) / share
    return seen.detach() + (seen - seen.detach()) * slope, shown | drawn


def together(
    read: torch.Tensor, states: torch.Tensor, seen: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """States [b t d] and weights [b t] of the tokens that are read, in their order, and where a shorter row ends."""
    order = read.long().argsort(dim=1, descending=True, stable=True)[:, : int(read.sum(1).max())]
    wide = order[..., None].expand(-1, -1, states.shape[-1])
    return states.gather(1, wide), seen.gather(1, order), read.gather(1, order)


def without_words(encoder: nn.Module) -> Any:
    """A copy for a predictor of its own; it is given the generator's embeddings, so it needs no word table."""
    copied: Any = copy.deepcopy(encoder)
    if not isinstance(copied, Recurrent):
        copied.set_input_embeddings(nn.Embedding(1, copied.get_input_embeddings().weight.shape[1]))
    else:
        copied.words = nn.Embedding(1, copied.words.weight.shape[1])
    return copied


def made(stored: dict[str, Any]) -> nn.Module:
    """An encoder with random weights, of its stored config."""
    stored = dict(stored)
    if stored.get("model_type") == Recurrent.TYPE:
        return Recurrent(stored)
    for name in ("dtype", "torch_dtype"):
        stored.pop(name, None)  # of the checkpoint that it began as
    found: nn.Module = AutoModel.from_config(AutoConfig.for_model(**stored))
    return found
