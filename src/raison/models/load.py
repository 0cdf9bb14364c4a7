"""Open anything that can be explained: a name, a folder, a GGUF file, a model in memory, a function."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raison.core import limits
from raison.core.errors import InputError, MissingExtra, ModelError, Unsupported
from raison.core.registry import loaders, suggest
from raison.models import hub
from raison.models.checkpoint import INDEX, Checkpoint, check_folder, refuse_pickled_shards

if TYPE_CHECKING:
    from raison.models.loaded_model import LoadedModel
    from raison.models.tasks.base import Task

__all__ = ["TASKS", "load"]

TASKS = ("classification", "tagging", "qa", "causal", "seq2seq")


def load(
    model: Any,
    tokenizer: Any = None,
    task: str | None = None,
    device: str | None = None,
    dtype: Any = None,
    *,
    labels: list[str] | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Any:
    """Return a model that can be explained; what it offers has been tried out, not assumed.

    `model` is a catalog name (`raison ls models`), a folder, a `.gguf` file, a hub name, a transformers model
    already in memory (with its tokenizer), or a function from a list of texts to scores (with `labels`).
    """
    if task is not None and task not in TASKS:
        raise InputError(f"There is no task {task!r}.{suggest(task, list(TASKS))} Use one of {', '.join(TASKS)}.")
    if hasattr(model, "encode") and hasattr(model, "score") and hasattr(model, "offers"):
        return model
    if isinstance(model, (str, os.PathLike)):
        return opened(str(model), tokenizer, task, device, dtype, allow_pickle, trust_remote_code)
    if hasattr(model, "_orig_mod"):  # torch.compile: the module inside is the model
        return load(model._orig_mod, tokenizer, task, device, dtype)
    if hasattr(model, "config") and hasattr(model, "forward"):
        if device is not None or dtype is not None:
            raise InputError("A model in memory stays as it is: move it with its own .to(...) before you load it.")
        return adapted(model, tokenizer, task, getattr(model.config, "_name_or_path", "") or type(model).__name__)
    if callable(model):
        from raison.models.tasks.function import Function

        return Function(model, getattr(model, "__name__", type(model).__name__), labels)
    raise InputError(
        f"A {type(model).__name__} can't be explained: pass a name, a folder, a transformers model with its "
        "tokenizer, or a function from texts to scores."
    )


def opened(
    name: str, tokenizer: Any, task: str | None, device: str | None, dtype: Any, allow_pickle: bool, remote: bool
) -> Any:
    """Open a model by name or path."""
    if not name.strip():
        raise InputError("The model's name is empty: name a folder, a hub model or one of `raison ls models`.")
    path = Path(name).expanduser()
    shipped = None if path.exists() or looks_local(name) else shipped_folder(name)
    if path.is_dir() or shipped is not None:
        for kind in loaders:
            if loaders[kind].owns(shipped or path):
                found = loaders[kind](shipped or path, device=device, dtype=dtype)
                found.name = name if shipped is not None else found.name
                return found
    if shipped is not None:
        raise ModelError(f"The files of {name!r} are missing from this installation: reinstall raison.")
    found = plain_model(name, tokenizer, task, dtype, allow_pickle, remote).complete()
    model = adapted(placed(found.model, device, dtype), tokenizer or found.tokenizer, task, found.name)
    return with_heads(model, found.folder / "heads.json")


def shipped_folder(name: str) -> Path | None:
    """The folder of a model of the catalog that explains itself."""
    from raison.models import catalog

    entry = catalog.entries().get(name)
    return None if entry is None else entry.folder


def plain_model(
    name: str, tokenizer: Any, task: str | None, dtype: Any, allow_pickle: bool, remote: bool
) -> Checkpoint:
    """The transformers model of a name, with the names of weights that its files do not give."""
    path = Path(name).expanduser()
    if not path.exists() and not looks_local(name):
        from raison.models import catalog

        if name in catalog.entries():
            hf, own_tokenizer = catalog.entries()[name].open()
            return Checkpoint(hf, own_tokenizer, name, Path(catalog.__file__).parent / "shipped" / name)
    if path.suffix == ".gguf" and path.is_file():
        return from_gguf(path)
    if looks_local(name) and not path.exists():
        raise ModelError(f"There is no model folder or file {name!r}: check the path.")
    if is_adapter(path):
        from raison.models.lora import base_of, merged, saved_names

        base = plain_model(base_of(path), tokenizer, task, dtype, allow_pickle, remote)
        model = merged(base.model, path)
        return Checkpoint(model, base.tokenizer, path.name, path, base.missing - saved_names(path))
    return from_folder_or_hub(name, tokenizer, task, dtype, allow_pickle, remote)


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds a LoRA adapter: transformers, too, prefers it to a whole model beside it."""
    if not (folder / "adapter_config.json").is_file():
        return False
    return (folder / "adapter_model.safetensors").is_file() or not (folder / "config.json").is_file()


def with_heads(model: Any, file: Path) -> Any:
    """A model with the statistics of its attention heads, where they lie beside it or raison ships them.

    `raison heads -m FOLDER --out FOLDER/heads.json` puts them there; recipes/heads.py makes those of the catalog.
    """
    if file.is_file() and "attention" in model.offers:
        model.head_statistics, model.offers = str(file), model.offers | {"heads"}
    return model


def looks_local(name: str) -> bool:
    """A path rather than a hub name (which has at most one slash and no dots in front)."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or name.endswith(".gguf") or "\\" in name


def placed(hf: Any, device: Any, dtype: Any = None) -> Any:
    """The model on the wished device and in the wished dtype."""
    try:
        return hf.to(device=device, dtype=torch_dtype(dtype))
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"The model can't be put on {device!r} ({' '.join(str(error).split())[:120]}).") from None


def torch_dtype(dtype: Any) -> Any:
    import torch

    if dtype is None or isinstance(dtype, torch.dtype):
        return dtype
    found = getattr(torch, str(dtype), None)
    if not isinstance(found, torch.dtype):
        raise InputError(f"{dtype!r} is not a dtype: use float32, float64, bfloat16 or float16.")
    return found


def from_folder_or_hub(
    name: str, tokenizer: Any, task: str | None, dtype: Any, allow_pickle: bool, remote: bool
) -> Checkpoint:
    """transformers' own loading, with every failure turned into a sentence."""
    from transformers import AutoConfig

    folder = Path(name).expanduser()
    options: dict[str, Any] = {"trust_remote_code": remote}
    if folder.is_dir():
        check_folder(folder, allow_pickle, tokenizer is not None)
        name = str(folder)
    elif not hub.reachable():
        options["local_files_only"] = True
    config = hub.sentence(lambda: AutoConfig.from_pretrained(name, **options), name, "config")
    auto = auto_class(config, task, name)
    weights: dict[str, Any] = {"use_safetensors": None if allow_pickle else True, "dtype": torch_dtype(dtype)}
    weights = {k: v for k, v in weights.items() if v is not None}
    if not folder.is_dir() and not allow_pickle:
        check_hub_index(name, config, options)

    def read() -> Any:
        return auto.from_pretrained(name, config=config, output_loading_info=True, **weights, **options)

    hf, report = hub.sentence(read, name, "weights")
    called = folder.name if folder.is_dir() else name
    own = tokenizer or tokenizer_of(name, options)
    return Checkpoint(hf, own, called, folder, frozenset(report["missing_keys"]))


def check_hub_index(name: str, config: Any, options: dict[str, Any]) -> None:
    """Refuse a model of the hub whose shards are pickled."""
    from transformers.utils import cached_file

    explicit = getattr(config, "transformers_weights", None) or INDEX
    if not str(explicit).endswith(".index.json"):
        return

    def find() -> str | None:
        place: str | None = cached_file(
            name,
            explicit,
            local_files_only=options.get("local_files_only", False),
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        return place

    index = hub.sentence(find, name, "weights")
    if index is not None:
        refuse_pickled_shards(Path(index), name)


def tokenizer_of(name: str, options: dict[str, Any]) -> Any:
    from transformers import AutoTokenizer

    return hub.sentence(lambda: AutoTokenizer.from_pretrained(name, **options), name, "tokenizer")


def kind_of(folder: Path) -> str:
    """The model_type that a folder's config.json names; "" where it names none."""
    try:
        return str(limits.from_json((folder / "config.json").read_text(encoding="utf-8")).get("model_type", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def auto_class(config: Any, task: str | None, name: str) -> Any:
    """The auto class of the task, or of the architecture that the checkpoint was saved with."""
    import transformers

    table = {
        "classification": transformers.AutoModelForSequenceClassification,
        "tagging": transformers.AutoModelForTokenClassification,
        "qa": transformers.AutoModelForQuestionAnswering,
        "causal": transformers.AutoModelForCausalLM,
        "seq2seq": transformers.AutoModelForSeq2SeqLM,
    }
    saved = (getattr(config, "architectures", None) or [""])[0] or ""
    found = task_of_name(saved)
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
    return table[found]


HEADS = (
    ("ForSequenceClassification", "classification"),
    ("ForTokenClassification", "tagging"),
    ("ForQuestionAnswering", "qa"),
    ("ForCausalLM", "causal"),
    ("LMHeadModel", "causal"),
    ("ForConditionalGeneration", "seq2seq"),
    ("MTModel", "seq2seq"),
    ("ForSeq2SeqLM", "seq2seq"),
)


def task_of_name(architecture: str) -> str | None:
    """The task of a transformers class name."""
    return next((task for ending, task in HEADS if architecture.endswith(ending)), None)


def definition_of(task: str) -> Callable[[LoadedModel], Task]:
    """The definition of a task by its name."""
    from raison.models.tasks.causal import CausalTask
    from raison.models.tasks.classification import ClassificationTask
    from raison.models.tasks.qa import QATask
    from raison.models.tasks.seq2seq import Seq2SeqTask
    from raison.models.tasks.tagging import TaggingTask

    kinds = (ClassificationTask, TaggingTask, QATask, CausalTask, Seq2SeqTask)
    return next(kind for kind in kinds if kind.name == task)


def check_prompts(hf: Any) -> None:
    """Refuse learned prompts and prefixes: they live in peft's wrapper, and the model inside would be explained."""
    names = getattr(hf, "active_adapters", None)
    configs = getattr(hf, "peft_config", None)
    if not isinstance(configs, dict) or not isinstance(names, (list, tuple)):
        return
    if any(getattr(configs.get(name), "is_prompt_learning", False) for name in names):
        raise Unsupported(
            f"{type(hf).__name__} puts learned tokens in front of a text, which no word can be blamed for and raison "
            "can't see: use LoRA, or the base model."
        )


def adapted(hf: Any, tokenizer: Any, task: str | None, name: str) -> Any:
    """The adapter of a model in memory, probed."""
    from raison.models.families import family_of
    from raison.models.loaded_model import LoadedModel
    from raison.models.probe import probe
    from raison.models.transformers_model import transformers_model

    if tokenizer is None:
        raise ModelError("A model in memory needs its tokenizer: raison.load(model, tokenizer).")
    check_prompts(hf)
    inner = hf.get_base_model() if hasattr(hf, "get_base_model") else hf  # peft wraps the model it adapts
    if (own := getattr(type(inner), "raison_adapted", None)) is not None:  # it knows more than its task
        return own(inner, tokenizer, name)
    found = getattr(type(inner), "raison_task", None) or task_of_name(type(inner).__name__)
    if found is None:
        raise Unsupported(
            f"{type(hf).__name__} has no head that raison knows: load it with one of transformers' classes for "
            f"{', '.join(TASKS)}."
        )
    if task is not None and task != found:
        raise Unsupported(
            f"{type(hf).__name__} has a head for {found}, not for {task}: use another model or leave the task away."
        )
    loaded = LoadedModel(inner, tokenizer, family_of(inner), name)
    return probe(transformers_model(definition_of(found)(loaded)))


def from_gguf(path: Path) -> Checkpoint:
    """Read a GGUF file into a plain model (the one transformers returns refuses to be copied or saved)."""
    try:
        import accelerate  # noqa: F401
        import gguf  # noqa: F401
    except ImportError:
        raise MissingExtra("gguf", "gguf", "A GGUF file") from None
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    tokenizer = hub.sentence(lambda: AutoTokenizer.from_pretrained(**place), path.name, "tokenizer")

    def weights() -> Any:
        return AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32, output_loading_info=True)

    read, report = hub.sentence(weights, path.name, "weights")
    settings = read.config.to_dict()
    for key in ("quantization_config", "_name_or_path", "_model_name_or_path"):
        settings.pop(key, None)
    plain = type(read)(type(read.config)(**settings))
    plain.load_state_dict(read.state_dict())
    plain.tie_weights()
    return Checkpoint(plain.eval(), tokenizer, path.stem, path, frozenset(report["missing_keys"]))
