"""Other devices where there are none: computed by the CPU, but never mixed with its tensors, as on GPUs.

`torch.device("far", 0)` is of the kind that torch keeps for other makers. A tensor there wraps one of the CPU; an
operation that gets tensors of both raises, as torch does for CUDA. With `coarse()` there is no float64, as Apple's
have none. (torch's autograd knows one such device only: of "far:1" there are no gradients.)
"""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import torch
from torch.utils import backend_registration
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

from raison.models.float64 import COARSE

__all__ = ["FAR", "Far", "coarse"]

aten = torch.ops.aten
FAR = "far"
COPIES = {aten.copy_.default, aten._to_copy.default, aten._copy_from.default}
PACKING = {
    aten._pack_padded_sequence.default,
    aten._pad_packed_sequence.default,
}  # lengths of rows are the CPU's
PACKED = {*PACKING, aten.lstm.data, aten.gru.data}
# what makes tensors of nothing is asked for by the name of the device, not by a tensor there
MAKERS = (
    "empty.memory_format empty_strided arange arange.start arange.start_step eye eye.m linspace randperm "
    "randperm.generator tril_indices triu_indices copy_ _to_copy _copy_from"
).split()
lacks = SimpleNamespace(float64=False)


class Far(torch.Tensor):
    """A tensor on the other device."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, near: torch.Tensor, index: int = 0):
        if lacks.float64 and near.dtype == torch.float64:
            raise TypeError("This device has no float64.")
        made = torch.Tensor._make_wrapper_subclass(
            cls, near.shape, strides=near.stride(), storage_offset=near.storage_offset(), dtype=near.dtype,
            device=torch.device(FAR, index),
        )  # fmt: skip
        made.near = near
        return made

    def data_ptr(self) -> int:
        return self.near.data_ptr()

    def tolist(self):
        return self.near.tolist()

    def __deepcopy__(self, memory):
        if id(self) not in memory:
            made = Far(self.near.clone(), self.device.index).requires_grad_(self.requires_grad)
            made._is_param = getattr(self, "_is_param", False)
            memory[id(self)] = made
        return memory[id(self)]

    def __repr__(self) -> str:
        return f"Far({self.near})"

    @classmethod
    def __torch_dispatch__(cls, op, types, args=(), kwargs=None):
        return run(op, args, kwargs or {})


def run(op, args, kwargs):
    """On the CPU, if all tensors are where the operation can reach them."""
    if torch.is_inference_mode_enabled():  # torch can't make views of wrapped tensors there
        with torch.inference_mode(False), torch.no_grad():
            return run(op, args, kwargs)
    given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    places = {x.device for x in given if isinstance(x, Far) or not fits(op, x, args)}
    if len(places) > 1 and op not in COPIES:
        raise RuntimeError(
            f"Expected all tensors to be on the same device: {op} has some of {sorted(map(str, places))}"
        )
    place = next((x.device for x in given if isinstance(x, Far)), torch.device("cpu"))
    for named in [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.device)]:
        place = named
    args, kwargs = tree_map(
        lambda x: torch.device("cpu") if isinstance(x, torch.device) else x, (args, kwargs)
    )

    def far(x):
        return (
            Far(x, place.index or 0)
            if isinstance(x, torch.Tensor) and not isinstance(x, Far)
            else x
        )

    bare = lambda x: x.near if isinstance(x, Far) else x  # noqa: E731
    found = CELLS.get(op, op)(*tree_map(bare, args), **tree_map(bare, kwargs))
    if op is aten.copy_.default:
        return args[0]
    if op in PACKING:
        return far(found[0]), found[1]
    if place.type != FAR:
        return found
    made = tree_map(far, found)
    return return_and_correct_aliasing(op, args, kwargs, made) if place in places else made


def fits(op, tensor: torch.Tensor, args) -> bool:
    """Whether a tensor of the CPU may stand beside others as it may beside CUDA's: numbers, indices, lengths."""
    if op in (
        aten.index.Tensor,
        aten.index_put_.default,
        aten.index_put.default,
        aten._index_put_impl_.default,
    ):
        return isinstance(args[0], Far) and (
            tensor.dim() == 0 or any(tensor is index for index in args[1])
        )
    return tensor.dim() == 0 or op in PACKED


def lstm_cell(read, remembered, state, read_bias=None, bias=None):
    """One step of an LSTM: torch has none in one piece for the CPU."""
    gates = read + remembered if bias is None else read + read_bias + remembered + bias
    let_in, forget, new, out = gates.chunk(4, 1)
    state = forget.sigmoid() * state + let_in.sigmoid() * new.tanh()
    return out.sigmoid() * state.tanh(), state, gates


def gru_cell(read, remembered, state, read_bias=None, bias=None):
    """One step of a GRU."""
    if bias is not None:
        read, remembered = read + read_bias, remembered + bias
    (reset, update, new), (own_reset, own_update, own_new) = (
        read.chunk(3, 1),
        remembered.chunk(3, 1),
    )
    new = (new + (reset + own_reset).sigmoid() * own_new).tanh()
    return (state - new) * (update + own_update).sigmoid() + new, read


CELLS = {aten._thnn_fused_lstm_cell.default: lstm_cell, aten._thnn_fused_gru_cell.default: gru_cell}


def kernel(name: str):
    packet, _, overload = name.partition(".")
    op = getattr(getattr(aten, packet), overload or "default")
    return lambda *args, **kwargs: run(op, args, kwargs)


class Backend(backend_registration._DummyBackendModule):
    def get_amp_supported_dtype(self):
        return [torch.bfloat16]

    def device_count(self):
        return 2


backend_registration._setup_privateuseone_for_python_backend(FAR, Backend())
LIBRARY = torch.library.Library("aten", "IMPL")
for name in MAKERS:
    LIBRARY.impl(name, kernel(name), "PrivateUse1")
for op, cell in CELLS.items():
    LIBRARY.impl(op, cell, "AutogradPrivateUse1")


@contextmanager
def coarse():
    """Without float64 while this lasts."""
    lacks.float64 = True
    COARSE.add(FAR)
    try:
        yield
    finally:
        lacks.float64 = False
        COARSE.discard(FAR)
