"""Checkpoints: checks of the files of a model, so that no pickle is opened unasked and no weight is missing.

transformers draws at random every weight that no file gives, and says so in a log. An explanation of such a model would
look like any other, so a model with missing weights is refused.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raison.core.errors import ModelError
from raison.core.limits import read_json_text

__all__ = [
    "Checkpoint",
    "check_model_folder",
    "refuse_missing_weights",
    "refuse_pickled_shards",
    "sharded_weights_index",
]

INDEX = "model.safetensors.index.json"
PICKLED = (".bin", ".pt", ".pth", ".ckpt")
NAMED = 3  # missing weights that a message names


@dataclass
class Checkpoint:
    """A transformers model as its files describe it."""

    model: Any  # of any class of transformers
    tokenizer: Any
    name: str  # what the model is called
    folder: Path  # where things that belong to it may lie
    missing: frozenset[str] = frozenset()  # weights that no file gave

    def complete(self) -> Checkpoint:
        """Itself; `ModelError` where a weight is missing."""
        refuse_missing_weights(self.model, self.missing, self.name)
        return self


def check_model_folder(folder: Path, allow_pickle: bool, has_tokenizer: bool) -> None:
    """Say early, in a sentence, what a model folder lacks."""
    if not (folder / "config.json").is_file():
        name = folder.resolve().name
        if (folder / "run-0").is_dir():  # several seeds, each with a model
            raise ModelError(
                f"{name!r} holds several runs: name one of them, such as {name}/run-0."
            )
        raise ModelError(f"{name!r} has no config.json, so it is not a transformers model folder.")
    if not allow_pickle:
        check_folder_has_safetensors(folder)
    known = (
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
        "vocab.json",
        "spiece.model",
        "source.spm",
    )
    if not has_tokenizer and not any((folder / name).is_file() for name in known):
        raise ModelError(
            f"{folder.name!r} has no tokenizer: save one into it, or pass tokenizer=..."
        )


def check_folder_has_safetensors(folder: Path) -> None:
    """Refuse a folder from which anything but safetensors would be read."""
    explicit = weights_named_by_config(folder)
    index = sharded_weights_index(folder, explicit)
    if index is not None:
        refuse_pickled_shards(index, folder.name)
        return
    wanted = folder / (explicit or "model.safetensors")
    if wanted.is_file() and wanted.suffix == ".safetensors":
        return
    if any(folder.glob("*.safetensors")):
        raise ModelError(
            f"{folder.name!r} has no {wanted.name}, the name under which weights are looked for: check that the folder "
            "was saved or copied whole."
        )
    pickled = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLED)
    if pickled:
        raise ModelError(
            f"{folder.name!r} holds only pickled weights ({pickled[0]}), which can run code when opened: convert them "
            "to safetensors, or pass allow_pickle=True (--allow-pickle) if you trust where they come from."
        )
    raise ModelError(
        f"{folder.name!r} holds no weights (*.safetensors): check that it was saved or copied whole."
    )


def weights_named_by_config(folder: Path) -> str | None:
    """The file that config.json names for the weights, where it names one."""
    try:
        settings = read_json_text((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None  # what is wrong with the config is said where it is opened
    if not isinstance(settings, dict):
        return None
    named = settings.get("transformers_weights")
    if not isinstance(named, str):
        return None
    return named


def sharded_weights_index(folder: Path, explicit: str | None = None) -> Path | None:
    """The index of a sharded checkpoint, if it is what transformers would read."""
    if explicit is not None:
        if not explicit.endswith(".index.json"):
            return None
        return folder / explicit
    if (folder / "model.safetensors").is_file():
        return None
    index = folder / INDEX
    if not index.is_file():
        return None
    return index


def refuse_pickled_shards(index: Path, name: str) -> None:
    """Raise where the index of a sharded checkpoint names a file that is no safetensors file."""
    try:
        files = read_json_text(index.read_text(encoding="utf-8"))["weight_map"].values()
        pickled = sorted(file for file in files if not file.endswith(".safetensors"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelError(
            f"The {index.name} of {name!r} is damaged: copy the model again."
        ) from None
    if pickled:
        raise ModelError(
            f"The {index.name} of {name!r} names a pickled file ({pickled[0][:100]}), which can run code when opened: "
            "convert it to safetensors, or pass allow_pickle=True (--allow-pickle) if you trust where it comes from."
        )


def refuse_missing_weights(model: Any, missing: Collection[str], name: str) -> None:
    """Raise where weights are missing, in a sentence that names them and says what it means."""
    if not missing:
        return
    ordered = [key for key in model.state_dict() if key in missing] or sorted(missing)
    listed = ", ".join(ordered[:NAMED])
    if len(ordered) > NAMED:
        listed += f" and {len(ordered) - NAMED} more"
    if all(key in missing for key, _ in model.named_parameters()):
        raise ModelError(
            f"The files of {name!r} give none of the weights of a {type(model).__name__} ({listed}): its weights and "
            "its config.json are of two models."
        )
    if are_weights_of_head(model, missing):
        raise ModelError(
            f"The files of {name!r} give no trained head ({listed}), so its answers would be random: fine-tune it for "
            "the task first, or name a model that was."
        )
    raise ModelError(
        f"The files of {name!r} lack {len(ordered)} of its weights ({listed}), which would be random: copy the model "
        "again, with all of its files."
    )


def are_weights_of_head(model: Any, missing: Collection[str]) -> bool:
    """Whether all missing weights stand behind the encoder or decoder, or in a pooler: the everyday case."""
    prefix = getattr(model, "base_model_prefix", "")
    if not hasattr(getattr(model, prefix, None), "config"):  # it is the encoder itself
        return False
    return all(not key.startswith(f"{prefix}.") or ".pooler." in key for key in missing)
