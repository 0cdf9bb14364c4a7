"""Models that compute in float64 all the way, for tests that compare to nine digits: the mode `Float64`.

Many families round inside: RMSNorm, rotary angles and the softmax step down to float32 even when the weights
are float64, and float32 cosines depend on where in memory they stand. In this mode they do not step down, so
what is left of a difference is a mistake, not rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch.overrides import TorchFunctionMode

__all__ = ["Float64"]


class Float64(TorchFunctionMode):
    """Every step down to float32 becomes float64."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        keywords = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        first = args[0] if args else None
        if name == "float" and isinstance(first, torch.Tensor) and first.dtype != torch.bool:
            return first.double()
        if name == "to":
            in_float64 = [torch.float64 if each is torch.float32 else each for each in args]
            args = tuple(in_float64)
        if keywords.get("dtype") is torch.float32:
            keywords["dtype"] = torch.float64
        return func(*args, **keywords)
