"""`load`: open anything that can be explained, a name, a folder, a GGUF file, a model in memory, a function.

Nothing here imports torch before a model is opened, so that `import raison` and the command line's help are quick.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from raison.core import limits
from raison.core.errors import InputError, ModelError
from raison.core.registry import loaders, suggest_name
from raison.models import catalog
from raison.models.load_options import TASKS, LoadOptions, looks_local
from raison.models.protocol import InspectableModel, Model
from raison.models.tasks.function import Function

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from raison.models.transformers_model import TransformersModel
    from raison.models.wrapped_model import WrappedModel

__all__ = ["TASKS", "load", "looks_local", "model_on_device", "model_type_of_folder"]


@overload
def load(
    model: str | os.PathLike[str] | PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None = None,
    task: str | None = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    *,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> InspectableModel: ...


@overload
def load(
    model: object,
    tokenizer: PreTrainedTokenizerBase | None = None,
    task: str | None = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    *,
    labels: Sequence[str] | None = None,
) -> Model: ...


def load(
    model: Any,
    tokenizer: PreTrainedTokenizerBase | None = None,
    task: str | None = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    *,
    labels: Sequence[str] | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Model:
    """Return a model that can be explained; what it offers has been tried out, not assumed.

    `model` is a catalog name (`raison ls models`), a folder, a `.gguf` file, a hub name, a transformers model
    already in memory (with its tokenizer), or a function from a list of texts to scores (with `labels`).
    """
    if task is not None and task not in TASKS:
        hint = suggest_name(task, list(TASKS))
        raise InputError(f"There is no task {task!r}.{hint} Use one of {', '.join(TASKS)}.")
    if hasattr(model, "encode") and hasattr(model, "score") and hasattr(model, "offers"):
        ready: Model = model
        return ready
    if isinstance(model, (str, os.PathLike)):
        options = LoadOptions(
            tokenizer=tokenizer,
            task=task,
            device=device,
            dtype=dtype,
            allow_pickle=allow_pickle,
            trust_remote_code=trust_remote_code,
        )
        return load_by_name(str(model), options)
    if hasattr(model, "_orig_mod"):  # torch.compile: the module inside is the model
        inner: Model = load(model._orig_mod, tokenizer, task, device, dtype)
        return inner
    if hasattr(model, "config") and hasattr(model, "forward"):
        if device is not None or dtype is not None:
            raise InputError(
                "A model in memory stays as it is: move it with its own .to(...) before you load it."
            )
        return load_from_memory(model, tokenizer, task)
    if callable(model):
        return Function(model, getattr(model, "__name__", type(model).__name__), labels)
    raise InputError(
        f"A {type(model).__name__} can't be explained: pass a name, a folder, a transformers model with its "
        "tokenizer, or a function from texts to scores."
    )


def load_from_memory(
    hf: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, task: str | None
) -> InspectableModel:
    """The model around a transformers model of the user's."""
    from raison.models.assemble import assemble_model

    name = getattr(hf.config, "_name_or_path", "") or type(hf).__name__
    return assemble_model(hf, tokenizer, task, name)


def load_by_name(name: str, options: LoadOptions) -> Model:
    """Open a model by name or path."""
    from raison.models.assemble import assemble_model
    from raison.models.pretrained import open_checkpoint

    if not name.strip():
        raise InputError(
            "The model's name is empty: name a folder, a hub model or one of `raison ls models`."
        )
    path = Path(name).expanduser()
    shipped = None
    if not path.exists() and not looks_local(name):
        shipped = shipped_folder(name)
    if path.is_dir() or shipped is not None:
        found = load_self_explaining(shipped or path, options)
        if found is not None:
            if shipped is not None:
                found.name = name
            return found
    if shipped is not None:
        raise ModelError(
            f"The files of {name!r} are missing from this installation: reinstall raison."
        )

    checkpoint = open_checkpoint(name, options).complete()
    hf = model_on_device(checkpoint.model, options.device, options.dtype)
    tokenizer = options.tokenizer or checkpoint.tokenizer
    model = assemble_model(hf, tokenizer, options.task, checkpoint.name)
    return load_head_statistics_beside(model, checkpoint.folder)


def load_self_explaining(folder: Path, options: LoadOptions) -> WrappedModel | None:
    """The model of a folder that one of the registered loaders owns; None where none does."""
    for kind in loaders:
        loader = loaders[kind]
        if loader.owns(folder):
            model: WrappedModel = loader(folder, device=options.device, dtype=options.dtype)
            return model
    return None


def shipped_folder(name: str) -> Path | None:
    """The folder of a model of the catalog that explains itself."""
    entry = catalog.catalog_entries().get(name)
    if entry is None:
        return None
    return entry.folder


def load_head_statistics_beside(
    model: TransformersModel | WrappedModel, folder: Path
) -> TransformersModel | WrappedModel:
    """A model with the statistics of its attention heads, where they lie beside it or raison ships them.

    `raison heads -m FOLDER --out FOLDER/heads.json` puts them there; recipes/heads.py makes those of the catalog.
    """
    file = folder / "heads.json"
    if file.is_file() and "attention" in model.offers:
        model.head_statistics = str(file)
        model.offers |= {"heads"}
    return model


def model_type_of_folder(folder: Path) -> str:
    """The model_type that a folder's config.json names; "" where it names none."""
    try:
        text = (folder / "config.json").read_text(encoding="utf-8")
        return str(limits.read_json_text(text).get("model_type", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def model_on_device(
    hf: Any, device: str | torch.device | None, dtype: str | torch.dtype | None = None
) -> Any:
    """The model on a device and in a dtype."""
    from raison.models.pretrained import torch_dtype_to_open

    try:
        return hf.to(device=device, dtype=torch_dtype_to_open(dtype))
    except (RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split())[:120]
        raise InputError(f"The model can't be put on {device!r} ({reason}).") from None
