"""Checks whether tokens can be hidden from an encoder, and whether it looks ahead: it is tried, not believed."""

from __future__ import annotations

from dataclasses import replace

import torch
from transformers import PreTrainedTokenizerBase

from raison.core.errors import Unsupported, first_line_of
from raison.rationalizers.block_ranges import run_blocks
from raison.rationalizers.module import Rationalizer

__all__ = ["check_hiding"]

ENCODERS = "use an encoder such as BERT, RoBERTa, DistilBERT, ELECTRA or ModernBERT"
WORDS = 7  # of the text that an encoder is tried on


def check_hiding(model: Rationalizer, tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse an encoder in which hidden tokens would be read, or one that reads from left to right only."""
    name = type(model.encoder).__name__
    settings = model.settings
    # of a step of training, every hidden token
    model.settings = replace(settings, hidden_share=1.0)
    texts = two_texts_to_check_hiding(model, tokenizer)
    try:
        hides = texts is None or hidden_stay_hidden(model, *texts)
        looks_ahead = texts is None or not hides or encoder_looks_ahead(model, texts[0])
    except Exception as error:  # an encoder may break in any way
        raise Unsupported(
            f"{name} can't be split into generator and predictor ({first_line_of(error)}): {ENCODERS}."
        ) from error
    finally:
        model.settings = settings
        model.training = False
    if not hides:
        raise Unsupported(
            f"Tokens can't be hidden from {name} (its attention can't be reached, or it reads neighbours in other "
            f"ways), so a rationale would not be all that it reads: {ENCODERS}."
        )
    if not looks_ahead:
        raise Unsupported(
            f"{name} reads from left to right only, so it is no encoder: use one such as minilm."
        )


def two_texts_to_check_hiding(
    model: Rationalizer, tokenizer: PreTrainedTokenizerBase
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
    """[1 t] a text, another with the same words where they are kept, and what is kept; None if there are no words."""
    size = getattr(model.encoder.config, "vocab_size", None) or len(tokenizer)
    special = set(model.config.special_ids)
    ordinary = [number for number in range(size) if number not in special][: 2 * WORDS]
    if len(ordinary) < 2:
        return None
    one, mixed, kept = [], [], []
    for place in range(WORDS):
        word = ordinary[place % len(ordinary)]
        other_word = ordinary[(place * 3) % len(ordinary)]
        keep = place % 3 == 1
        one.append(word)
        mixed.append(word if keep else other_word)
        kept.append(int(keep))
    start, end, not_kept = [tokenizer.cls_token_id], [], []
    if tokenizer.sep_token_id is not None:
        end, not_kept = [tokenizer.sep_token_id], [0]
    return (
        torch.tensor([[*start, *one, *end]]),
        torch.tensor([[*start, *mixed, *end]]),
        torch.tensor([[0, *kept, *not_kept]]),
    )


def hidden_stay_hidden(
    model: Rationalizer, text: torch.Tensor, other: torch.Tensor, kept: torch.Tensor
) -> bool:
    """With the rationale fixed, other words in all other places must not move the answer: in evaluation with and
    without gradients, and in training (dropout apart)."""
    model.eval()
    for training, gradients in ((False, False), (False, True), (True, True)):
        model.training = training  # of the rationalizer alone: dropout stays off inside
        with torch.set_grad_enabled(gradients):
            rationale = kept.to(model.selector.linear.weight).requires_grad_(gradients)
            answer = model(text, rationale=rationale).logits.detach()
            other_answer = model(other, rationale=rationale).logits.detach()
        if not torch.allclose(answer, other_answer, rtol=1e-4, atol=1e-5):
            return False
    return True


@torch.no_grad()
def encoder_looks_ahead(model: Rationalizer, text: torch.Tensor) -> bool:
    """Whether the state of the first word changes with the last word, as an encoder's does."""
    changed = text.clone()
    changed[0, -2] = text[0, 1]
    if torch.equal(changed, text):
        changed[0, -2] = text[0, 2]
    before = run_blocks(model.encoder, 0, 1, {"input_ids": text})
    after = run_blocks(model.encoder, 0, 1, {"input_ids": changed})
    first_word = (0, 1)
    return not torch.equal(before.left[0][first_word], after.left[0][first_word])
