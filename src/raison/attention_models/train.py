"""Train an attention classifier: labels only, early stopping, one seed or several.

loss = −log p(label) + δ · tying + η · mlm        (regularizers.py)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from raison.attention_models.config import Design
from raison.attention_models.module import AttentionClassifier, AttentionConfig
from raison.attention_models.regularizers import mlm_loss, tying_loss
from raison.attention_models.vocabulary import (
    SPECIAL,
    glove_vectors,
    pretrained_vectors,
    random_vectors,
    words_tokenizer,
)
from raison.core.errors import InputError
from raison.core.from_settings import filled
from raison.core.spec import between, whole
from raison.models.catalog.quiet import quiet
from raison.models.load import placed
from raison.training.class_data import (
    Line,
    Lines,
    content_of,
    data_mark,
    examples_by_part,
    labels_of,
    lines_of,
    padded,
)
from raison.training.early_stopping import BEST, Best
from raison.training.f1 import f1_of
from raison.training.feed import Feed
from raison.training.fit import CHECKPOINT, Course, fit, prepared, saved, writing
from raison.training.multi_seed import REPORT, repeated
from raison.training.seeds import generator

__all__ = ["Lesson", "fresh", "measured", "train_classifier"]


@dataclass(frozen=True)
class Lesson:
    """How a classifier is trained; defaults are P3's, where it says so."""

    embeddings: str = "random"  # random, a file (or folder) of GloVe vectors, or a pretrained encoder such as minilm
    freeze: bool | None = None  # embeddings stay as they are; None: where they were read, and with mlm
    tying: float = 0.0  # δ
    mlm: float = 0.0  # η
    share: float = 0.15  # of the tokens that mlm asks about
    lr: float = 1e-3
    attention_lr: float = 1.0  # of the attention's parameters, as a factor
    decay: float = 1e-5
    clip: float = 5.0
    batch: int = 32
    epochs: int = 20  # at most
    patience: int = 4  # epochs without a better F1 of the development part
    least: int = 1  # how often a word stands in the training texts to have a vector
    held: float = 0.1  # share of the training part that is held out where there is no development part
    longest: int | None = None  # tokens of a text at most; longer ones are cut

    def __post_init__(self) -> None:
        for name in ("batch", "epochs", "patience", "least"):
            whole(name, getattr(self, name), 1)
        for name in ("tying", "mlm", "decay", "clip"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} is a number from 0 up, not {getattr(self, name)}.")
        for name in ("lr", "attention_lr"):
            between(name, getattr(self, name), 0)
        between("share", self.share, 0, 1)
        between("held", self.held, 0, 0.9)
        if self.mlm and self.freeze is False:
            raise InputError(
                "mlm tells words by the frozen embeddings, so they can't be trained: leave freeze away (--tune)."
            )


@dataclass(frozen=True)
class Task:
    """The loss of a batch."""

    lesson: Lesson
    seed: int

    def loss(self, model: torch.nn.Module, lines: Sequence[Line], part: int) -> torch.Tensor:
        ids, there, labels = padded(lines, device=model.device)  # type: ignore[arg-type]
        told = model(ids, attention_mask=there)
        value = functional.cross_entropy(told.logits, labels)
        if self.lesson.tying:
            value = value + self.lesson.tying * tying_loss(told)
        if self.lesson.mlm:
            random = generator(self.seed, part, 15)
            value = value + self.lesson.mlm * mlm_loss(model, ids, there, self.lesson.share, random)  # type: ignore[arg-type]
        return value


@torch.inference_mode()
def measured(model: torch.nn.Module, lines: Sequence[Line], batch: int = 256) -> dict[str, float]:
    """Loss, accuracy and F1 (of the second class where there are two, else the mean over classes)."""
    order = sorted(range(len(lines)), key=lambda k: len(lines[k]))
    said, gold, losses = [], [], []
    for start in range(0, len(order), batch):
        some = [lines[k] for k in order[start : start + batch]]
        ids, there, labels = padded(some, device=model.device)  # type: ignore[arg-type]
        logits = model(ids, attention_mask=there).logits
        losses.append(functional.cross_entropy(logits, labels, reduction="none"))
        said.append(logits.argmax(-1))
        gold.append(labels)
    told, true = torch.cat(said).cpu().numpy(), torch.cat(gold).cpu().numpy()
    return {
        "loss": float(torch.cat(losses).mean()),
        "accuracy": float((told == true).mean()),
        "f1": f1_of(told, true, logits.shape[-1]),
    }


def vectors_of(lesson: Lesson, design: Design, tokenizer: Any, seed: int) -> tuple[torch.Tensor, dict[str, Any]]:
    """Word vectors, and where they come from."""
    random = generator(seed, 7)
    if lesson.embeddings == "random":
        return random_vectors(len(tokenizer), design.width, random), {"embeddings": "random"}
    place = Path(lesson.embeddings).expanduser()
    if place.is_file() or (place / "words.txt").is_file():
        made, known = glove_vectors(place, tokenizer, random)
        return made, {"embeddings": place.name, "words with a vector": known}
    from raison.models import catalog
    from raison.models.load_options import LoadOptions
    from raison.models.pretrained import from_folder_or_hub

    if lesson.embeddings in catalog.entries():
        hf, pieces = catalog.entries()[lesson.embeddings].open()
    elif place.is_dir():
        found = from_folder_or_hub(str(place), LoadOptions()).complete()
        hf, pieces = found.model, found.tokenizer
    else:
        raise InputError(
            f"{lesson.embeddings!r} is no file of word vectors and no model here: write random, a GloVe file, or a "
            "model such as minilm."
        )
    return pretrained_vectors(hf, pieces, tokenizer), {"embeddings": place.name}


def train_classifier(
    data: Any,
    *,
    out: str | Path,
    design: Design | dict[str, Any] | None = None,
    lesson: Lesson | dict[str, Any] | None = None,
    seed: int = 0,
    runs: int = 1,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    skip_broken: bool = False,
    device: str | None = None,
    command: str = "",
) -> dict[str, Any]:
    """Train an attention classifier on a labelled data set, and write it to the folder `out`.

    `data` is a data set with a train part, a file, or a list of labelled Examples. The width of the design follows from
    the word vectors where they are read. With several `runs` there is a folder run-0, run-1, … for each seed, and
    runs.json tells mean and deviation. The same call goes on where a run was stopped, on any `device`. Returns what
    training.json (or runs.json) holds.
    """
    data = data if isinstance(data, (str, Path)) else list(data)
    taught = lesson if isinstance(lesson, Lesson) else filled(Lesson, lesson or {}, "A training")
    made = design if isinstance(design, Design) else Design.of(provisional(design or {}, taught))
    placed(torch.empty(0), device)  # one that is not there is told at once
    one = partial(
        trained, data, made, taught, data_dir=data_dir, limit=limit, skip_broken=skip_broken, device=device,
        command=command, wide=design_width(design),
    )  # fmt: skip

    def same(report: dict[str, Any]) -> bool:
        return bool(report["data"] == data_mark(data) and report["asked"] == asked(data, made, taught, limit))

    return repeated(one, Path(out), runs, seed, same)


def asked(data: Any, design: Design, lesson: Lesson, limit: int | None) -> dict[str, Any]:
    """What makes an experiment what it is, beside its seed."""
    told = {"design": asdict(design), "lesson": asdict(lesson), "limit": limit, "content": content_of(data)}
    found: dict[str, Any] = json.loads(json.dumps(told))
    return found


def design_width(design: Any) -> int | None:
    """The width that was asked for, if one was."""
    if isinstance(design, Design):
        return design.width
    return (design or {}).get("width")


def provisional(design: dict[str, Any], lesson: Lesson) -> dict[str, Any]:
    """A width that fits, where the vectors will tell it later."""
    heads = design.get("heads", 1)
    unknown = "width" not in design and lesson.embeddings != "random"
    return {**design, "width": 2 * heads} if unknown and isinstance(heads, int) and heads > 0 else design


def trained(
    data: Any,
    design: Design,
    lesson: Lesson,
    folder: Path,
    seed: int,
    *,
    data_dir: Any,
    limit: int | None,
    skip_broken: bool,
    device: str | None,
    command: str,
    wide: int | None,
) -> dict[str, Any]:
    """One run: a folder with weights, config, vocabulary and training.json."""
    prepared(folder, REPORT)
    wanted = asked(data, design, lesson, limit)
    parts, left = examples_by_part(
        data, data_dir=data_dir, limit=limit, held=lesson.held, seed=seed, skip_broken=skip_broken
    )
    labels = labels_of(parts)
    texts = [text for e in parts["train"] for text in (e.text, e.pair) if text is not None]
    tokenizer = words_tokenizer(texts, least=lesson.least)
    vectors, origin = vectors_of(lesson, design, tokenizer, seed)
    if wide is not None and vectors.shape[1] != wide:
        raise InputError(
            f"{lesson.embeddings} has vectors of {vectors.shape[1]} numbers, and the model wants {wide}: leave the "
            f"width away, or set it to {vectors.shape[1]}."
        )
    design = replace(design, width=vectors.shape[1])
    if lesson.longest is not None:
        design = replace(design, longest=lesson.longest)
    lines = lines_of(parts, tokenizer, labels, design.longest)
    if len(lines.parts["train"]) < lesson.batch:
        raise InputError(
            f"There are {len(lines.parts['train'])} training texts, fewer than a batch of {lesson.batch}: give more "
            "texts, or a smaller batch."
        )
    model = placed(fresh(design, tokenizer, labels, vectors, seed), device)
    frozen = lesson.freeze if lesson.freeze is not None else lesson.embeddings != "random" or bool(lesson.mlm)
    model.words.weight.requires_grad_(not frozen)
    report = taught(model, lines, design, lesson, folder, seed)
    report = {
        "what": "classifier",
        "data": data_mark(data),
        "seed": seed,
        "asked": wanted,
        "design": asdict(design),
        **asdict(lesson),
        **origin,
        "freeze": frozen,
        "labels": labels,
        "counts": {
            **lines.counts,
            **left,
            "words": len(tokenizer),
            "parameters": sum(p.numel() for p in model.parameters()),
        },
        **report,
        "command": command,
    }
    with writing(folder):
        with quiet():
            placed(model, "cpu").save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        with saved(folder / REPORT) as half:
            half.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for name in (CHECKPOINT, BEST):
        (folder / name).unlink(missing_ok=True)
    return report


def fresh(
    design: Design, tokenizer: Any, labels: Sequence[str], vectors: torch.Tensor, seed: int
) -> AttentionClassifier:
    """A model with random weights that are a function of the seed."""
    config = AttentionConfig(
        asdict(design),
        len(tokenizer),
        special=[SPECIAL.index(name) for name in ("[PAD]", "[CLS]", "[SEP]")],
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        pad_token_id=SPECIAL.index("[PAD]"),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AttentionClassifier(config)
    with torch.no_grad():
        model.words.weight.copy_(vectors)
    return model


def taught(
    model: AttentionClassifier, lines: Lines, design: Design, lesson: Lesson, folder: Path, seed: int
) -> dict[str, Any]:
    """Train to the epoch with the best F1 of the development part; its weights are the model's in the end."""
    each = len(lines.parts["train"]) // lesson.batch
    settings = {**asdict(design), **asdict(lesson), "data": lines.content(), "seed": seed}
    best = Best(folder, settings, "f1", lesson.patience)
    look = best.looking(model, lambda: measured(model, lines.parts["dev"]))

    scorer = {id(p) for p in model.scorer.parameters()}
    moving = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in moving if id(p) not in scorer], "peak": lesson.lr},
        {"params": [p for p in moving if id(p) in scorer], "peak": lesson.lr * lesson.attention_lr},
    ]
    course = Course(
        out=folder,
        steps=lesson.epochs * each,
        settings=settings,
        seed=seed,
        schedule="constant",
        warm=0.0,
        clip=lesson.clip,
        decay=lesson.decay,
        every=each,
    )
    feed = Feed(lines.parts["train"], lesson.batch, seed)  # type: ignore[arg-type]
    done = fit(model, groups, feed, Task(lesson, seed).loss, course, look, best.enough)
    best.restore(model)
    found: dict[str, Any] = {part: measured(model, rows) for part, rows in lines.parts.items() if part != "train"}
    found["epochs run"] = len(done.history)
    found["history"] = done.history
    found["CPU minutes"] = round(done.seconds / 60, 2)
    return found
