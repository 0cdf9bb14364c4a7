"""From logits to answers: value, rank, margin and prediction, the same for every task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["Columns", "read"]


@dataclass
class Columns:
    """The outcomes among which each column of a target is decided."""

    logits: torch.Tensor  # [b m v]
    ids: torch.Tensor  # [b m] the target's outcome
    contrast: torch.Tensor | None = None  # [b m] the outcome it is compared with


def read(columns: Columns, outputs: list[str], tensors: bool = False) -> dict[str, Any]:
    """value, rank, margin and prediction [b m] of each row.

    The value is the logit, log-probability or probability of the target, minus that of the contrast if there
    is one (for log-probabilities the normaliser cancels, so the contrast is a difference of logits).
    """
    logits = columns.logits.float() if columns.logits.dtype in (torch.float16, torch.bfloat16) else columns.logits
    pick = lambda ids: logits.gather(-1, ids[..., None])[..., 0]  # noqa: E731
    mine = pick(columns.ids)
    rival = None if columns.contrast is None else pick(columns.contrast)
    code = torch.tensor([("logit", "log_prob", "prob").index(o) for o in outputs], device=logits.device)[:, None]
    value = mine if rival is None else mine - rival
    if bool((code > 0).any()):
        norm = logits.logsumexp(-1)
        log_prob = mine - norm if rival is None else mine - rival
        prob = (mine - norm).exp() - (0.0 if rival is None else (rival - norm).exp())
        value = torch.where(code == 0, value, torch.where(code == 1, log_prob, prob))
    if tensors:
        return {"value": value}
    best, place = logits.topk(min(2, logits.shape[-1]), dim=-1)
    other = torch.where(place[..., 0] == columns.ids, best[..., -1], best[..., 0]) if rival is None else rival
    found = {
        "value": value,
        # bytes are summed twice as fast as truth values, and this is half of the work here
        "rank": (logits > mine[..., None]).view(torch.uint8).sum(-1, dtype=torch.int32).long(),
        "margin": mine - other,
        "predicted": place[..., 0],
    }
    return {name: tensor.cpu().numpy() for name, tensor in found.items()}
