"""Train a rationalizer: labels only; what it selects is watched while it trains, and the asked share is reached."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.spec import between, one_of, whole
from raison.models.catalog.quiet import quiet
from raison.models.codec import Pieces
from raison.models.load import placed
from raison.models.weight_fingerprint import fingerprint_of_model
from raison.rationalizers.batching import added_by, as_words, marks, pad_of, sorted_batches, tensors
from raison.rationalizers.build import assembled, defaulted, framed, room
from raison.rationalizers.calibration import calibrate
from raison.rationalizers.config import NAMED, Frame
from raison.rationalizers.encoders import opened_encoder
from raison.rationalizers.losses import Weights, total
from raison.rationalizers.module import Rationalizer
from raison.rationalizers.report import commonest, measured, troubles
from raison.training.class_data import Line, Lines, content_of, data_mark, examples_by_part, labels_of, lines_of
from raison.training.early_stopping import BEST, Best
from raison.training.feed import Feed
from raison.training.fit import CHECKPOINT, Course, fit, prepared, saved, writing
from raison.training.lora import with_lora, write_adapter
from raison.training.multi_seed import REPORT, repeated
from raison.training.seeds import generator

__all__ = ["Regimen", "measured", "train_rationalizer", "troubles"]

CALIBRATED = 1000  # training texts that the line between keeping and dropping is drawn on


@dataclass(frozen=True)
class Regimen:
    """How a rationalizer is trained."""

    weights: Weights = field(default_factory=Weights)
    lr: float = 5e-5  # of the encoder
    head_lr: float = 5e-4
    lora: int = 0  # rank of an adapter; 0: all weights of the blocks
    decay: float = 0.01
    clip: float = 1.0
    batch: int = 32
    epochs: int = 6
    patience: int = 3  # epochs without a better accuracy of the development part
    warm: float = 1.0  # epochs in which the predictor reads random parts, and the selection is not judged yet
    held: float = 0.1
    longest: int = 256  # tokens of a text at most
    bfloat16: bool = False  # matrix products of training in bfloat16
    half: bool = False  # an adapter is stored in float16

    def __post_init__(self) -> None:
        for name in ("batch", "epochs", "patience", "longest"):
            whole(name, getattr(self, name), 1)
        whole("lora", self.lora, 0)
        for name in ("decay", "clip", "warm"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} is a number from 0 up, not {getattr(self, name)}.")
        for name in ("lr", "head_lr"):
            between(name, getattr(self, name), 0)
        between("held", self.held, 0, 0.9)
        if self.warm >= self.epochs:
            raise InputError(f"After {self.warm:g} epochs of warm-up none of {self.epochs} is left: give more epochs.")
        if self.half and not self.lora:
            raise InputError("half stores an adapter in float16: give lora a rank, or leave half away.")


@dataclass(frozen=True)
class Task:
    """The loss of a batch."""

    frame: Frame
    regimen: Regimen
    pad: int
    warm: int  # steps
    seed: int
    seen: list[int] = field(default_factory=lambda: [0])  # steps so far

    def loss(self, model: Any, lines: Sequence[Line], part: int) -> torch.Tensor:
        inputs = tensors(lines, self.pad, model.device)
        labels = torch.tensor([line.label for line in lines], device=model.device)
        warming, self.seen[0] = part < self.warm, part + 1
        if warming:  # of each text a random share, so that the predictor can read parts before it gets the model's
            random = generator(self.seed, part, 21)
            least = min(self.frame.sparsity)
            share = least + (1 - least) * torch.rand(len(lines), 1, generator=random)
            inputs["rationale"] = (torch.rand(inputs["input_ids"].shape, generator=random) < share).to(model.device)
        told = model(**inputs)
        gold, known = (each.to(model.device) for each in marks(lines))
        return total(
            told, labels, self.frame, self.regimen.weights, selecting=not warming, gold=gold, known=known,
            spread=model.config.spread,
        )  # fmt: skip


def train_rationalizer(
    model: Any,
    data: Any,
    *,
    out: str | Path,
    frame: dict[str, Any] | None = None,
    variant: str = "whole",
    regimen: Regimen | None = None,
    tokenizer: Any = None,
    seed: int = 0,
    runs: int = 1,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    skip_broken: bool = False,
    regression: bool = False,
    device: str | None = None,
    command: str = "",
) -> dict[str, Any]:
    """Train a classifier that selects its rationale and predicts from that alone, and write it to the folder `out`.

    `model` is an encoder of BERT's kind: a name, a folder, or one in memory with its tokenizer; a fine-tuned classifier
    gives its encoder. `frame` holds settings of rationalizers.config.Frame beside those of the `variant`; where it does
    not say how many `blocks` generate, the homogeneity of token states decides. Human rationales in the data are not
    looked at unless the regimen gives them a weight. It is trained on `device` (default: where a model in memory is, or
    the CPU). Returns what training.json (or runs.json) holds.
    """
    one_of("variant", variant, tuple(NAMED))
    data = data if isinstance(data, (str, Path)) else list(data)
    chosen = {**NAMED[variant], **(frame or {})}
    Frame.of(defaulted({**chosen, "blocks": chosen.get("blocks") or 1000}))  # what is wrong is said at once
    placed(torch.empty(0), device)
    taught = regimen or Regimen()
    one = partial(
        trained, model, tokenizer, data, chosen, variant, taught, data_dir=data_dir, limit=limit,
        skip_broken=skip_broken, regression=regression, device=device, command=command,
    )  # fmt: skip

    def same(report: dict[str, Any]) -> bool:
        now: dict[str, Any] = {
            "data": data_mark(data),
            "content": content_of(data),
            "variant": variant,
            "asked": plain(chosen),
            "regimen": plain(asdict(taught)),
        }
        now |= {
            "limit": limit,
            "regression": regression,
            "model": called(model),
            "weights": fingerprint_of_model(model),
        }
        return all(report[key] == value for key, value in now.items())

    return repeated(one, Path(out), runs, seed, same)


def called(model: Any) -> str:
    """As `opened_encoder` calls it."""
    if isinstance(model, (str, os.PathLike)):
        path = Path(model).expanduser()
        return path.name if path.is_dir() else str(model)
    return getattr(model.config, "_name_or_path", "") or type(model).__name__


def plain(settings: dict[str, Any]) -> dict[str, Any]:
    """As JSON gives it back."""
    found: dict[str, Any] = json.loads(json.dumps(settings))
    return found


def trained(
    model: Any,
    tokenizer: Any,
    data: Any,
    chosen: dict[str, Any],
    variant: str,
    regimen: Regimen,
    folder: Path,
    seed: int,
    *,
    data_dir: Any,
    limit: int | None,
    skip_broken: bool,
    regression: bool,
    device: str | None,
    command: str,
) -> dict[str, Any]:
    """One run: a folder with weights, config, tokenizer and training.json."""
    prepared(folder, REPORT)
    if regimen.lora and not isinstance(model, (str, os.PathLike)):
        raise InputError(
            "An adapter names its model, and one in memory has no name: save it first, or leave lora away."
        )
    encoder, words, name = opened_encoder(model, tokenizer)
    mark = fingerprint_of_model(model)
    parts, left = examples_by_part(
        data, data_dir=data_dir, limit=limit, held=regimen.held, seed=seed, skip_broken=skip_broken,
        regression=regression,
    )  # fmt: skip
    labels = () if regression else labels_of(parts)
    special = added_by(words)
    read: Callable[[Pieces], np.ndarray] = lambda pieces: as_words(pieces.ids, pieces.start, special, words)  # noqa: E731
    lines = lines_of(parts, words, labels, min(regimen.longest, room(encoder)), read)
    if len(lines.parts["train"]) < regimen.batch:
        raise InputError(
            f"There are {len(lines.parts['train'])} training texts, fewer than a batch of {regimen.batch}: give more "
            "texts, or a smaller batch."
        )
    steps = regimen.epochs * (len(lines.parts["train"]) // regimen.batch)
    if round(regimen.warm * steps / regimen.epochs) >= steps:
        raise InputError(f"After {regimen.warm:g} epochs of warm-up no step of {steps} is left: give more epochs.")
    pair = any(e.pair is not None for e in parts["train"])
    frame, alike = framed(encoder, words, chosen, lines, pair, name)
    base = name
    if regimen.lora and Path(model).expanduser().is_dir():  # so that both folders can be moved together
        base = os.path.relpath(Path(model).expanduser().resolve(), folder.resolve())
    made = assembled(encoder, words, frame, labels, seed, base=base if regimen.lora else "")
    made.config.longest = regimen.longest
    if regression:
        made.config.middle, made.config.spread = scale_of(lines)
    wrapped = adapted(made, regimen, seed, name) if regimen.lora else None
    placed(made, device or getattr(model, "device", None))
    report = taught(made, lines, frame, regimen, folder, seed, name, pad_of(words))
    report = {
        "what": "rationalizer",
        "model": name,
        "weights": mark,
        "variant": variant,
        "data": data_mark(data),
        "content": content_of(data),
        "limit": limit,
        "regression": regression,
        "seed": seed,
        "asked": plain(chosen),
        "frame": asdict(frame),
        "regimen": plain(asdict(regimen)),
        "labels": labels,
        "homogeneity": None if alike is None else asdict(alike),
        "counts": {**lines.counts, **left},
        **report,
        "command": command,
    }
    with writing(folder):
        written(placed(made, "cpu"), wrapped, words, regimen, folder)
        with saved(folder / REPORT) as half:
            half.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for leftover in (CHECKPOINT, BEST):
        (folder / leftover).unlink(missing_ok=True)
    return report


def scale_of(lines: Lines) -> tuple[float, float]:
    """Mean and deviation of the numbers that a regression is to tell."""
    told = np.array([line.label for line in lines.parts["train"]], float)
    if not told.std() > 0:
        raise InputError(f"All training texts have the number {told[0]:g}: a regression needs different ones.")
    return float(told.mean()), float(told.std())


def taught(
    model: Rationalizer,
    lines: Lines,
    frame: Frame,
    regimen: Regimen,
    folder: Path,
    seed: int,
    name: str,
    pad: int,
) -> dict[str, Any]:
    """Train to the epoch with the best accuracy (of a regression: correlation) of the development part."""
    each = len(lines.parts["train"]) // regimen.batch
    settings = {**asdict(frame), **asdict(regimen), "data": lines.content(), "seed": seed, "model": name}
    warm = round(regimen.warm * each)
    key = "accuracy" if lines.labels else "correlation"
    best = Best(folder, settings, "score", regimen.patience)
    task = Task(frame, regimen, pad, warm, seed)
    order = np.random.default_rng([seed, 4]).permutation(len(lines.parts["train"]))  # files are often sorted by label
    sample = [lines.parts["train"][k] for k in order[:CALIBRATED]]
    most = commonest(lines)

    def drawn() -> None:
        calibrate(model, lambda: (batch for _, batch in sorted_batches(sample, pad, device=model.device)))

    def look() -> dict[str, Any]:
        with torch.autocast(model.device.type, torch.bfloat16, enabled=regimen.bfloat16):
            drawn()
            found: dict[str, Any] = measured(model, lines.parts["dev"], pad)
            every = measured(model, lines.parts["dev"], pad, "all")
        found[f"every token {key}"] = every[key]
        # in warm-up nothing is learned about what to select: such an epoch can't be the best
        found["score"] = found[key] if task.seen[0] > warm else None
        if said := troubles(found, most) if task.seen[0] > warm else []:
            found["trouble"] = "; ".join(said)
        return found

    heads = {id(p) for part in (model.head, model.classifier) for p in part.parameters()}
    moving = [p for p in model.parameters() if p.requires_grad]
    fresh = heads | ({id(p) for p in moving} if frame.encoder == "gru" else set())
    groups = [
        {"params": [p for p in moving if id(p) not in fresh], "peak": regimen.lr},
        {"params": [p for p in moving if id(p) in fresh], "peak": regimen.head_lr},
    ]
    groups = [group for group in groups if group["params"]]
    course = Course(
        out=folder,
        steps=regimen.epochs * each,
        settings=settings,
        seed=seed,
        clip=regimen.clip,
        decay=regimen.decay,
        every=each,
        bfloat16=regimen.bfloat16,
    )
    feed = Feed(lines.parts["train"], regimen.batch, seed)  # type: ignore[arg-type]
    done = fit(model, groups, feed, task.loss, course, best.looking(model, look), best.enough)
    best.restore(model)
    if regimen.bfloat16:  # whoever opens the model computes more precisely
        drawn()
    found: dict[str, Any] = {part: measured(model, rows, pad) for part, rows in lines.parts.items() if part != "train"}
    last = "test" if "test" in found else "dev"
    found["every token"] = measured(model, lines.parts[last], pad, "all")
    every = measured(model, lines.parts["dev"], pad, "all")
    found["troubles"] = troubles({**found["dev"], f"every token {key}": every[key]}, most)
    found["epochs run"] = len(done.history)
    found["history"] = done.history
    found["CPU minutes"] = round(done.seconds / 60, 2)
    return found


def adapted(model: Rationalizer, regimen: Regimen, seed: int, name: str) -> Any:
    """peft's wrapper of the model, which has adapters in its blocks now; beside them only the heads learn."""
    if model.frame.encoder == "gru":
        raise InputError("A GRU is trained as a whole: leave lora away.")
    wrapped = with_lora(model, regimen.lora, seed=seed, name=name)
    for part in (model.head, model.classifier):
        part.requires_grad_(True)
    model.head.offsets.requires_grad_(False)
    return wrapped


def written(model: Rationalizer, wrapped: Any, tokenizer: Any, regimen: Regimen, folder: Path) -> None:
    """All weights; or an adapter with the heads, and the name of the model that it belongs to."""
    if wrapped is None:
        with quiet():
            model.save_pretrained(folder)
    else:
        name = Path(model.config.base).name
        write_adapter(wrapped, folder, half=regimen.half, name=name, whole=("head", "classifier"))
        with saved(folder / "config.json") as half:
            half.write_text(model.config.to_json_string(), encoding="utf-8")
    with quiet():
        tokenizer.save_pretrained(folder)
