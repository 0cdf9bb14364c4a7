"""Assembling a `Model` from a transformers model and its tokenizer: its task, its family, and what it really offers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from raison.core.errors import ModelError, Unsupported
from raison.core.registry import loaders
from raison.models.families import family_of
from raison.models.load_options import TASKS
from raison.models.loaded_model import LoadedModel
from raison.models.probe import probe_model
from raison.models.tasks.base import Task
from raison.models.tasks.causal import CausalTask
from raison.models.tasks.classification import ClassificationTask
from raison.models.tasks.qa import QATask
from raison.models.tasks.seq2seq import Seq2SeqTask
from raison.models.tasks.tagging import TaggingTask
from raison.models.transformers_model import TransformersModel, transformers_model

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from raison.models.wrapped_model import WrappedModel

__all__ = ["assemble_model", "task_of_class"]

DEFINITIONS: dict[str, type[Task]] = {
    definition.name: definition
    for definition in (ClassificationTask, TaggingTask, QATask, CausalTask, Seq2SeqTask)
}
TASK_OF_ENDING = (  # of the name of a transformers class
    ("ForSequenceClassification", "classification"),
    ("ForTokenClassification", "tagging"),
    ("ForQuestionAnswering", "qa"),
    ("ForCausalLM", "causal"),
    ("LMHeadModel", "causal"),
    ("ForConditionalGeneration", "seq2seq"),
    ("MTModel", "seq2seq"),
    ("ForSeq2SeqLM", "seq2seq"),
)


def task_of_class(architecture: str) -> str | None:
    """The task of a transformers class name."""
    for ending, task in TASK_OF_ENDING:
        if architecture.endswith(ending):
            return task
    return None


def assemble_model(
    hf: Any, tokenizer: PreTrainedTokenizerBase | None, task: str | None, name: str
) -> TransformersModel | WrappedModel:
    """The model around a transformers model, probed; `task` is what a user believes that it does."""
    if tokenizer is None:
        raise ModelError("A model in memory needs its tokenizer: raison.load(model, tokenizer).")
    refuse_learned_prompts(hf)
    # peft wraps the model it adapts
    inner: Any = hf.get_base_model() if hasattr(hf, "get_base_model") else hf
    kind = type(inner)
    loader = getattr(kind, "raison_loader", None)
    if loader is not None:  # it explains itself
        model: WrappedModel = loaders[loader].wrap(inner, tokenizer, name)
        return model

    found = getattr(kind, "raison_task", None) or task_of_class(kind.__name__)
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
    return probe_model(transformers_model(DEFINITIONS[found](loaded)))


def refuse_learned_prompts(hf: Any) -> None:
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
