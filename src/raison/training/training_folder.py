"""The folder of a training: its checkpoint is saved and restored, its files are written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from raison.core.errors import InputError, RaisonError, first_line_of
from raison.core.files import remove_half_written, write_whole
from raison.core.outputs import check_folder
from raison.training.fit_settings import FitProgress, FitSettings

__all__ = [
    "BEST",
    "CHECKPOINT",
    "OWN",
    "TrainingNotSaved",
    "check_training_folder",
    "checkpoint_tensors_on_cpu",
    "differing_training_setting",
    "prepare_training_folder",
    "restore_checkpoint",
    "save_checkpoint",
    "write_training_file",
    "writing_trained_model",
]

CHECKPOINT = "checkpoint.pt"
BEST = "best.pt"  # weights of the best epoch
OWN = "own_targets.json"  # what a model has written itself
MODELS = ("model.safetensors", "adapter_model.safetensors", "pytorch_model.bin", "config.json")


class TrainingNotSaved(RaisonError):
    """A file could not be written: the disk is full, mostly."""


# -- writing --------------------------------------------------------------------------------------------------


@contextmanager
def write_training_file(
    path: Path, advice: str = "make room, and give the same command again"
) -> Iterator[Path]:
    """A file that is written whole or not at all: yields the name to write to, and puts it in place at the end."""
    try:
        with write_whole(path, durable=True) as half:
            yield half
    except (OSError, RuntimeError) as error:  # torch tells a failed write by a RuntimeError
        raise TrainingNotSaved(
            f"{path} could not be written ({reason_of_failed_training_write(error).rstrip('.')}); {advice}."
        ) from error


@contextmanager
def writing_trained_model(folder: Path) -> Iterator[None]:
    """The result of a run is being written: where that fails, the checkpoint is still there."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError) as error:
        raise TrainingNotSaved(
            f"The result could not be written to {str(folder)!r} ({reason_of_failed_training_write(error)}): "
            "make room, and the same command writes it from the last checkpoint."
        ) from None


def reason_of_failed_training_write(error: Exception) -> str:
    """What the system says about a failed write, or else the first line of what the library says."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return first_line_of(error)


# -- the folder -----------------------------------------------------------------------------------------------


def check_training_folder(folder: Path, report: str, early: Sequence[str] = ()) -> None:
    """Refuse a folder to train in that holds a model or something foreign; `early` are files that this training writes
    before its first checkpoint."""
    if (folder / report).exists():
        raise InputError(
            f"{str(folder)!r} has a finished model: delete it, or choose another out (--out)."
        )
    if (folder / CHECKPOINT).exists():  # all that is there is this run's
        return
    for name in MODELS:
        if (folder / name).exists():
            raise InputError(
                f"{str(folder)!r} has somebody's model ({name}): delete it, or choose another out (--out)."
            )
    # what a run leaves that is killed before its first checkpoint
    check_folder(folder, {BEST, OWN, *early}.__contains__, "a training (--out)")


def prepare_training_folder(folder: Path, report: str, early: Sequence[str] = ()) -> None:
    """Make a folder to write to; the `report` in it comes last, so where it stands a model is finished."""
    check_training_folder(folder, report, early)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_half_written(folder)
    except OSError as error:
        raise InputError(
            f"{str(folder)!r} can't be written ({error.strerror}): choose another out (--out)."
        ) from None


# -- the checkpoint -------------------------------------------------------------------------------------------


def save_checkpoint(
    fit_settings: FitSettings,
    done: FitProgress,
    trained: Sequence[torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
    *,
    frozen: str,
) -> None:
    """Write all that a run needs to go on; `frozen` is the fingerprint of the weights that are not trained."""
    state = {
        "settings": fit_settings.settings,
        "done": vars(done),
        "trained": [parameter.detach().cpu() for parameter in trained],
        "frozen": frozen,
        "optimizer": checkpoint_tensors_on_cpu(
            optimizer.state_dict()
        ),  # so that a run can go on on another device
    }
    path = fit_settings.out / CHECKPOINT
    advice = "there is no checkpoint yet: make room first"
    if path.exists():
        advice = "the last checkpoint is kept: make room, and the same command goes on from it"
    with write_training_file(path, advice) as half:
        torch.save(state, half)


def restore_checkpoint(
    fit_settings: FitSettings,
    trained: Sequence[torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
    *,
    frozen: str,
) -> FitProgress:
    """What the checkpoint says was done, with weights and optimizer set to it; nothing if there is none."""
    path = fit_settings.out / CHECKPOINT
    if not path.exists():
        return FitProgress()
    try:
        state = torch.load(path, weights_only=True, map_location="cpu")
        settings, done, values = state["settings"], FitProgress(**state["done"]), state["trained"]
        same_frozen = state["frozen"] == frozen
    except Exception as error:  # torch has no one error for a file that it can't read
        raise InputError(
            f"{path} can't be read ({first_line_of(error)}): delete it to start anew."
        ) from error
    other = differing_training_setting(fit_settings.settings, settings)
    if other is not None:
        raise InputError(
            f"{path} was made with another {other}: delete it, or give its settings to go on with it."
        )
    same_shapes = [parameter.shape for parameter in trained] == [value.shape for value in values]
    if not same_shapes or not same_frozen:
        raise InputError(
            f"{path} was made with another model: delete it, or name its model to go on with it."
        )

    with torch.no_grad():
        for parameter, value in zip(trained, values, strict=True):
            parameter.copy_(value)
    optimizer.load_state_dict(state["optimizer"])
    return done


def differing_training_setting(
    now: Mapping[str, object], before: Mapping[str, object]
) -> str | None:
    """The first setting that is another one now, or that only one side has."""
    missing = object()
    for name in (*now, *before):
        if now.get(name, missing) != before.get(name, missing):
            return name
    return None


def checkpoint_tensors_on_cpu(state: Any) -> Any:
    """The same nest of dictionaries and lists with all tensors on the CPU."""
    if isinstance(state, torch.Tensor):
        return state.cpu()
    if isinstance(state, dict):
        return {name: checkpoint_tensors_on_cpu(value) for name, value in state.items()}
    if isinstance(state, (list, tuple)):
        return [checkpoint_tensors_on_cpu(value) for value in state]
    return state
