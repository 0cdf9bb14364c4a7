"""LoRA for training: an adapter on every linear layer of a model's blocks, and the files in peft's format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from raison.core.errors import MissingExtra, Unsupported
from raison.core.parameters import check_integer
from raison.training.training_folder import write_training_file

if TYPE_CHECKING:
    from peft import PeftModel

__all__ = ["wrap_with_lora", "write_lora_adapter"]


def wrap_with_lora(model: nn.Module, rank: int, *, seed: int, name: str) -> PeftModel:
    """The model wrapped by peft, with W + 2/1 · B A in the place of each W of attention and MLP; only A and B learn.

    alpha = 2 rank, no dropout of its own. At the start B is zero, so nothing has changed yet (Hu et al. 2021).
    """
    check_integer("lora", rank, 1)
    try:
        import peft
    except ImportError:
        raise MissingExtra("peft", "peft", "Training with LoRA") from None
    from transformers.pytorch_utils import Conv1D

    linear = {}
    for path, module in model.named_modules():
        if isinstance(module, (nn.Linear, Conv1D)) and lora_stands_in_block(path, model):
            linear[path] = module
    if not linear:
        raise Unsupported(f"{name} has no linear layers in its blocks: train it without LoRA.")
    config = peft.LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        lora_dropout=0.0,
        target_modules=sorted({path.rpartition(".")[2] for path in linear}),
        fan_in_fan_out=all(isinstance(module, Conv1D) for module in linear.values()),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # of A
        return peft.get_peft_model(model, config)


def lora_stands_in_block(path: str, model: nn.Module) -> bool:
    """Whether a module stands in a list of blocks; a head does not."""
    while "." in path:
        path = path.rpartition(".")[0]
        if isinstance(model.get_submodule(path), nn.ModuleList):
            return True
    return False


def write_lora_adapter(
    model: PeftModel, out: Path, *, half: bool, name: str, whole: Sequence[str] = ()
) -> int:
    """adapter_model.safetensors and adapter_config.json, with no local path in them; the size in bytes.

    The modules of `whole` (heads) are stored with all of their weights.
    """
    import peft
    from safetensors.torch import save

    dtype = torch.float16 if half else torch.float32
    state = dict(peft.get_peft_model_state_dict(model))
    for part in whole:
        inner = model.get_base_model().get_submodule(part).state_dict()
        for key, tensor in inner.items():
            state[f"base_model.model.{part}.{key}"] = tensor
    tensors = {}
    for key, tensor in sorted(state.items()):
        tensors[key] = tensor.to(dtype).cpu().contiguous()
    with write_training_file(out / "adapter_model.safetensors") as place:
        place.write_bytes(save(tensors, metadata={"format": "pt"}))
    config = dict(sorted(model.peft_config["default"].to_dict().items()))
    config |= {"inference_mode": True, "base_model_name_or_path": name, "peft_type": "LORA"}
    config["modules_to_save"] = list(whole) or None
    with write_training_file(out / "adapter_config.json") as place:
        place.write_text(
            json.dumps(config, indent=2, default=plain_lora_value) + "\n", encoding="utf-8"
        )
    return (out / "adapter_model.safetensors").stat().st_size


def plain_lora_value(value: object) -> object:
    """What JSON has no word for, in a fixed order."""
    if isinstance(value, set):
        return sorted(value)
    return str(value)
