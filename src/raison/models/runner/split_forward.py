"""A view in two halves: the blocks, and what makes logits of their result.

What follows the blocks (a bias, a scale, a soft cap, the head) is the model's business; so its own code runs.
"""

from __future__ import annotations

from typing import Any

import torch

from raison.models.attention.call import Call, current, running

__all__ = ["blocks_of", "install_tail", "tail"]


def blocks_of(view: Any) -> Any:
    """Everything before the head: the decoder of an encoder-decoder, else the model inside the model."""
    if getattr(view.config, "is_encoder_decoder", False):
        return view.get_decoder()
    return getattr(view, view.base_model_prefix)


def install_tail(view: Any) -> None:
    """Let the view's own forward begin behind the blocks, where a call brings their result."""
    from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

    try:
        blocks = blocks_of(view)
    except (AttributeError, TypeError):
        return  # no such half: the probe will find that nothing can be packed
    if blocks is None or blocks is view:
        return
    plain = blocks.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        call = current()
        if call is not None and call.tail is not None:
            return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=call.tail)  # type: ignore[arg-type]
        return plain(*args, **kwargs)

    blocks.forward = forward


def tail(view: Any, hidden: torch.Tensor) -> torch.Tensor:
    """[n v] logits of last hidden states [n d]."""
    ids = torch.zeros(len(hidden), 1, dtype=torch.long, device=hidden.device)
    inputs: dict[str, Any] = {"input_ids": ids}
    if getattr(view.config, "is_encoder_decoder", False):
        from transformers.modeling_outputs import BaseModelOutput

        inputs = {"decoder_input_ids": ids, "encoder_outputs": BaseModelOutput(hidden[:, None])}  # type: ignore[arg-type]
    with running(Call(tail=hidden[:, None])):
        return view(**inputs, use_cache=False).logits[:, 0]
