"""A view in two halves: the blocks, and what makes logits of their result.

What follows the blocks (a bias, a scale, a soft cap, the head) is the model's business; so its own code runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from raison.models.attention.call import Call, running, running_call

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["blocks_of", "install_shortcut", "logits_behind_blocks"]


def blocks_of(view: Any) -> torch.nn.Module:
    """Everything before the head: the decoder of an encoder-decoder, else the model inside the model."""
    if view.config.is_encoder_decoder:
        decoder: torch.nn.Module = view.get_decoder()
        return decoder
    blocks: torch.nn.Module = getattr(view, view.base_model_prefix)
    return blocks


def install_shortcut(view: PreTrainedModel) -> None:
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
        call = running_call.get()
        if call is not None and call.tail is not None:
            return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=call.tail)
        return plain(*args, **kwargs)

    blocks.forward = forward


def logits_behind_blocks(view: PreTrainedModel, hidden: torch.Tensor) -> torch.Tensor:
    """[n v] logits of last hidden states [n d]."""
    from transformers.modeling_outputs import BaseModelOutput

    states = hidden[:, None]
    ids = torch.zeros(len(hidden), 1, dtype=torch.long, device=hidden.device)
    with running(Call(tail=states)):
        if view.config.is_encoder_decoder:
            encoded = BaseModelOutput(states)
            output = view(decoder_input_ids=ids, encoder_outputs=encoded, use_cache=False)
        else:
            output = view(input_ids=ids, use_cache=False)
    logits: torch.Tensor = output.logits
    return logits[:, 0]
