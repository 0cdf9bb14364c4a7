"""Train an attention classifier: labels only, early stopping, one seed or several.

loss = −log p(label) + δ · tying + η · mlm        (regularizers.py)
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from raison import progress
from raison.datasets.base import DEVELOPMENT
from raison.datasets.opening import open_dataset, parted
from raison.errors import InputError
from raison.models.catalog.quiet import quiet
from raison.registry import datasets
from raison.selfexplaining.classifier import AttentionClassifier, AttentionConfig
from raison.selfexplaining.design import Design
from raison.selfexplaining.regularizers import mlm_loss, tying_loss
from raison.selfexplaining.vocabulary import (
    SPECIAL,
    glove_vectors,
    pretrained_vectors,
    random_vectors,
    words_tokenizer,
)
from raison.spec import between, whole
from raison.training.fit import CHECKPOINT, Course, fit, prepared, saved, writing
from raison.training.material import Feed, named
from raison.training.seeds import generator
from raison.types import Example

__all__ = ["Lesson", "Line", "Lines", "lines_of", "measured", "train_classifier"]

REPORT = "training.json"
BEST = "best.pt"
RUNS = "runs.json"


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
            raise InputError("mlm tells words by the frozen embeddings, so they can't be trained: leave freeze away.")


@dataclass(frozen=True)
class Line:
    """One text to learn: its tokens and the number of its label."""

    ids: tuple[int, ...]
    label: int

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Lines:
    """The texts of each part, and what was cut."""

    parts: dict[str, list[Line]]
    labels: tuple[str, ...]
    counts: dict[str, int]

    def content(self) -> str:
        import hashlib

        made = hashlib.sha256()
        for name, lines in self.parts.items():
            made.update(name.encode())
            for line in lines:
                made.update(np.array([line.label, *line.ids], np.int64).tobytes() + b"|")
        return made.hexdigest()[:16]


def examples_by_part(
    data: Any, *, data_dir: Any, limit: int | None, held: float, seed: int
) -> tuple[dict[str, list[Example]], dict[str, int]]:
    """train, dev and (where there is one) test examples, and what was left out; without a dev part some is held out."""
    left: dict[str, int] = {}
    if not isinstance(data, (str, Path)):
        parts = {"train": list(data)[:limit]}
    else:
        name, _ = parted(str(data))
        splits = datasets[name].splits if name in datasets else ()
        read = lambda split: open_dataset(str(data), split, limit, data_dir).examples  # noqa: E731
        if splits and "train" not in splits:
            raise InputError(f"{name!r} has no part to train on, only {', '.join(splits)}: name another data set.")
        parts = {"train": read("train" if splits else None)}
        for wanted, known in (("dev", DEVELOPMENT), ("test", ("test",))):
            if found := next((split for split in known if split in splits), None):
                parts[wanted] = read(found)
    if not parts["train"]:
        raise InputError("There are no texts to train on: the data is empty.")
    if "dev" not in parts:
        order = np.random.default_rng([seed, len(parts["train"])]).permutation(len(parts["train"]))
        out = {int(k) for k in order[: max(1, round(held * len(order)))]}
        parts["dev"] = [e for k, e in enumerate(parts["train"]) if k in out]
        parts["train"] = [e for k, e in enumerate(parts["train"]) if k not in out]
    beside = {(e.text, e.pair) for part in ("dev", "test") for e in parts.get(part, [])}
    every = len(parts["train"])
    parts["train"] = [e for e in parts["train"] if (e.text, e.pair) not in beside]
    left["train, left out: in dev or test as well"] = every - len(parts["train"])
    if not parts["train"]:
        raise InputError("All texts to train on stand in its development or test part as well: give other texts.")
    return parts, left


def labels_of(parts: dict[str, list[Example]]) -> tuple[str, ...]:
    """The labels of the training part, sorted; every other part must have no others."""
    if missing := sum(e.label is None for part in parts.values() for e in part):
        raise InputError(
            f"{missing} texts have no label: name their column, such as data.csv(text=review, label=stars)."
        )
    counts = Counter(str(e.label) for e in parts["train"])
    if len(counts) < 2:
        only = next(iter(counts), "nothing")
        raise InputError(f"All training texts have the label {only!r}: a classifier needs at least two classes.")
    for name, part in parts.items():
        if strange := sorted({str(e.label) for e in part} - set(counts)):
            raise InputError(f"The {name} part has the label {strange[0]!r}, which no training text has.")
    return tuple(sorted(counts))


def lines_of(parts: dict[str, list[Example]], tokenizer: Any, labels: Sequence[str], longest: int) -> Lines:
    """Token numbers of all texts."""
    numbers = {label: number for number, label in enumerate(labels)}
    made: dict[str, list[Line]] = {}
    counts: dict[str, int] = {}
    for name, part in parts.items():
        made[name] = []
        for example in part:
            texts = (example.text,) if example.pair is None else (example.text, example.pair)
            ids = tokenizer(*texts)["input_ids"]
            if len(ids) > longest:
                counts[f"{name}, cut"] = counts.get(f"{name}, cut", 0) + 1
                ids = [*ids[: longest - 1], ids[-1]]
            made[name].append(Line(tuple(ids), numbers[str(example.label)]))
        counts[name] = len(part)
    return Lines(made, tuple(labels), counts)


def padded(lines: Sequence[Line]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """[b t] ids, [b t] what is there, [b] labels."""
    width = max(map(len, lines))
    ids = torch.full((len(lines), width), SPECIAL.index("[PAD]"))
    for row, line in enumerate(lines):
        ids[row, : len(line)] = torch.tensor(line.ids)
    there = torch.arange(width) < torch.tensor([len(line) for line in lines])[:, None]
    return ids, there, torch.tensor([line.label for line in lines])


@dataclass(frozen=True)
class Task:
    """The loss of a batch."""

    lesson: Lesson
    seed: int

    def loss(self, model: torch.nn.Module, lines: Sequence[Line], part: int) -> torch.Tensor:
        ids, there, labels = padded(lines)
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
        ids, there, labels = padded([lines[k] for k in order[start : start + batch]])
        logits = model(ids, attention_mask=there).logits
        losses.append(functional.cross_entropy(logits, labels, reduction="none"))
        said.append(logits.argmax(-1))
        gold.append(labels)
    told, true = torch.cat(said).numpy(), torch.cat(gold).numpy()
    return {
        "loss": float(torch.cat(losses).mean()),
        "accuracy": float((told == true).mean()),
        "f1": f1_of(told, true, logits.shape[-1]),
    }


def f1_of(said: np.ndarray, gold: np.ndarray, classes: int) -> float:
    """F1 of class 1 where there are two classes, else the mean over classes; 0 where nothing was found."""
    wanted = [1] if classes <= 2 else range(classes)
    found = []
    for each in wanted:
        both = float(((said == each) & (gold == each)).sum())
        total = float((said == each).sum() + (gold == each).sum())
        found.append(2 * both / total if total else 0.0)
    return float(np.mean(found))


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
    from raison.models.load import from_folder_or_hub

    if lesson.embeddings in catalog.entries():
        hf, pieces = catalog.entries()[lesson.embeddings].open()
    elif place.is_dir():
        hf, pieces = from_folder_or_hub(str(place), None, None, None, False, False)
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
    command: str = "",
) -> dict[str, Any]:
    """Train an attention classifier on a labelled data set, and write it to the folder `out`.

    `data` is a data set with a train part, a file, or a list of labelled Examples. The width of the design follows from
    the word vectors where they are read. With several `runs` there is a folder run-0, run-1, … for each seed, and
    runs.json tells mean and deviation. The same call goes on where a run was stopped. Returns what training.json (or
    runs.json) holds.
    """
    taught = lesson if isinstance(lesson, Lesson) else checked(Lesson, lesson or {})
    made = design if isinstance(design, Design) else checked(Design, provisional(design or {}, taught))
    whole("runs", runs, 1)
    whole("seed", seed, 0)
    folder = Path(out)
    one = partial(
        trained, data, made, taught, data_dir=data_dir, limit=limit, command=command, wide=design_width(design)
    )
    if runs == 1:
        return one(folder, seed)
    reports = []
    for number in range(runs):
        place = folder / f"run-{number}"
        progress.report(number, runs, f"run {number + 1} of {runs}")
        reports.append(finished(place, data, taught, seed + number) or one(place, seed + number))
    told = {"what": "classifier", "runs": runs, "seeds": [r["seed"] for r in reports]}
    for part in ("dev", "test"):
        if part in reports[0]:
            told[part] = {
                key: {
                    "mean": float(np.mean([r[part][key] for r in reports])),
                    "deviation": float(np.std([r[part][key] for r in reports], ddof=1)),
                }
                for key in reports[0][part]
            }
    with saved(folder / RUNS) as half:
        half.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return told


def finished(place: Path, data: Any, lesson: Lesson, seed: int) -> dict[str, Any] | None:
    """The report of a run that is done, if there is one; it must be of the same experiment."""
    if not (place / REPORT).exists():
        return None
    try:
        told: dict[str, Any] = json.loads((place / REPORT).read_text(encoding="utf-8"))
        same = told["seed"] == seed and told["data"] == named(data)
        same = same and all(told[key] == getattr(lesson, key) for key in ("tying", "mlm", "lr", "batch", "epochs"))
    except (ValueError, KeyError, TypeError):
        same = False
    if not same:
        raise InputError(f"{str(place)!r} holds a run of another experiment: delete it, or choose another out (--out).")
    return told


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


def checked(kind: Any, given: dict[str, Any]) -> Any:
    known = [item.name for item in fields(kind)]
    if strange := [name for name in given if name not in known]:
        raise InputError(f"There is no setting {strange[0]!r}: use {', '.join(known)}.")
    return kind(**given)


def trained(
    data: Any,
    design: Design,
    lesson: Lesson,
    folder: Path,
    seed: int,
    *,
    data_dir: Any,
    limit: int | None,
    command: str,
    wide: int | None,
) -> dict[str, Any]:
    """One run: a folder with weights, config, vocabulary and training.json."""
    prepared(folder, REPORT)
    parts, left = examples_by_part(data, data_dir=data_dir, limit=limit, held=lesson.held, seed=seed)
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
    model = fresh(design, tokenizer, labels, vectors, seed)
    frozen = lesson.freeze if lesson.freeze is not None else lesson.embeddings != "random" or bool(lesson.mlm)
    model.words.weight.requires_grad_(not frozen)
    report = taught(model, lines, design, lesson, folder, seed)
    report = {
        "what": "classifier",
        "data": named(data),
        "seed": seed,
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
            model.save_pretrained(folder)
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


def best_of(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """The best epoch so far, of a run with these settings."""
    try:
        found: dict[str, Any] = torch.load(path, weights_only=True)
        same = found["settings"] == settings
    except Exception:  # torch has no one error for a file that it can't read
        same = False
    if not same:
        raise InputError(
            f"{path} is damaged or of a run with other settings: delete it and {CHECKPOINT} beside it to start anew."
        )
    return found


def taught(
    model: AttentionClassifier, lines: Lines, design: Design, lesson: Lesson, folder: Path, seed: int
) -> dict[str, Any]:
    """Train to the epoch with the best F1 of the development part; its weights are the model's in the end."""
    each = len(lines.parts["train"]) // lesson.batch
    settings = {**asdict(design), **asdict(lesson), "data": lines.content(), "seed": seed}
    best = folder / BEST
    seen = {"f1": -1.0}
    if not (folder / CHECKPOINT).exists():
        best.unlink(missing_ok=True)  # of a run that was killed early: this one begins anew
    if best.exists():
        seen["f1"] = best_of(best, settings)["f1"]

    def look() -> dict[str, float]:
        found = measured(model, lines.parts["dev"])
        if found["f1"] > seen["f1"]:
            seen["f1"] = found["f1"]
            with saved(best) as half:
                torch.save({"f1": found["f1"], "weights": model.state_dict(), "settings": settings}, half)
        return found

    def enough(history: list[dict[str, Any]]) -> bool:
        values = [one["f1"] for one in history]
        return len(values) - 1 - int(np.argmax(values)) >= lesson.patience if values else False

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
    done = fit(model, groups, feed, Task(lesson, seed).loss, course, look, enough)
    model.load_state_dict(best_of(best, settings)["weights"])
    model.eval()
    found: dict[str, Any] = {part: measured(model, rows) for part, rows in lines.parts.items() if part != "train"}
    found["epochs run"] = len(done.history)
    found["history"] = done.history
    found["CPU minutes"] = round(done.seconds / 60, 2)
    return found
