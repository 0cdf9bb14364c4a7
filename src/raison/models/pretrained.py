"""Opening the files of a plain transformers model and its tokenizer: of the catalog, a folder, the hub, an adapter,
or GGUF.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from transformers import AutoConfig, AutoTokenizer
from transformers.utils.hub import cached_file

from raison.core.errors import InputError, ModelError, Unsupported
from raison.models import catalog, hub
from raison.models.assemble import task_of_class
from raison.models.checkpoint import INDEX, Checkpoint, check_model_folder, refuse_pickled_shards
from raison.models.gguf_file import checkpoint_from_gguf
from raison.models.load_options import TASKS, LoadOptions, looks_local
from raison.models.lora_merge import (
    base_model_of_adapter,
    merge_adapter_or_model_error,
    parameters_replaced_by_adapter,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["checkpoint_from_folder_or_hub", "open_checkpoint", "torch_dtype_to_open"]

AUTO_CLASSES = {
    "classification": transformers.AutoModelForSequenceClassification,
    "tagging": transformers.AutoModelForTokenClassification,
    "qa": transformers.AutoModelForQuestionAnswering,
    "causal": transformers.AutoModelForCausalLM,
    "seq2seq": transformers.AutoModelForSeq2SeqLM,
}


def open_checkpoint(name: str, options: LoadOptions) -> Checkpoint:
    """The transformers model of a name, with the names of weights that its files do not give."""
    path = Path(name).expanduser()
    if not path.exists() and not looks_local(name) and name in catalog.catalog_entries():
        hf, tokenizer = catalog.catalog_entries()[name].open()
        return Checkpoint(hf, tokenizer, name, Path(catalog.__file__).parent / "shipped" / name)
    if path.suffix == ".gguf" and path.is_file():
        return checkpoint_from_gguf(path)
    if looks_local(name) and not path.exists():
        raise ModelError(f"There is no model folder or file {name!r}: check the path.")
    if is_adapter(path):
        base = open_checkpoint(base_model_of_adapter(path), options)
        # first: it says in a sentence what is wrong with the adapter's files
        model = merge_adapter_or_model_error(base.model, path)
        missing = base.missing - parameters_replaced_by_adapter(path)
        return Checkpoint(model, base.tokenizer, path.name, path, missing)
    return checkpoint_from_folder_or_hub(name, options)


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds a LoRA adapter: transformers, too, prefers it to a whole model beside it."""
    if not (folder / "adapter_config.json").is_file():
        return False
    return (folder / "adapter_model.safetensors").is_file() or not (
        folder / "config.json"
    ).is_file()


def torch_dtype_to_open(dtype: str | torch.dtype | None) -> torch.dtype | None:
    """A dtype by its name."""
    if dtype is None or isinstance(dtype, torch.dtype):
        return dtype
    found = getattr(torch, str(dtype), None)
    if not isinstance(found, torch.dtype):
        raise InputError(f"{dtype!r} is not a dtype: use float32, float64, bfloat16 or float16.")
    return found


# -- a folder, or the hub ------------------------------------------------------------------------------------


def checkpoint_from_folder_or_hub(name: str, options: LoadOptions) -> Checkpoint:
    """transformers' own loading, with every failure turned into a sentence."""
    folder = Path(name).expanduser()
    where: dict[str, Any] = {"trust_remote_code": options.trust_remote_code}
    if folder.is_dir():
        check_model_folder(folder, options.allow_pickle, options.tokenizer is not None)
        name = str(folder)
    elif not hub.hub_is_reachable():
        where["local_files_only"] = True
    config = hub.run_loading_step(lambda: AutoConfig.from_pretrained(name, **where), name, "config")
    auto = auto_class_of_checkpoint(config, options.task, name)
    weights: dict[str, Any] = {}
    if not options.allow_pickle:
        weights["use_safetensors"] = True
        if not folder.is_dir():
            check_hub_index(name, config, local_only="local_files_only" in where)
    if options.dtype is not None:
        weights["dtype"] = torch_dtype_to_open(options.dtype)

    def read() -> Any:
        return auto.from_pretrained(
            name, config=config, output_loading_info=True, **weights, **where
        )

    hf, report = hub.run_loading_step(read, name, "weights")
    tokenizer = options.tokenizer or load_tokenizer(name, where)
    return Checkpoint(
        model=hf,
        tokenizer=tokenizer,
        name=folder.name if folder.is_dir() else name,
        folder=folder,
        missing=frozenset(report["missing_keys"]),
    )


def auto_class_of_checkpoint(config: Any, task: str | None, name: str) -> Any:
    """The auto class of the task, or of the architecture that the checkpoint was saved with."""
    architectures = getattr(config, "architectures", None) or [""]
    saved = architectures[0] or ""
    found = task_of_class(saved)
    if found is None:
        purpose = f"task={task!r}" if task else "explaining"
        raise Unsupported(
            f"{name!r} was saved as {saved or 'a bare encoder'}, which has no head for {purpose}: fine-tune it for a "
            f"task ({', '.join(TASKS)}) first."
        )
    if task is not None and task != found:
        raise Unsupported(
            f"{name!r} has a head for {found} ({saved}), not for {task}: leave the task away or use another model."
        )
    return AUTO_CLASSES[found]


def load_tokenizer(name: str, where: dict[str, Any]) -> PreTrainedTokenizerBase:
    """The tokenizer of a folder or of a model of the hub."""
    tokenizer: PreTrainedTokenizerBase = hub.run_loading_step(
        lambda: AutoTokenizer.from_pretrained(name, **where), name, "tokenizer"
    )
    return tokenizer


def check_hub_index(name: str, config: Any, *, local_only: bool) -> None:
    """Refuse a model of the hub whose shards are pickled."""
    explicit = getattr(config, "transformers_weights", None) or INDEX
    if not str(explicit).endswith(".index.json"):
        return

    def find() -> str | None:
        place: str | None = cached_file(
            name,
            explicit,
            local_files_only=local_only,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        return place

    index = hub.run_loading_step(find, name, "weights")
    if index is not None:
        refuse_pickled_shards(Path(index), name)
