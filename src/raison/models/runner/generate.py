"""Generation: the tokens that a model writes greedily, until it stops or there is no room for more."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch

from raison.core import progress
from raison.core.errors import InputError, TooLong
from raison.models.attention.call import Call
from raison.models.runner.runner import Runner, running

__all__ = ["LONGEST", "generate"]

LONGEST = 128  # tokens of a generated text


def generate(
    runner: Runner, inputs: dict[str, torch.Tensor], begun: int, longest: int | None = None
) -> list[int]:
    """Ids of the tokens that the model writes behind `begun` ones, without its end; at most `longest`.

    By default the model's own setting says how many. A text has at least one token, even if that is its end.
    """
    writer: Any = runner.view  # of a class that writes
    settings: Any = copy.deepcopy(writer.generation_config)
    room = room_for_tokens(runner, begun, longest or settings.max_new_tokens or LONGEST)
    settings.update(max_length=None, max_new_tokens=room, num_beams=1, do_sample=False)
    with torch.inference_mode(), running(Call()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about settings for sampling, which is switched off
        written = writer.generate(
            **inputs, generation_config=settings, stopping_criteria=[stop_if_cancelled]
        )

    ids = [int(token) for token in written[0][begun:]]
    if not ids:
        raise InputError(
            f"{runner.loaded.name} writes nothing for this text: give another text, or a target."
        )
    end = settings.eos_token_id
    ends = end if isinstance(end, (list, tuple)) else [end]
    for place, token in enumerate(ids):
        if token in ends:
            return ids[: max(1, place)]
    return ids


def room_for_tokens(runner: Runner, begun: int, wanted: int) -> int:
    """How many of the wanted tokens the model can still read."""
    limit = runner.loaded.max_tokens
    if limit is None:
        return wanted
    if limit - begun < 1:
        raise TooLong(
            f"The text fills all {limit} tokens that {runner.loaded.name} can read: nothing can be written."
        )
    return min(wanted, limit - begun)


def stop_if_cancelled(ids: torch.Tensor, scores: object, **_: object) -> torch.Tensor:
    """Asked after each token that is written: no row is done, but who waits for it may end it."""
    progress.check()
    return torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
