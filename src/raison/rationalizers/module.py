"""A classifier that first selects its rationale and then predicts from that alone (P1, PLMR), inside any encoder.

    generator   h_i = block_i(h_{i−1} | M_{i−1});   m_i = keep(selector(h_i));   M_i = m_i ⊙ M_{i−1}    pruning blocks i
    predictor   logits = W read(blocks(E ⊙ M)) + b                      E: input embeddings, so nothing else can leak

Special tokens are never part of a rationale. The generator sees them all; the predictor sees those in front of the last
word: the place of the very last one would tell how long the text is.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, PreTrainedModel

from raison.core.json_record import JsonObject
from raison.models.attention.call import Call, running_call
from raison.models.runner.runner import running
from raison.rationalizers.block_ranges import (
    BlockStates,
    Inputs,
    apply_final_norm,
    blocks_of_encoder,
    ignores_positions,
    run_blocks,
)
from raison.rationalizers.config import RationalizerConfig
from raison.rationalizers.gru import Encoder, GRUEncoder
from raison.rationalizers.hiding_attention import hiding_in, seeing
from raison.rationalizers.output import Generated, RationalizerOutput
from raison.rationalizers.selection import (
    Selector,
    TokenRoles,
    decide_mask,
    gather_read_tokens,
    sample_mask,
    token_roles,
    tokens_by_text,
    try_hidden_tokens,
)
from raison.rationalizers.stored_config import StoredRationalizerConfig

__all__ = ["Rationalizer"]

ROOM = 2  # tokens that the asked share gives a text; of fewer it is no failure that none stands out


class Rationalizer(PreTrainedModel):
    """Generator and predictor of a config; see the file's first lines for the equations."""

    config_class = StoredRationalizerConfig
    base_model_prefix = "rationalizer"
    raison_task = "classification"
    raison_loader = "rationalizer"  # what wraps it as a Model, in the registry of loaders
    _supports_sdpa = True

    def __init__(self, config: StoredRationalizerConfig, encoder: Encoder | None = None):
        super().__init__(config)
        settings = RationalizerConfig.from_settings(config.rationalizer)
        self.settings = settings
        self.num_labels = int(config.num_labels or 2)
        if encoder is None:
            encoder = encoder_with_random_weights(config.encoder)
        if "pooler" in encoder._modules:
            encoder.pooler = None  # nobody reads it
        self.encoder = encoder
        width = int(encoder.config.hidden_size)
        if settings.encoder == "pretrained":
            if not config.special_ids:
                raise ValueError(
                    "no special tokens are named, so [CLS] and its like would be taken for words"
                )
            _, blocks = blocks_of_encoder(encoder)
            self.depth = len(blocks)
            family = type(encoder).__name__
            settings.check_depth(self.depth, family)

        self.predictor: Encoder | None = None
        if settings.predictor == "apart":
            self.predictor = encoder_copy_without_words(encoder)
        self.soft_predictor: Encoder | None = None
        if settings.soft_predictor:
            self.soft_predictor = encoder_copy_without_words(encoder)
        texts = len(settings.sparsity)
        self.selector = Selector(width, settings.dropout, settings.pruning, texts)
        self.dropout = nn.Dropout(settings.dropout)
        self.classifier = nn.Linear(width, self.num_labels)
        # not asked yet; the underscore keeps it through passes of a view
        self._movable: bool | None = None
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """As torch and the encoder made them."""

    def get_input_embeddings(self) -> nn.Module:
        words: nn.Module = self.encoder.get_input_embeddings()
        return words

    def get_output_embeddings(self) -> None:
        return None

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        rationale: torch.Tensor | None = None,
        full: bool | None = None,
        **kwargs: object,
    ) -> RationalizerOutput:
        """`rationale` [b t] is read in the place of the model's own; `full` adds the answer from the full text."""
        inputs, tokens = self.read(input_ids, attention_mask, token_type_ids, position_ids)
        call = running_call.get()
        if rationale is None and call is not None and call.replace is not None:
            rationale = self.rationale_of_text(inputs, tokens, call)
        generated = self.generate(inputs, tokens)
        kept = generated.masks[-1]
        if rationale is not None:
            kept = rationale.to(kept) * tokens.real
        entered = generated.entered
        logits = self.predict(inputs, tokens, entered, kept, self.own_predictor)

        soft_logits = None
        if self.soft_predictor is not None and self.training:
            last_margin = generated.margins[-1]
            weights = torch.sigmoid(last_margin) * tokens.real
            soft_logits = self.predict(inputs, tokens, entered, weights, self.soft_predictor)
        if full is None:
            full = self.training
        full_logits = None
        if full:
            full_logits = self.predict_full_text(inputs, tokens, generated)
        return RationalizerOutput(
            logits=logits,
            rationale=kept,
            masks=tuple(generated.masks),
            margins=tuple(generated.margins),
            empty=generated.empty,
            real=tokens.real,
            side=tokens.side,
            full_logits=full_logits,
            soft_logits=soft_logits,
        )

    @torch.no_grad()
    def rationale_of_text(self, inputs: Inputs, tokens: TokenRoles, call: Call) -> torch.Tensor:
        """[b t] what is selected of the text itself, while a method moves its embeddings (along a path, by noise).

        A choice made anew at every point would make the answer jump, and no path of gradients adds up over a jump.
        """
        without_moves = Call(positions=call.positions, view=call.view, blocked=call.blocked)
        with running(without_moves):
            generated = self.generate(inputs, tokens)
        return generated.masks[-1]

    # -- what is read -------------------------------------------------------------------------------

    def read(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
    ) -> tuple[Inputs, TokenRoles]:
        """What the encoder takes of a batch, and what its tokens are."""
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        config = self.config
        present = attention_mask.bool()
        if config.pad_token_id is not None:
            # padding in the place of a word: the word is not there
            is_word = input_ids != config.pad_token_id
            present = present & is_word
        tokens = token_roles(input_ids, present, config.special_ids, config.separator_id)
        if isinstance(self.encoder, GRUEncoder):
            return {"input_ids": input_ids}, tokens

        inputs = {"input_ids": input_ids, "attention_mask": present.long()}
        known = inspect.signature(self.encoder.forward).parameters
        if token_type_ids is not None and "token_type_ids" in known:
            inputs["token_type_ids"] = token_type_ids
        if position_ids is not None and "position_ids" in known:
            inputs["position_ids"] = position_ids
        return inputs, tokens

    # -- generator ----------------------------------------------------------------------------------

    def generate(self, inputs: Inputs, tokens: TokenRoles, count: int | None = None) -> Generated:
        """The nested masks, and the states that others read; `count` of the pruning blocks, or all."""
        kept = tokens.real.to(self.selector.linear.weight.dtype)
        others = tokens.special.to(kept)
        entered, mid, states = self.states_before_selection(inputs, tokens)

        masks: list[torch.Tensor] = []
        margins: list[torch.Tensor] = []
        empty = torch.zeros(len(kept), dtype=torch.bool, device=kept.device)
        if count is None:
            count = self.settings.pruning
        for number in range(count):
            if number:
                block = self.settings.blocks_before_pruning + number
                seen = kept + others
                ran = self.run(block, block + 1, inputs, seen, states)
                states = ran.left[-1]
            logits = self.selector(states)
            margin = logits[..., 1] - logits[..., 0]
            if self.training:
                chosen = sample_mask(logits)
            else:
                among = kept.bool()
                offset = self.calibrated_offset(number, tokens)
                margin = margin + offset
                empty = empty | self.nothing_stands_out(margin, among, tokens)
                side = self.side_of_pairs(tokens)
                decided = decide_mask(margin, among, self.settings.never_empty, side)
                chosen = decided.to(kept)
            kept = chosen * kept
            masks.append(kept)
            margins.append(margin)
        return Generated(masks=masks, margins=margins, empty=empty, entered=entered, mid=mid)

    def states_before_selection(
        self, inputs: Inputs, tokens: TokenRoles
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """[b t d] input embeddings, states before the first pruning block, and behind it."""
        if isinstance(self.encoder, GRUEncoder):
            embedded = self.encoder.embed(inputs["input_ids"])
            return embedded, embedded, self.encoder(embedded, tokens.present)
        before = self.settings.blocks_before_pruning
        ran = run_blocks(self.encoder, 0, before + 1, inputs)
        mid = ran.entered
        if before:
            mid = ran.left[before - 1]
        return ran.entered, mid, ran.left[-1]

    def nothing_stands_out(
        self, margin: torch.Tensor, among: torch.Tensor, tokens: TokenRoles
    ) -> torch.Tensor:
        """[b] some text has room for two tokens, and for none of its tokens more is said for keeping."""
        side = self.side_of_pairs(tokens)
        among_by_text = tokens_by_text(among, side)
        real_by_text = tokens_by_text(tokens.real, side)
        texts = zip(among_by_text, real_by_text, self.settings.sparsity, strict=True)
        is_above = margin > 0
        nothing = torch.zeros(len(margin), dtype=torch.bool, device=margin.device)
        for text, real, share in texts:
            words = real.sum(-1)
            has_room = words * share >= ROOM
            stands_out = is_above & text
            nothing_here = ~stands_out.any(-1)
            nothing = nothing | (nothing_here & has_room)
        return nothing

    def side_of_pairs(self, tokens: TokenRoles) -> torch.Tensor | None:
        """[b t] which text each token is of, where each of two texts has a rationale of its own."""
        if self.settings.for_pairs:
            return tokens.side
        return None

    def calibrated_offset(self, number: int, tokens: TokenRoles) -> torch.Tensor:
        """[b t] what calibration adds to the margin, so that the asked share is reached."""
        offsets = self.selector.offsets[number]
        if len(offsets) > 1:
            return offsets[tokens.side]
        return offsets.expand(tokens.side.shape)

    def run(
        self,
        first: int,
        last: int,
        inputs: Inputs,
        seen: torch.Tensor,
        states: torch.Tensor | None,
        encoder: Encoder | None = None,
        factors: Sequence[torch.Tensor] | None = None,
    ) -> BlockStates:
        """Blocks that see the tokens of `seen` [b t] only."""
        if encoder is None:
            encoder = self.encoder
        if self.settings.hide == "zero":
            if factors is None:
                factors = [seen] * (last - first)
            return run_blocks(encoder, first, last, inputs, states=states, factors=factors)
        if not self.training:
            masked = {**inputs, "attention_mask": (seen > 0).long()}
            return run_blocks(encoder, first, last, masked, states=states)
        with hiding_in(encoder), seeing(seen):
            return run_blocks(encoder, first, last, inputs, states=states)

    # -- predictor ----------------------------------------------------------------------------------

    @property
    def own_predictor(self) -> Encoder:
        """The encoder that reads the rationale: one of its own, or the generator's."""
        if self.predictor is None:
            return self.encoder
        return self.predictor

    def predict(
        self,
        inputs: Inputs,
        tokens: TokenRoles,
        entered: torch.Tensor,
        kept: torch.Tensor,
        predictor: Encoder,
    ) -> torch.Tensor:
        """[b c] logits from the input embeddings of the kept tokens; `kept` [b t] may be weights."""
        if isinstance(self.encoder, GRUEncoder):
            rationale = entered * kept[..., None]
            states = predictor(rationale, tokens.present)
            return self.classify(states, kept)

        settings = self.settings
        lead = tokens.lead.to(kept)
        seen = kept + lead
        first = 0
        if settings.predictor == "rest":
            first = settings.blocks
        if settings.hide == "zero":
            # P1's code: the first token is 0 at first, and stays from then on
            later_blocks = self.depth - first - 1
            factors = [kept] + [seen] * later_blocks
            ran = self.run(first, self.depth, inputs, seen, entered, predictor, factors)
            return self.classify(ran.output, seen)
        may_leave_out = self.training or not torch.is_grad_enabled()
        if may_leave_out and self.movable:
            seen, read = try_hidden_tokens(seen, tokens.real, settings.hidden_share)
            entered, seen, read = gather_read_tokens(read, entered, seen)
            inputs = {"attention_mask": read.long()}
        ran = self.run(first, self.depth, inputs, seen, entered, predictor)
        return self.classify(ran.output, seen)

    @property
    def movable(self) -> bool:
        """Tokens can be moved together, so that those which nobody reads are not computed."""
        if self._movable is None:
            # positions of the texts that a method asks about are none of these tokens'
            with running(Call()):
                self._movable = ignores_positions(self.encoder)
        return self._movable

    def classify(self, states: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """[b c] the classifier on the mean state of what is seen, or on the first."""
        if self.settings.read == "first":  # of what is seen: padding may stand in front
            is_seen = seen > 0
            first = is_seen.long().argmax(1)
            rows = torch.arange(len(states), device=states.device)
            pooled = states[rows, first]
        else:
            weights = seen[..., None]
            if not self.training:  # what is not seen may be anything, even NaN
                is_hidden = weights == 0
                states = states.masked_fill(is_hidden, 0.0)
            weighted = states * weights
            total = seen.sum(1, keepdim=True)
            pooled = weighted.sum(1) / total.clamp(min=1e-6)
        dropped = self.dropout(pooled)
        logits: torch.Tensor = self.classifier(dropped)
        if self.num_labels > 1:
            return logits
        # heads are fit for numbers about 0; bfloat16 is too coarse for others
        if logits.dtype == torch.bfloat16:
            logits = logits.float()
        config = self.config
        scaled: torch.Tensor = logits * config.label_std + config.label_mean
        return scaled

    def predict_full_text(
        self, inputs: Inputs, tokens: TokenRoles, generated: Generated
    ) -> torch.Tensor | None:
        """[b c] the same classifier on the full text."""
        settings = self.settings
        if settings.full_text == "none":
            return None
        everything = tokens.present.to(generated.mid)
        if settings.full_text == "mid_cls":
            states = apply_final_norm(self.encoder, generated.mid, inputs)
            return self.classify(states, everything)
        if isinstance(self.encoder, GRUEncoder):
            return self.predict(inputs, tokens, generated.entered, everything, self.predictor)
        if settings.predictor == "rest":
            ran = run_blocks(
                self.encoder, settings.blocks, self.depth, inputs, states=generated.mid
            )
        else:
            ran = run_blocks(self.own_predictor, 0, self.depth, inputs, states=generated.entered)
        return self.classify(ran.output, everything)


def encoder_copy_without_words(encoder: Encoder) -> Encoder:
    """A copy for a predictor of its own; it is given the generator's embeddings, so it needs no word table."""
    copied = copy.deepcopy(encoder)
    words = copied.get_input_embeddings()
    width = words.weight.shape[1]
    blank = nn.Embedding(1, width)
    if isinstance(copied, GRUEncoder):
        copied.words = blank
    else:
        copied.set_input_embeddings(blank)
    return copied


def encoder_with_random_weights(stored: JsonObject) -> Encoder:
    """An encoder with random weights, of its stored config."""
    if stored.get("model_type") == GRUEncoder.TYPE:
        return GRUEncoder(stored)
    # the dtype is that of the checkpoint that it began as
    settings = dict(stored)
    for name in ("dtype", "torch_dtype"):
        settings.pop(name, None)
    config = AutoConfig.for_model(**settings)
    encoder: Encoder = AutoModel.from_config(config)
    return encoder
