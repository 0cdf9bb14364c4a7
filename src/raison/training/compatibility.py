"""Fine-tuning for partial contexts: a model that is asked about subsets should have seen some (P0 section 4).

    loss = − mean_i log p(y_{i+1} | y_{K<i ∪ {i}})     K drawn by a keep rule with probability `mix`, else everything

Vafa et al. 2021, Rationales for Sequential Predictions. Trained this way, the model's answer for a subset comes near to
the true conditional, so a rationale is about the text and not about how the model stumbles over gaps. The control
`keep="none"` is the same training on the same tokens without dropout.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import nn

from raison.core.errors import InputError
from raison.core.parameters import check_choice, check_in_range, check_integer
from raison.models.attention.view import clone
from raison.models.load import load, model_on_device
from raison.training.checkpoint import CHECKPOINT, OWN, prepared, saved, writing
from raison.training.course import Course
from raison.training.data_names import named, several
from raison.training.dropout import COINS, rule_of
from raison.training.dropout_attention import attending, reach_of
from raison.training.feed import Feed
from raison.training.fit import fit
from raison.training.lm_data import Material, Row, blocks, join_materials, training_examples
from raison.training.lora import with_lora, write_adapter
from raison.training.partial_contexts import PartialContexts
from raison.training.translation_data import translations

if TYPE_CHECKING:
    from raison.models.protocol import Model
    from raison.models.transformers_model import TransformersWriter

__all__ = ["REPORT", "Setup", "base_of", "train_compatibility", "trainable_copy"]

REPORT = "training.json"
RATE_OF_LORA, RATE_OF_ALL = 5e-4, 5e-5
LOOKED = 12  # rows on which a run looks at itself
TESTED = 48  # rows on which it is measured before and after

Transformer: TypeAlias = Any  # a model of transformers, plain or wrapped by peft
Report: TypeAlias = dict[str, Any]  # what training.json holds


@dataclass(frozen=True)
class Setup:
    """What a run is: everything here makes two runs the same or not."""

    keep: str = "uniform_length"  # the keep rule; "none": plain training, the control
    mix: float = 0.5  # share of the batches that have word dropout
    coins: str = "apart"  # of an encoder-decoder: apart, one coin for each side; one, for both
    lora: int | None = None  # rank; None: all weights are trained
    lr: float | None = None  # peak rate; None: 5e-4 with LoRA, else 5e-5
    steps: int = 300
    length: int = 128  # tokens of a block; the longest source and target of an encoder-decoder
    batch: int = 8  # rows
    accumulate: int = 1  # batches of a step
    schedule: str = "linear"  # linear | constant
    warm: float = 0.05  # share of the steps until the rate is full
    seed: int = 0
    bfloat16: bool = False  # autocast
    own_targets: bool = False  # of an encoder-decoder: learn what it writes itself
    held: float = 0.05  # share of the data that is held out
    subset: int = 10  # tokens of the subsets that perplexity is measured on

    def __post_init__(self) -> None:
        rule_of(self.keep)
        check_in_range("mix", self.mix, 0, 1)
        check_choice("coins", self.coins, COINS)
        check_in_range("held", self.held, 0, 0.9)
        check_integer("steps", self.steps, 1)
        check_integer("length", self.length, 4)
        check_integer("batch", self.batch, 1)
        check_integer("accumulate", self.accumulate, 1)
        check_integer("seed", self.seed, 0)
        check_integer("subset", self.subset, 1)
        if self.lora is not None:
            check_integer("lora", self.lora, 1)
        if self.lr is not None:
            check_in_range("lr", self.lr, 0, 1)

    @property
    def rate(self) -> float:
        """The peak rate."""
        if self.lr is not None:
            return self.lr
        return RATE_OF_ALL if self.lora is None else RATE_OF_LORA


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
) -> Report:
    """Train a language model or an encoder-decoder on partial contexts, and write it to the folder `out`.

    `data` is a text file, a data set (its `train` part, unless `split` says otherwise), several of them (`one+another`)
    or a list of texts; for an encoder-decoder pairs, or sources alone with `own_targets=True`. `limit` and, for a
    language model, `tokens` bound what is read of each. Settings are those of `Setup`. The caller's model
    stays as it is; `out` becomes a plain Hugging Face folder, or with `lora` a peft adapter (`half`: in float16), with
    training.json; an adapter says that it is for `base` (default: what `model` names). `every` is the number of steps
    between two looks at the held-out part. The same call goes on where a run was stopped or killed, on any `device`.
    Returns what training.json holds.
    """
    setup = setup_of(settings)
    folder = Path(out)
    opened = load(model, device=device)
    check_model(opened, setup, tokens)
    prepared(folder, REPORT)
    texts = Texts(data, split=split, data_dir=data_dir, limit=limit, tokens=tokens)
    material = material_of(opened, texts, setup, folder)
    learner = trainable_copy(opened, setup)
    rule = rule_of(setup.keep)
    contexts = PartialContexts(
        learner, opened, rule, setup, reach_of(learner, opened.name), material.lead
    )
    course = Course(
        out=folder,
        steps=setup.steps,
        settings={
            **asdict(setup),
            "keep": str(rule.spec()),
            "model": opened.name,
            "data": material.content(),
        },
        seed=setup.seed,
        accumulate=setup.accumulate,
        schedule=setup.schedule,
        warm=setup.warm,
        bfloat16=setup.bfloat16,
        every=max(1, setup.steps // 4) if every is None else every,
        before=True,
        save_every=save_every,
    )
    trained = [parameter for parameter in learner.parameters() if parameter.requires_grad]
    groups = [{"params": trained, "peak": setup.rate}]
    feed = Feed(material.train, setup.batch, setup.seed)
    with attending(learner):
        done = fit(
            learner,
            groups,
            feed,
            contexts.loss,
            course,
            lambda: contexts.measure(material.held[:LOOKED]),
        )
        if half and setup.lora:
            round_to_half(trained)  # what is measured is what is written
        after = contexts.measure(material.held[:TESTED])
    plain = in_float32(clone(opened.hf))
    with attending(plain):
        before = replace(contexts, learner=plain).measure(material.held[:TESTED])
    report = {
        "what": "compatibility",
        "model": opened.name,
        "data": named(data),
        "split": split,
        "tokens of each": tokens,
        **asdict(setup),
        "keep": str(rule.spec()),
        "lr": setup.rate,
        "counts": {
            **material.counts,
            "parameters trained": sum(parameter.numel() for parameter in trained),
        },
        "tokens trained on": count_tokens(feed, setup),
        "before": before,
        "after": after,
        "history": done.history,
        "losses": [round(loss, 5) for loss in done.losses],
        "CPU minutes": round(done.seconds / 60, 1),
        "versions": versions(("torch", "transformers", *(("peft",) if setup.lora else ()))),
        "command": command,
    }
    write_result(learner, opened, folder, report, half=half, base=base or base_of(model, opened))
    return report


# -- what is trained, on what ---------------------------------------------------------------------------------


def setup_of(settings: dict[str, Any]) -> Setup:
    """The setup of settings by name; one that there is not is refused in a sentence."""
    try:
        return Setup(**settings)
    except TypeError as error:
        reason = str(error).partition(") ")[2] or error
        raise InputError(f"{reason}: see raison.training.compatibility.Setup.") from None


def check_model(opened: TransformersWriter, setup: Setup, tokens: int | None) -> None:
    """Refuse a model that can't be trained so."""
    if opened.task not in ("causal", "seq2seq") or not hasattr(opened, "hf"):
        raise InputError(
            f"{opened.name} does not write text ({opened.task}), so it has no words to predict from subsets: name a "
            "language model or an encoder-decoder."
        )
    two_sides = opened.task == "seq2seq"
    if setup.own_targets and not two_sides:
        raise InputError(
            "own_targets is for encoder-decoders: a language model learns the text itself."
        )
    if tokens is not None and (two_sides or tokens < 1):
        raise InputError(
            "tokens bounds the text of a language model, and is at least 1: use limit for pairs."
        )


@dataclass(frozen=True)
class Texts:
    """Where the texts are, and how many of them are read."""

    data: object
    split: str | None
    data_dir: str | Path | None
    limit: int | None  # texts of each
    tokens: int | None  # tokens of each


def material_of(opened: TransformersWriter, texts: Texts, setup: Setup, folder: Path) -> Material:
    """Rows to train on and rows that are held out."""
    two_sides = opened.task == "seq2seq"
    read = []
    for part in several(texts.data):
        examples = training_examples(
            part, split=texts.split, data_dir=texts.data_dir, limit=texts.limit, prose=not two_sides
        )
        read.append(examples)
    if two_sides:
        return translations(
            opened,
            [pair for examples in read for pair in examples],
            length=setup.length,
            held=setup.held,
            batch=setup.batch,
            own=setup.own_targets,
            out=folder,
        )
    parts = []
    for examples in read:
        part_blocks = blocks(
            opened,
            examples,
            length=setup.length,
            held=setup.held,
            batch=setup.batch,
            most=texts.tokens,
        )
        parts.append(part_blocks)
    return join_materials(parts)


def trainable_copy(opened: TransformersWriter, setup: Setup) -> Transformer:
    """A copy of the user's model that may be trained: with LoRA it shares the weights, which stay frozen."""
    if setup.lora:
        return with_lora(
            in_float32(clone(opened.hf)), setup.lora, seed=setup.seed, name=opened.name
        )
    copied = in_float32(copy.deepcopy(opened.hf))
    for module in copied.modules():
        computed = "Sinusoidal" in type(module).__name__  # a table that is computed, not learned
        for parameter in module.parameters(recurse=False):
            parameter.requires_grad_(not computed)  # a merged adapter leaves weights frozen
    return copied


def in_float32(model: Transformer) -> Transformer:
    """The model in float32 where it was less: small updates would be lost."""
    is_half = next(model.parameters()).dtype in (torch.float16, torch.bfloat16)
    return model.float() if is_half else model


@torch.no_grad()
def round_to_half(trained: Sequence[nn.Parameter]) -> None:
    """Round weights to what float16 holds."""
    for parameter in trained:
        parameter.copy_(parameter.half().to(parameter.dtype))


# -- the result -----------------------------------------------------------------------------------------------


def base_of(model: Any, opened: Model) -> str:
    """What an adapter calls the model that it is for, so that `raison.load` finds it again: a name, or the folder."""
    if isinstance(model, (str, Path)) and Path(model).expanduser().exists():
        return str(Path(model).expanduser().resolve())
    return opened.name


def count_tokens(feed: Feed[Row], setup: Setup) -> int:
    """Tokens that the run has seen, each time that it saw them."""
    again = Feed(feed.rows, feed.size, feed.seed)
    count = 0
    for part in range(setup.steps * setup.accumulate):
        count += sum(len(row) for row in again(part))
    return count


def versions(names: Sequence[str]) -> dict[str, str]:
    """The versions of packages."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def write_result(
    learner: Transformer,
    opened: TransformersWriter,
    folder: Path,
    report: Report,
    *,
    half: bool,
    base: str,
) -> None:
    """Write model and report; the report comes last, as the sign that all is there. An adapter is for `base`."""
    with writing(folder):
        if report["lora"]:
            report["bytes"] = write_adapter(learner, folder, half=half, name=base)
        else:
            model_on_device(learner, "cpu").save_pretrained(folder)
            for file in folder.glob("*.safetensors"):
                file.chmod(0o644)  # safetensors writes for the owner only
            opened.tokenizer.save_pretrained(folder)
        with saved(folder / REPORT) as place:
            place.write_text(
                json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )
    for name in (CHECKPOINT, OWN):
        (folder / name).unlink(missing_ok=True)
