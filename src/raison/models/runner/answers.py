"""From logits to answers: value, rank, margin and prediction, the same for every task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from raison.models.protocol import Question, Scored

__all__ = ["Columns", "answers_in", "blank_answers", "copy_answers", "values_of"]

OUTPUTS = ("logit", "log_prob", "prob")
HALVES = (torch.float16, torch.bfloat16)


@dataclass
class Columns:
    """The outcomes among which each column of a target is decided."""

    logits: torch.Tensor  # [b m v]
    ids: torch.Tensor  # [b m] the target's outcome
    contrast: torch.Tensor | None = None  # [b m] the outcome it is compared with

    @property
    def precise_logits(self) -> torch.Tensor:
        """[b m v] in float32 at least."""
        return self.logits.float() if self.logits.dtype in HALVES else self.logits


def picked_logits(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """[b m] the logit of one outcome in each column."""
    return logits.gather(-1, ids[..., None])[..., 0]


def values_of(columns: Columns, outputs: Sequence[str]) -> torch.Tensor:
    """[b m] the value of the target of each row, in the unit that `outputs` [b] names.

    The value is the logit, log-probability or probability of the target, minus that of the contrast if there
    is one (for log-probabilities the normaliser cancels, so the contrast is a difference of logits).
    """
    logits = columns.precise_logits
    mine = picked_logits(logits, columns.ids)
    rival = None if columns.contrast is None else picked_logits(logits, columns.contrast)
    difference = mine if rival is None else mine - rival
    codes = [OUTPUTS.index(output) for output in outputs]
    if not any(codes):
        return difference

    norm = logits.logsumexp(-1)
    prob = (mine - norm).exp()
    if rival is None:
        log_prob = mine - norm
    else:
        log_prob = difference
        prob = prob - (rival - norm).exp()
    code = torch.tensor(codes, device=logits.device)[:, None]
    log_prob_or_prob = torch.where(code == 1, log_prob, prob)
    return torch.where(code == 0, difference, log_prob_or_prob)


def answers_in(columns: Columns, outputs: Sequence[str]) -> Scored:
    """Value, rank, margin and prediction [b m] of each row."""
    columns = replace(columns, logits=columns.precise_logits)
    logits = columns.logits
    mine = picked_logits(logits, columns.ids)
    best, place = logits.topk(min(2, logits.shape[-1]), dim=-1)
    predicted = place[..., 0]
    if columns.contrast is None:
        other = torch.where(predicted == columns.ids, best[..., -1], best[..., 0])
    else:
        other = picked_logits(logits, columns.contrast)
    # bytes are summed twice as fast as truth values, and this is half of the work here
    better = (logits > mine[..., None]).view(torch.uint8)
    rank = better.sum(-1, dtype=torch.int32).long()
    return Scored(
        value=values_of(columns, outputs).cpu().numpy(),
        rank=rank.cpu().numpy(),
        margin=(mine - other).cpu().numpy(),
        predicted=predicted.cpu().numpy(),
    )


def blank_answers(question: Question) -> Scored:
    """Answers [n m] to a question that are still to be filled in."""
    shape = (len(question.keep), len(question.target.ids))
    return Scored(
        value=np.zeros(shape),
        rank=np.zeros(shape, np.int64),
        margin=np.zeros(shape),
        predicted=np.zeros(shape, np.int64),
    )


def copy_answers(source: Scored, rows: slice, into: Scored, which: np.ndarray) -> None:
    """Write some rows of answers into other ones."""
    into.value[which] = source.value[rows]
    into.rank[which] = source.rank[rows]
    into.margin[which] = source.margin[rows]
    into.predicted[which] = source.predicted[rows]
