"""transformers' table of attention functions: whose names a model's config may give.

transformers takes seconds to import, so its modules are imported when a model is there.
"""

from __future__ import annotations

import sys

from raison.core.errors import Unsupported
from raison.models.attention.call import Attention, EagerAttention, MaskRule

__all__ = ["eager_of", "fused_attention", "register_attention"]


def register_attention(name: str, attention: Attention, mask: MaskRule | None = None) -> None:
    """Make an attention known under a name, with the function that makes its masks (None: as for eager attention).

    Without a function of its own an attention would get no mask at all.
    """
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(name, attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register(name, mask or ALL_MASK_ATTENTION_FUNCTIONS["eager"])


def fused_attention() -> Attention:
    """PyTorch's fused kernel, as transformers calls it."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    fused: Attention = ALL_ATTENTION_FUNCTIONS["sdpa"]
    return fused


def eager_of(kind: type) -> EagerAttention:
    """The eager attention function of the file that defines an attention class."""
    for parent in kind.__mro__:
        module = sys.modules.get(parent.__module__)
        function: EagerAttention | None = (
            vars(module).get("eager_attention_forward") if module else None
        )
        if function is not None:
            return function
    raise Unsupported(
        f"{kind.__name__} has no eager attention, so raison can't look inside this model."
    )
