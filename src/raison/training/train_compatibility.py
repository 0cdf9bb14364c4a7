"""Fine-tuning a writing model for compatibility with partial contexts, and its report (P0 section 4).

    loss = − mean_i log p(y_{i+1} | y_{K<i ∪ {i}})     K drawn by a keep rule with probability `mix`, else everything

Vafa et al. 2021, Rationales for Sequential Predictions. Trained this way, the model's answer for a subset comes near to
the true conditional, so a rationale is about the text and not about how the model stumbles over gaps. The control
`keep="none"` is the same training on the same tokens without dropout.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import nn

from raison.core.errors import InputError
from raison.models.attention.view import clone_of
from raison.models.load import load, model_on_device
from raison.training.compatibility_settings import CompatibilityTraining
from raison.training.data_names import name_of_data, split_joined_data
from raison.training.feed import BatchFeed
from raison.training.fit import fit
from raison.training.fit_settings import FitSettings, Measurements, Settings
from raison.training.language_model_rows import (
    TrainingMaterial,
    TrainingRow,
    join_language_materials,
    language_model_blocks,
    language_model_examples,
)
from raison.training.lora_training import wrap_with_lora, write_lora_adapter
from raison.training.partial_context_loss import PartialContextLoss
from raison.training.training_folder import (
    CHECKPOINT,
    OWN,
    prepare_training_folder,
    write_training_file,
    writing_trained_model,
)
from raison.training.translation_rows import translation_material
from raison.training.word_dropout import keep_rule_of
from raison.training.word_dropout_attention import heads_within_reach, word_dropout_attention

if TYPE_CHECKING:
    from raison.models.protocol import Model
    from raison.models.transformers_model import TransformersWriter

__all__ = [
    "REPORT",
    "base_name_for_trained_adapter",
    "compatibility_training_of",
    "copy_for_compatibility",
    "train_compatibility",
]

REPORT = "training.json"
LOOKED = 12  # rows on which a run looks at itself
TESTED = 48  # rows on which it is measured before and after

Transformer: TypeAlias = Any  # a model of transformers, plain or wrapped by peft
CompatibilityReport: TypeAlias = dict[str, Any]  # what training.json holds


def train_compatibility(
    model: Any,
    data: object,
    *,
    out: str | Path,
    every: int | None = None,
    split: str | None = None,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    tokens: int | None = None,
    half: bool = False,
    save_every: float = 60.0,
    device: str | None = None,
    command: str = "",
    base: str = "",
    **settings: Any,
) -> CompatibilityReport:
    """Train a language model or an encoder-decoder on partial contexts, and write it to the folder `out`.

    `data` is a text file, a data set (its `train` part, unless `split` says otherwise), several of them
    (`one+another`) or a list of texts; for an encoder-decoder pairs, or sources alone with `own_targets=True`.
    `limit` and, for a language model, `tokens` bound what is read of each. Settings are those of
    `CompatibilityTraining`. The caller's model stays as it is; `out` becomes a plain Hugging Face folder, or with
    `lora` a peft adapter (`half`: in float16), with training.json; an adapter says that it is for `base` (default:
    what `model` names). `every` is the number of steps between two looks at the held-out part. The same call goes
    on where a run was stopped or killed, on any `device`. Returns what training.json holds.
    """
    training = compatibility_training_of(settings)
    folder = Path(out)
    opened = load(model, device=device)
    check_trainable_model(opened, training, tokens)
    prepare_training_folder(folder, REPORT)
    texts = CompatibilityTexts(data, split=split, data_dir=data_dir, limit=limit, tokens=tokens)
    material = compatibility_material(opened, texts, training, folder)
    learner = copy_for_compatibility(opened, training)
    rule = keep_rule_of(training.keep)
    heads = heads_within_reach(learner, opened.name)
    contexts = PartialContextLoss(learner, opened, rule, training, heads, material.lead)
    identity = {
        **asdict(training),
        "keep": str(rule.spec()),
        "model": opened.name,
        "data": material.content(),
    }
    fit_settings = compatibility_fit_settings(
        training, folder, identity, every=every, save_every=save_every
    )
    trained = [parameter for parameter in learner.parameters() if parameter.requires_grad]
    groups = [{"params": trained, "peak": training.rate}]
    feed = BatchFeed(material.train, training.batch, training.seed)

    def look() -> Measurements:
        return contexts.measure(material.held[:LOOKED])

    with word_dropout_attention(learner):
        done = fit(learner, groups, feed, contexts.loss, fit_settings, look)
        if half and training.lora:
            round_trained_to_half(trained)  # what is measured is what is written
        after = contexts.measure(material.held[:TESTED])
    report = {
        "what": "compatibility",
        "model": opened.name,
        "data": name_of_data(data),
        "split": split,
        "tokens of each": tokens,
        **asdict(training),
        "keep": str(rule.spec()),
        "lr": training.rate,
        "counts": {**material.counts, "parameters trained": count_trained_parameters(trained)},
        "tokens trained on": count_trained_tokens(feed, training),
        "before": measure_untrained_model(opened, contexts, material.held[:TESTED]),
        "after": after,
        "history": done.history,
        "losses": [round(loss, 5) for loss in done.losses],
        "CPU minutes": round(done.seconds / 60, 1),
        "versions": package_versions_of_training(training),
        "command": command,
    }
    base = base or base_name_for_trained_adapter(model, opened)
    write_compatibility_model(learner, opened, folder, report, half=half, base=base)
    return report


def compatibility_fit_settings(
    training: CompatibilityTraining,
    folder: Path,
    identity: Settings,
    *,
    every: int | None,
    save_every: float,
) -> FitSettings:
    """How the loop trains; a checkpoint of another `identity` is not continued."""
    if every is None:
        every = max(1, training.steps // 4)
    return FitSettings(
        out=folder,
        steps=training.steps,
        settings=identity,
        seed=training.seed,
        accumulate=training.accumulate,
        schedule=training.schedule,
        warm=training.warm,
        bfloat16=training.bfloat16,
        every=every,
        before=True,
        save_every=save_every,
    )


def measure_untrained_model(
    opened: TransformersWriter, contexts: PartialContextLoss, rows: Sequence[TrainingRow]
) -> Measurements:
    """The perplexities of the model as it came."""
    untrained = model_to_train_in_float32(clone_of(opened.hf))
    with word_dropout_attention(untrained):
        return replace(contexts, learner=untrained).measure(rows)


# -- what is trained, on what ---------------------------------------------------------------------------------


def compatibility_training_of(settings: Mapping[str, Any]) -> CompatibilityTraining:
    """The training of settings by name; one that there is not is refused in a sentence."""
    try:
        training = CompatibilityTraining(**settings)
    except TypeError as error:
        reason = str(error).partition(") ")[2] or error
        place = "raison.training.compatibility_settings.CompatibilityTraining"
        raise InputError(f"{reason}: see {place}.") from None
    keep_rule_of(training.keep)  # a misspelt rule is cheap to refuse now
    return training


def check_trainable_model(
    opened: TransformersWriter, training: CompatibilityTraining, tokens: int | None
) -> None:
    """Refuse a model that can't be trained so."""
    if opened.task not in ("causal", "seq2seq") or not hasattr(opened, "hf"):
        raise InputError(
            f"{opened.name} does not write text ({opened.task}), so it has no words to predict from subsets: name a "
            "language model or an encoder-decoder."
        )
    two_sides = opened.task == "seq2seq"
    if training.own_targets and not two_sides:
        raise InputError(
            "own_targets is for encoder-decoders: a language model learns the text itself."
        )
    if tokens is not None and (two_sides or tokens < 1):
        raise InputError(
            "tokens bounds the text of a language model, and is at least 1: use limit for pairs."
        )


@dataclass(frozen=True)
class CompatibilityTexts:
    """Where the texts are, and how many of them are read."""

    data: object
    split: str | None
    data_dir: str | Path | None
    limit: int | None  # texts of each
    tokens: int | None  # tokens of each


def compatibility_material(
    opened: TransformersWriter,
    texts: CompatibilityTexts,
    training: CompatibilityTraining,
    folder: Path,
) -> TrainingMaterial:
    """Rows to train on and rows that are held out."""
    two_sides = opened.task == "seq2seq"
    read = []
    for part in split_joined_data(texts.data):
        examples = language_model_examples(
            part, split=texts.split, data_dir=texts.data_dir, limit=texts.limit, prose=not two_sides
        )
        read.append(examples)
    if two_sides:
        return translation_material(
            opened,
            [pair for examples in read for pair in examples],
            length=training.length,
            held=training.held,
            batch=training.batch,
            own=training.own_targets,
            out=folder,
        )
    parts = []
    for examples in read:
        part_blocks = language_model_blocks(
            opened,
            examples,
            length=training.length,
            held=training.held,
            batch=training.batch,
            most=texts.tokens,
        )
        parts.append(part_blocks)
    return join_language_materials(parts)


def copy_for_compatibility(
    opened: TransformersWriter, training: CompatibilityTraining
) -> Transformer:
    """A copy of the user's model that may be trained: with LoRA it shares the weights, which stay frozen."""
    if training.lora:
        return wrap_with_lora(
            model_to_train_in_float32(clone_of(opened.hf)),
            training.lora,
            seed=training.seed,
            name=opened.name,
        )
    copied = model_to_train_in_float32(copy.deepcopy(opened.hf))
    for module in copied.modules():
        computed = "Sinusoidal" in type(module).__name__  # a table that is computed, not learned
        for parameter in module.parameters(recurse=False):
            parameter.requires_grad_(not computed)  # a merged adapter leaves weights frozen
    return copied


def model_to_train_in_float32(model: Transformer) -> Transformer:
    """The model in float32 where it was less: small updates would be lost."""
    dtype = next(model.parameters()).dtype
    if dtype in (torch.float16, torch.bfloat16):
        return model.float()
    return model


@torch.no_grad()
def round_trained_to_half(trained: Sequence[nn.Parameter]) -> None:
    """Round weights to what float16 holds."""
    for parameter in trained:
        parameter.copy_(parameter.half().to(parameter.dtype))


# -- the result -----------------------------------------------------------------------------------------------


def base_name_for_trained_adapter(model: Any, opened: Model) -> str:
    """What an adapter calls the model that it is for, so that `raison.load` finds it again: a name, or the folder."""
    if isinstance(model, (str, Path)) and Path(model).expanduser().exists():
        return str(Path(model).expanduser().resolve())
    return opened.name


def count_trained_tokens(feed: BatchFeed[TrainingRow], training: CompatibilityTraining) -> int:
    """Tokens that the run has seen, each time that it saw them."""
    again = BatchFeed(feed.rows, feed.size, feed.seed)
    count = 0
    for part in range(training.steps * training.accumulate):
        count += sum(len(row) for row in again(part))
    return count


def count_trained_parameters(parameters: Sequence[nn.Parameter]) -> int:
    """Numbers in these parameters."""
    return sum(parameter.numel() for parameter in parameters)


def package_versions_of_training(training: CompatibilityTraining) -> dict[str, str]:
    """The versions of the packages that a training rests on."""
    names = ["torch", "transformers"]
    if training.lora:
        names.append("peft")
    versions = {}
    for name in names:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "unknown"
    return versions


def write_compatibility_model(
    learner: Transformer,
    opened: TransformersWriter,
    folder: Path,
    report: CompatibilityReport,
    *,
    half: bool,
    base: str,
) -> None:
    """Write model and report; the report comes last, as the sign that all is there. An adapter is for `base`."""
    with writing_trained_model(folder):
        if report["lora"]:
            report["bytes"] = write_lora_adapter(learner, folder, half=half, name=base)
        else:
            model_on_device(learner, "cpu").save_pretrained(folder)
            for file in folder.glob("*.safetensors"):
                file.chmod(0o644)  # safetensors writes for the owner only
            opened.tokenizer.save_pretrained(folder)
        with write_training_file(folder / REPORT) as place:
            place.write_text(
                json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )
    for name in (CHECKPOINT, OWN):
        (folder / name).unlink(missing_ok=True)
