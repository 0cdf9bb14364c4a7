"""The loss under word dropout that training for partial contexts learns by, and the perplexity on random subsets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from torch import nn

from raison.models.tasks.seq2seq import Seq2SeqTask
from raison.models.transformers_model import TransformersWriter
from raison.training.compatibility_settings import CompatibilityTraining
from raison.training.language_model_rows import TrainingRow
from raison.training.padding import pad_rows
from raison.training.seeds import seeded_generator
from raison.training.word_dropout import DropoutSide, KeepRule, Keeps, draw_keeps
from raison.training.word_dropout_attention import attention_keeping_only

__all__ = ["PartialContextLoss", "TokenSubsets", "draw_token_subsets", "subset_perplexities"]

IGNORED = -100

Transformer: TypeAlias = Any  # a model of transformers, plain or wrapped by peft
Inputs: TypeAlias = dict[str, torch.Tensor]  # arguments of a model of transformers, by name


@dataclass(frozen=True)
class PartialContextLoss:
    """How rows become a loss and perplexities, under any keeps."""

    learner: Transformer  # what runs: a model of transformers, plain or wrapped by peft
    model: TransformersWriter  # as raison has loaded it: its tokens
    rule: KeepRule
    training: CompatibilityTraining
    heads: dict[str, int]  # of each kind of attention
    lead: int = 0  # tokens at the start that are always kept

    @property
    def two_sides(self) -> bool:
        """The model is an encoder-decoder."""
        return self.model.task == "seq2seq"

    def inputs(self, rows: Sequence[TrainingRow]) -> tuple[Inputs, torch.Tensor]:
        """Arguments of the model, and what each of its rows should say [b s]."""
        device = next(self.learner.parameters()).device
        task = self.model.definition
        if not isinstance(task, Seq2SeqTask):
            targets_of_rows = [row.target for row in rows]
            ids = torch.tensor(targets_of_rows, device=device)
            read = ids[:, :-1]
            labels = ids[:, 1:]
            # all-ones on purpose: without a mask transformers may look for packed sequences
            everything = torch.ones_like(read)
            return {"input_ids": read, "attention_mask": everything}, labels

        pad = self.model.codec.pad_id
        prefix = task.prefix_ids
        unscored = [IGNORED] * (len(prefix) - 1)
        sources, targets, answers = [], [], []
        for row in rows:
            sources.append(row.source)
            all_but_last = row.target[:-1]
            targets.append((*prefix, *all_but_last))
            answers.append((*unscored, *row.target))
        source, source_real = pad_rows(sources, pad)
        target, target_real = pad_rows(targets, pad)
        answer, _ = pad_rows(answers, IGNORED)
        inputs = {
            "input_ids": source.to(device),
            "attention_mask": source_real.long().to(device),
            "decoder_input_ids": target.to(device),
            "decoder_attention_mask": target_real.long().to(device),
        }
        return inputs, answer.to(device)

    def sides(self, inputs: Inputs) -> list[DropoutSide]:
        """The sequences of a batch, target first."""
        if not self.two_sides:
            real = inputs["attention_mask"].bool()
            place = torch.arange(real.shape[1], device=real.device)
            fixed = place < self.lead
            heads = self.heads["self"]
            return [DropoutSide(real, heads, fixed)]
        source_heads = max(self.heads["encoder"], self.heads["cross"])
        target_heads = self.heads["decoder"]
        target_real = inputs["decoder_attention_mask"].bool()
        source_real = inputs["attention_mask"].bool()
        target = DropoutSide(target_real, target_heads)
        source = DropoutSide(source_real, source_heads)
        return [target, source]

    def surprise(self, inputs: Inputs, labels: torch.Tensor, keeps: Keeps | None) -> torch.Tensor:
        """[b s] − log p of each label; 0 where there is none."""
        with attention_keeping_only(keeps):
            logits = self.learner(**inputs, use_cache=False).logits
        if logits.dtype != torch.float64:
            logits = logits.float()
        flat = nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="none"
        )
        return flat.view(labels.shape)

    def loss(self, model: nn.Module, rows: Sequence[TrainingRow], part: int) -> torch.Tensor:
        """Mean surprise of a batch, with word dropout if the coin says so."""
        inputs, labels = self.inputs(rows)
        training = self.training
        keeps = draw_keeps(
            self.rule,
            training.mix,
            self.sides(inputs),
            seed=training.seed,
            step=part,
            coins=training.coins,
        )
        surprise = self.surprise(inputs, labels, keeps)
        scored = labels != IGNORED
        return surprise.sum() / scored.sum()

    def measure(self, rows: Sequence[TrainingRow]) -> dict[str, float]:
        """Perplexities of held-out rows."""
        training = self.training
        return subset_perplexities(
            self,
            rows,
            subset=training.subset,
            batch=training.batch,
            seed=training.seed,
        )


@torch.inference_mode()
def subset_perplexities(
    contexts: PartialContextLoss,
    rows: Sequence[TrainingRow],
    *,
    subset: int = 10,
    batch: int = 8,
    seed: int = 0,
    draws: int = 2,
) -> dict[str, float]:
    """Perplexity of held-out rows: of every token given all before it, and of tokens given random subsets.

    A subset has `subset` tokens: the one that the prediction is read from, and the others drawn from all before it (of
    an encoder-decoder, from the source as well; all, where there are fewer). So `subset` − 1 tokens are kept, and only
    the rows behind the last of them are measured: each of them sees exactly such a set, and given that it does, the
    set is a uniform draw of what lies before it. Tokens that are never removed come on top.
    """
    full, full_count = 0.0, 0
    partial, partial_count = 0.0, 0
    for start in range(0, len(rows), batch):
        end = start + batch
        group = sorted(rows[start:end], key=len)
        inputs, labels = contexts.inputs(group)
        scored = labels != IGNORED
        surprise = contexts.surprise(inputs, labels, None)
        precise = surprise.cpu().double()
        full += float(precise.sum())
        full_count += int(scored.sum())
        for draw in range(draws):
            random = seeded_generator(seed, start, draw)
            sides = contexts.sides(inputs)
            subsets = draw_token_subsets(sides, subset - 1, random)
            rows_behind = subsets.rows_behind.to(labels.device)
            counted = rows_behind & scored
            surprise = contexts.surprise(inputs, labels, subsets.keeps)
            precise = surprise[counted].cpu().double()
            partial += float(precise.sum())
            partial_count += int(counted.sum())

    mean_full = full / max(1, full_count)
    mean_partial = partial / max(1, partial_count)
    return {
        "perplexity": math.exp(mean_full),
        f"perplexity of {subset} tokens": math.exp(mean_partial),
        f"predictions from {subset} tokens": partial_count,
    }


@dataclass(frozen=True)
class TokenSubsets:
    """Random sets of tokens, one for each example of a batch."""

    keeps: Keeps
    rows_behind: torch.Tensor  # [b s] rows of the decoder that lie behind all tokens of their set


def draw_token_subsets(
    sides: Sequence[DropoutSide], size: int, random: torch.Generator
) -> TokenSubsets:
    """Random sets of `size` tokens.

    The last row of an example is never drawn, so that one row at least is measured.
    """
    two_sides = len(sides) > 1
    target = sides[0]
    real = target.real.bool().cpu()
    width = real.shape[1]
    place = torch.arange(width)
    fixed = torch.zeros_like(real)
    if target.fixed is not None:
        fixed = target.fixed.cpu().expand_as(real)
    last_row = real.sum(1, keepdim=True) - 1
    may_go = real & ~fixed
    free = may_go & (place < last_row)
    if two_sides:
        source = sides[1]
        source_real = source.real.bool().cpu()
        free = torch.cat([free, source_real], dim=1)

    noise = torch.rand(free.shape, generator=random, dtype=torch.float64)
    noise = noise.masked_fill(~free, 2.0)  # behind all that may be drawn
    order = noise.argsort(1)
    rank = order.argsort(1)
    chosen = (rank < size) & free
    of_target = chosen[:, :width]
    place_if_chosen = torch.where(of_target, place, -1)
    last = place_if_chosen.amax(1, keepdim=True)

    fixed_real = fixed & real
    kept_of_target = dropout_keep_for_all_heads(of_target | fixed_real, target)
    keeps = Keeps(target=kept_of_target)
    if two_sides:
        of_source = chosen[:, width:]
        kept_of_source = dropout_keep_for_all_heads(of_source, source)
        keeps = replace(keeps, source=kept_of_source)
    rows_behind = (place > last) & may_go
    return TokenSubsets(keeps, rows_behind)


def dropout_keep_for_all_heads(keep: torch.Tensor, side: DropoutSide) -> torch.Tensor:
    """[b h t] one set for all heads."""
    one_head = keep[:, None]
    expanded = one_head.expand(-1, side.heads, -1)
    return expanded.to(side.real.device)
