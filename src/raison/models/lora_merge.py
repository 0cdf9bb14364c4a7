"""Merging a LoRA adapter in peft's folder format, without peft: its scaled tensors go into a plain model's modules
and parameters.

Explanations want a plain model: hooks, attention weights and gradients are then those of ordinary modules,
and peft stays an optional dependency. Merging is one product per matrix, `W += scale * B @ A`; the care goes
into refusing what this file does not understand, since a half-merged adapter still gives plausible output.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import regex  # comes with transformers; its searches can be given up, those of re can't
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import nn

from raison.core import limits
from raison.core.errors import ModelError

Settings = dict[str, Any]  # of an adapter_config.json

_PREFIX = "base_model.model."
_LORA = re.compile(r"(?P<module>.+)\.lora_(?P<side>[AB])\.weight")
# Variants of LoRA whose merge is another formula than the one above.
_VARIANTS = (
    "use_dora",
    "use_qalora",
    "use_bdlora",
    "lora_bias",
    "layer_replication",
    "target_parameters",
    "alora_invocation_tokens",
    "arrow_config",
    "kasa_config",
    "monteclora_config",
)
# Initialisations that leave the base weights alone; others (pissa, olora, corda, ...) change them on load.
_PLAIN_STARTS = (True, False, None, "gaussian", "eva", "orthogonal")
_LONGEST = 1000  # characters of a pattern: a path of modules has a hundred
_PATIENCE = 1.0  # seconds for a pattern to fit a name: sensible ones need microseconds
_DEEPEST = 100  # modules in a path


def merge_adapter(model: nn.Module, folder: str | Path) -> nn.Module:
    """Merge the adapter in `folder` into `model` in place, and return the model.

    Reads `adapter_config.json` and `adapter_model.safetensors`. The deltas are computed in float32 whatever
    the stored type. Raises ValueError, before any weight has changed, where a tensor of the file finds no
    use, a module or half of a pair is missing, a shape does not fit, or the adapter is a variant with another
    formula.
    """
    folder = Path(folder)
    config = limits.read_json_text((folder / "adapter_config.json").read_text(encoding="utf-8"))
    _refuse_variants(config)
    patterns = _alpha_patterns(model, config.get("alpha_pattern") or {})
    tensors = load_file(folder / "adapter_model.safetensors")
    pairs, saved = _sort_tensors(tensors, config)
    _require_saved_modules(model, config, saved)
    _require_adapted_modules(model, config, pairs)
    changes = [_merged(model, module, sides, config, patterns) for module, sides in pairs.items()]
    changes += [_replaced(model, name, tensor) for name, tensor in saved.items()]
    with torch.no_grad():
        for parameter, value in changes:
            parameter.copy_(value)
    return model


def merge_adapter_or_model_error(model: nn.Module, folder: Path) -> nn.Module:
    """As `merge`, for a folder that a user named: what is wrong with it is said in a sentence."""
    try:
        return merge_adapter(model, folder)
    except FileNotFoundError:
        raise ModelError(
            f"The adapter {folder.name!r} has no adapter_model.safetensors: check that it was copied whole."
        ) from None
    except (ValueError, RuntimeError, SafetensorError) as error:
        # torch says by RuntimeError what does not fit
        raise ModelError(
            f"The adapter {folder.name!r} can't be merged into its model: {error}."
        ) from None
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelError(
            f"The adapter {folder.name!r} has a damaged adapter_config.json ({reason}): copy it again."
        ) from None


def parameters_replaced_by_adapter(folder: Path) -> frozenset[str]:
    """Names of the parameters that an adapter replaces as a whole, such as those of a head."""
    with safe_open(folder / "adapter_model.safetensors", framework="pt") as file:
        keys = file.keys()
    names = [key.removeprefix(_PREFIX) for key in keys]
    return frozenset(name for name in names if not _LORA.fullmatch(name))


def base_model_of_adapter(folder: Path) -> str:
    """The name of the model that an adapter was trained for: an adapter of an adapter is one, a circle is not."""
    name = _base_named_in(folder)
    seen = {folder.expanduser().resolve()}
    below = name
    while below:
        place = Path(below).expanduser().resolve()
        if place in seen:
            break
        seen.add(place)
        below = None
        if (place / "adapter_config.json").is_file():
            below = _base_named_in(place)
    if not name or below:
        raise ModelError(
            f"The adapter_config.json of {folder.name!r} does not say which model it is for: put its name or folder "
            "into base_model_name_or_path."
        )
    return name


def _base_named_in(folder: Path) -> str | None:
    """What an adapter says that it was trained for."""
    try:
        text = (folder / "adapter_config.json").read_text(encoding="utf-8")
        name = limits.read_json_text(text)["base_model_name_or_path"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(name, str):
        return None
    return name


def _refuse_variants(config: Settings) -> None:
    if config.get("peft_type") != "LORA":
        raise ValueError(f"not a LoRA adapter: peft_type is {config.get('peft_type')!r}")
    for key in _VARIANTS:
        if config.get(key):
            raise ValueError(f"cannot merge this LoRA variant: {key} is {config[key]!r}")
    if config.get("init_lora_weights", True) not in _PLAIN_STARTS:
        raise ValueError(
            f"cannot merge, as it changes the base weights: init_lora_weights is {config['init_lora_weights']!r}"
        )


def _sort_tensors(
    tensors: dict[str, torch.Tensor],
    config: Settings,
) -> tuple[dict[str, dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
    """Split the file into LoRA pairs by module name and full tensors by parameter name."""
    whole_modules = set(config.get("modules_to_save") or ())
    pairs: dict[str, dict[str, torch.Tensor]] = {}
    saved: dict[str, torch.Tensor] = {}
    for key, tensor in tensors.items():
        name = key.removeprefix(_PREFIX)
        half = _LORA.fullmatch(name)
        if not key.startswith(_PREFIX):
            raise ValueError(f"unused tensor in the adapter: {key}")
        if half:
            pairs.setdefault(half["module"], {})[half["side"]] = tensor
        elif name.count(".") < _DEEPEST and whole_modules.intersection(_ancestors(name)):
            saved[name] = tensor
        else:
            raise ValueError(f"unused tensor in the adapter: {key}")
    return pairs, saved


def _ancestors(name: str) -> set[str]:
    """The names by which `modules_to_save` may mean an owner of this parameter: `head.out.weight` gives
    `head`, `out` and `head.out`, since peft matches a module by the end of its dotted name."""
    parts = name.split(".")[:-1]
    names = set()
    for start in range(len(parts)):
        for end in range(start + 1, len(parts) + 1):
            names.add(".".join(parts[start:end]))
    return names


def _require_saved_modules(
    model: nn.Module, config: Settings, saved: dict[str, torch.Tensor]
) -> None:
    """A head that the adapter says it saved but that is not in the file would stay random: refuse."""
    for wanted in config.get("modules_to_save") or ():
        # peft lists several usual names of a head by itself ("classifier", "score"), so only those count that
        # the model has.
        for name, module in model.named_modules():
            if name == wanted or name.endswith("." + wanted):
                _require_parameters(module, name, wanted, saved)


def _require_parameters(
    module: nn.Module, name: str, wanted: str, saved: dict[str, torch.Tensor]
) -> None:
    for parameter, _ in module.named_parameters():
        if f"{name}.{parameter}" not in saved:
            raise ValueError(
                f"the adapter holds no tensor of {name}.{parameter}, though it lists the module {wanted} as saved"
            )


def _require_adapted_modules(model: nn.Module, config: Settings, pairs: Container[str]) -> None:
    """A module that the adapter says it changes but whose change is not in the file would stay as it was: refuse."""
    targets = config.get("target_modules")
    if not isinstance(targets, list) or config.get("layers_to_transform") is not None:
        return  # a pattern of the trainer's own, of which only peft knows what it meant
    excluded = config.get("exclude_modules") or []
    whole = set(config.get("modules_to_save") or ())
    for name, module in model.named_modules():
        wanted = (
            _ends_with(name, targets)
            and hasattr(module, "weight")
            and not _ends_with(name, excluded)
        )
        if wanted and name not in pairs and not whole.intersection(_ancestors(f"{name}.weight")):
            raise ValueError(
                f"the adapter holds no change of {name}, though it lists {name.split('.')[-1]} as changed"
            )


def _ends_with(name: str, endings: list[str] | str) -> bool:
    """Whether a list of module names, as peft reads it, means this module."""
    if not isinstance(endings, list):
        return False
    return any(name == ending or name.endswith(f".{ending}") for ending in endings)


def _merged(
    model: nn.Module,
    module: str,
    sides: dict[str, torch.Tensor],
    config: Settings,
    patterns: list[AlphaPattern],
) -> tuple[nn.Parameter, torch.Tensor]:
    if len(sides) != 2:
        raise ValueError(
            f"the adapter has lora_{next(iter(sides))} but not its other half for {module}"
        )
    weight = _parameter(model, module, "weight")
    down, up = sides["A"].float(), sides["B"].float()
    delta = _scale(module, down.shape[0], config, patterns) * (up @ down)
    if config.get("fan_in_fan_out"):
        delta = delta.T
    _require_shape(module, delta, weight)
    return weight, weight.detach().float() + delta.to(weight.device)


@dataclass(frozen=True)
class AlphaPattern:
    """An entry of `alpha_pattern`, as peft reads it: modules whose path ends in a match have another alpha."""

    expression: regex.Pattern[str]
    alpha: float

    @classmethod
    def of(cls, text: str, alpha: float) -> AlphaPattern:
        if len(text) > _LONGEST:
            raise ValueError(
                f"alpha_pattern holds a pattern of {len(text)} characters, more than {_LONGEST}"
            )
        try:
            return cls(regex.compile(rf"(.*\.)?({text})$"), alpha)
        except (regex.error, RecursionError, OverflowError, MemoryError) as error:
            raise ValueError(
                f"alpha_pattern holds {text[:60]!r}, which is no pattern ({error})"
            ) from None

    def fits(self, module: str) -> bool:
        """Whether the pattern is for a module of this path."""
        try:
            return self.expression.match(module, timeout=_PATIENCE) is not None
        except TimeoutError:
            raise ValueError(
                f"alpha_pattern holds a pattern that takes too long to fit {module[:60]}"
            ) from None


def _alpha_patterns(model: nn.Module, alphas: dict[str, float]) -> list[AlphaPattern]:
    if len(alphas) > sum(1 for _ in model.modules()):
        raise ValueError(
            f"alpha_pattern names {len(alphas)} patterns, more than the model has modules"
        )
    return [AlphaPattern.of(text, alpha) for text, alpha in alphas.items()]


def _scale(module: str, rank: int, config: Settings, patterns: list[AlphaPattern]) -> float:
    # The rank is that of the stored matrix, which also covers peft's rank_pattern.
    fitting = (pattern.alpha for pattern in patterns if pattern.fits(module))
    alpha: float = next(fitting, config["lora_alpha"])
    if config.get("use_rslora"):
        return alpha / sqrt(rank)
    return alpha / rank


def _replaced(
    model: nn.Module, name: str, tensor: torch.Tensor
) -> tuple[nn.Parameter, torch.Tensor]:
    module, _, leaf = name.rpartition(".")
    parameter = _parameter(model, module, leaf)
    _require_shape(name, tensor, parameter)
    return parameter, tensor.float()


def _require_shape(name: str, found: torch.Tensor, wanted: torch.Tensor) -> None:
    if found.shape != wanted.shape:
        shapes = f"shape {tuple(found.shape)} in the adapter, {tuple(wanted.shape)} in the model"
        raise ValueError(f"{name}: {shapes}")


def _parameter(model: nn.Module, module: str, leaf: str) -> nn.Parameter:
    try:
        # Both raise AttributeError where there is no such thing, or a thing of another kind.
        return model.get_submodule(module).get_parameter(leaf)
    except AttributeError as error:
        raise ValueError(f"the model has no {module}.{leaf}, which the adapter changes") from error
