"""Models that compute in float64 all the way, for tests that compare to nine digits.

Many families round inside: RMSNorm, rotary angles and the softmax step down to float32 even when the weights
are float64, and float32 cosines depend on where in memory they stand. In this mode they do not step down, so
what is left of a difference is a mistake, not rounding.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

__all__ = ["Float64"]


class Float64(TorchFunctionMode):
    """Every step down to float32 becomes float64."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name == "float" and args[0].dtype != torch.bool:
            return args[0].double()
        if name == "to":
            args = tuple(torch.float64 if a is torch.float32 else a for a in args)
        if kwargs.get("dtype") is torch.float32:
            kwargs["dtype"] = torch.float64
        return func(*args, **kwargs)
