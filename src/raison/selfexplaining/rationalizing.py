"""Train a rationalizer: labels only; what it selects is watched while it trains, and the asked share is reached."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from raison import progress
from raison.errors import InputError, Unsupported
from raison.models.catalog.quiet import quiet
from raison.selfexplaining.calibration import calibrate
from raison.selfexplaining.encoders import opened_encoder
from raison.selfexplaining.frame import NAMED, Frame
from raison.selfexplaining.homogeneity import Homogeneity, homogeneity, split_of
from raison.selfexplaining.objectives import Weights, total
from raison.selfexplaining.rationalizer import Rationalizer, RationalizerConfig
from raison.selfexplaining.recurrent import Recurrent
from raison.selfexplaining.stages import blocks_of, stretch
from raison.spec import between, one_of, whole
from raison.training.adapting import with_lora, write_adapter
from raison.training.classes import f1_of
from raison.training.early import BEST, Best
from raison.training.fit import CHECKPOINT, Course, fit, prepared, saved, writing
from raison.training.labelled import Line, Lines, examples_by_part, labels_of, lines_of
from raison.training.material import Feed, named
from raison.training.repeated import REPORT, repeated
from raison.training.seeds import generator

__all__ = ["Regimen", "measured", "train_rationalizer", "troubles"]

CALIBRATED = 1000  # training texts that the line between keeping and dropping is drawn on
SIZE = 7  # words of the text that an encoder is tried on
LOOKED = 300  # texts that homogeneity is measured on
FAILED = 0.2  # share of empty or full rationales from which training is said to fail


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


def tensors(lines: Sequence[Line], pad: int) -> dict[str, torch.Tensor]:
    """The model's arguments for a batch."""
    width = max(map(len, lines))
    fill = lambda rows, value: torch.tensor([[*row, *[value] * (width - len(row))] for row in rows])  # noqa: E731
    made = {"input_ids": fill([line.ids for line in lines], pad)}
    made["attention_mask"] = fill([[1] * len(line) for line in lines], 0)
    if lines[0].types:
        made["token_type_ids"] = fill([line.types for line in lines], 0)
    return made


def marks(lines: Sequence[Line]) -> tuple[torch.Tensor, torch.Tensor]:
    """[b t] what people marked, [b] texts where they did."""
    width = max(map(len, lines))
    rows = [[*(line.gold or [False] * len(line)), *[False] * (width - len(line))] for line in lines]
    return torch.tensor(rows), torch.tensor([bool(line.gold) for line in lines])


def sorted_batches(lines: Sequence[Line], pad: int, size: int = 64) -> Iterator[tuple[list[Line], dict[str, Any]]]:
    order = sorted(range(len(lines)), key=lambda k: len(lines[k]))
    for start in range(0, len(order), size):
        chosen = [lines[k] for k in order[start : start + size]]
        yield chosen, tensors(chosen, pad)


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
        inputs = tensors(lines, self.pad)
        labels = torch.tensor([line.label for line in lines])
        warming, self.seen[0] = part < self.warm, part + 1
        if warming:  # of each text a random share, so that the predictor can read parts before it gets the model's
            random = generator(self.seed, part, 21)
            least = min(self.frame.sparsity)
            share = least + (1 - least) * torch.rand(len(lines), 1, generator=random)
            inputs["rationale"] = torch.rand(inputs["input_ids"].shape, generator=random) < share
        told = model(**inputs)
        gold, known = marks(lines)
        return total(told, labels, self.frame, self.regimen.weights, selecting=not warming, gold=gold, known=known)


@torch.inference_mode()
def measured(model: Rationalizer, lines: Sequence[Line], pad: int, rationale: str = "own") -> dict[str, float]:
    """What it says and selects when it has to decide; `rationale` all: the predictor reads every token."""
    model.eval()
    said, gold, empty, full, right = [], [], [], [], []
    kept = first = words = 0.0
    both = chosen = marked = 0.0
    for rows, inputs in sorted_batches(lines, pad):
        given = {"rationale": torch.ones_like(inputs["input_ids"])} if rationale == "all" else {}
        told = model(**inputs, **given, full=True)
        own = told.rationale.bool()
        said.append(told.logits.double())
        gold.append(torch.tensor([line.label for line in rows], dtype=torch.float64))
        if told.full_logits is not None:
            right.append(told.full_logits.double())
        count, total_words = own.sum(1), told.real.sum(1)
        empty.append((told.empty | (count == 0)).double())
        full.append(((count == total_words) & (total_words > 1)).double())
        kept, words = kept + float(count.sum()), words + float(total_words.sum())
        first += float(told.masks[0].sum())
        truth, known = marks(rows)
        inside = told.real & known[:, None]
        both += float((own & truth & inside).sum())
        chosen, marked = chosen + float((own & inside).sum()), marked + float((truth & inside).sum())
    answers, labels = torch.cat(said), torch.cat(gold)
    found = quality(answers, labels)
    if right:
        found |= {f"full text {key}": value for key, value in quality(torch.cat(right), labels).items()}
    found |= {"sparsity": kept / max(words, 1), "sparsity of the first": first / max(words, 1)}
    found |= {"empty": float(torch.cat(empty).mean()), "full": float(torch.cat(full).mean())}
    if marked:
        precision, recall = both / max(chosen, 1), both / marked
        found |= {"precision": precision, "recall": recall, "rationale f1": 2 * both / max(chosen + marked, 1)}
    return found


def quality(answers: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Accuracy and F1 of classes; error and correlation of a regression."""
    if answers.shape[-1] == 1:
        values = answers[:, 0]
        moved = values.std() > 0 and labels.std() > 0
        known = float(torch.corrcoef(torch.stack([values, labels]))[0, 1]) if len(labels) > 1 and moved else 0.0
        return {"error": float((values - labels).square().mean()), "correlation": known}
    said = answers.argmax(-1).numpy()
    gold = labels.long().numpy()
    return {"accuracy": float((said == gold).mean()), "f1": f1_of(said, gold, answers.shape[-1])}


def troubles(found: dict[str, float], most: float) -> list[str]:
    """What goes wrong, in sentences; `most` is the accuracy of always saying the commonest label."""
    said = []
    if found["empty"] > FAILED:
        said.append(f"{found['empty']:.0%} of the rationales are empty")
    if found["full"] > FAILED:
        said.append(f"{found['full']:.0%} of the rationales are the whole text")
    best = max(found.get("full text accuracy", 0.0), found.get("every token accuracy", 0.0))
    if "accuracy" in found and found["accuracy"] < most + 0.02:
        said.append("the predictor says no more than the commonest label")
    elif "accuracy" in found and best - found["accuracy"] > 0.15:
        said.append(
            f"generator and predictor are stuck (interlocking): {found['accuracy']:.2f} from rationales, {best:.2f} "
            "from all tokens"
        )
    if "correlation" in found and found["correlation"] < 0.05:
        said.append(f"what is told has nothing to do with the labels (correlation {found['correlation']:.2f})")
    return said


def train_rationalizer(
    model: Any,
    data: Any,
    *,
    out: str | Path,
    frame: dict[str, Any] | None = None,
    variant: str = "plmr",
    regimen: Regimen | None = None,
    tokenizer: Any = None,
    seed: int = 0,
    runs: int = 1,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    skip_broken: bool = False,
    regression: bool = False,
    command: str = "",
) -> dict[str, Any]:
    """Train a classifier that selects its rationale and predicts from that alone, and write it to the folder `out`.

    `model` is an encoder of BERT's kind: a name, a folder, or one in memory with its tokenizer; a fine-tuned classifier
    gives its encoder. `frame` holds settings of selfexplaining.frame.Frame beside those of the `variant`; where it does
    not say how many `blocks` generate, the homogeneity of token states decides. Human rationales in the data are not
    looked at unless the regimen gives them a weight. Returns what training.json (or runs.json) holds.
    """
    one_of("variant", variant, tuple(NAMED))
    chosen = {**NAMED[variant], **(frame or {})}
    Frame.of(defaulted({**chosen, "blocks": chosen.get("blocks") or 1000}))  # what is wrong is said at once
    taught = regimen or Regimen()
    one = partial(
        trained, model, tokenizer, data, chosen, variant, taught, data_dir=data_dir, limit=limit,
        skip_broken=skip_broken, regression=regression, command=command,
    )  # fmt: skip

    def same(report: dict[str, Any]) -> bool:
        now: dict[str, Any] = {
            "data": data_mark(data),
            "variant": variant,
            "asked": plain(chosen),
            "regimen": plain(asdict(taught)),
        }
        now |= {"limit": limit, "regression": regression, "model": called(model)}
        return all(report[key] == value for key, value in now.items())

    return repeated(one, Path(out), runs, seed, same)


def called(model: Any) -> str:
    """As `opened_encoder` calls it."""
    if isinstance(model, (str, os.PathLike)):
        path = Path(model).expanduser()
        return path.name if path.is_dir() else str(model)
    return getattr(model.config, "_name_or_path", "") or type(model).__name__


def data_mark(data: Any) -> str:
    """What the data is called; texts in memory are known by their content."""
    if isinstance(data, (str, Path)):
        return named(data)
    made = hashlib.sha256()
    for example in data:
        made.update(example.content().encode())
    return f"texts in memory, {made.hexdigest()[:16]}"


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
    command: str,
) -> dict[str, Any]:
    """One run: a folder with weights, config, tokenizer and training.json."""
    prepared(folder, REPORT)
    if regimen.lora and not isinstance(model, (str, os.PathLike)):
        raise InputError(
            "An adapter names its model, and one in memory has no name: save it first, or leave lora away."
        )
    encoder, words, name = opened_encoder(model, tokenizer)
    parts, left = examples_by_part(
        data, data_dir=data_dir, limit=limit, held=regimen.held, seed=seed, skip_broken=skip_broken
    )
    labels = () if regression else labels_of(parts)
    lines = lines_of(parts, words, labels, min(regimen.longest, room(encoder)))
    if len(lines.parts["train"]) < regimen.batch:
        raise InputError(
            f"There are {len(lines.parts['train'])} training texts, fewer than a batch of {regimen.batch}: give more "
            "texts, or a smaller batch."
        )
    pair = any(e.pair is not None for e in parts["train"])
    frame, alike = framed(encoder, words, chosen, lines, pair, name)
    base = name
    if regimen.lora and Path(model).expanduser().is_dir():  # so that both folders can be moved together
        base = os.path.relpath(Path(model).expanduser().resolve(), folder.resolve())
    made = assembled(encoder, words, frame, labels, seed, base=base if regimen.lora else "")
    made.config.longest = regimen.longest
    wrapped = adapted(made, regimen, seed, name) if regimen.lora else None
    report = taught(made, lines, frame, regimen, folder, seed, name, pad_of(words))
    report = {
        "what": "rationalizer",
        "model": name,
        "variant": variant,
        "data": data_mark(data),
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
        written(made, wrapped, words, regimen, folder)
        with saved(folder / REPORT) as half:
            half.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for leftover in (CHECKPOINT, BEST):
        (folder / leftover).unlink(missing_ok=True)
    return report


def room(encoder: Any) -> int:
    """Tokens that an encoder reads at most; some count positions from behind the padding id."""
    limit = getattr(encoder.config, "max_position_embeddings", None) or 512
    shifted = getattr(encoder.config, "model_type", "") in ("roberta", "xlm-roberta", "camembert")
    return int(limit) - (2 if shifted else 0)


def added_by(tokenizer: Any) -> list[int]:
    """Tokens that are no words, but put around them; an unknown or masked word is a word."""
    names = ("cls_token_id", "sep_token_id", "pad_token_id", "bos_token_id", "eos_token_id")
    return sorted({found for name in names if (found := getattr(tokenizer, name, None)) is not None})


def pad_of(tokenizer: Any) -> int:
    return int(tokenizer.pad_token_id) if tokenizer.pad_token_id is not None else 0


def framed(
    encoder: Any, tokenizer: Any, chosen: dict[str, Any], lines: Lines, pair: bool, name: str
) -> tuple[Frame, Homogeneity | None]:
    """The frame with everything decided: where to split, and how many shares there are."""
    settings = dict(chosen)
    given = settings.get("sparsity", Frame().sparsity)
    shares = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    if pair and len(shares) == 1:
        shares = (*shares, *shares)
    if not pair and len(shares) == 2:
        raise InputError("Two sparsities are for pairs, and these are single texts: give one.")
    settings["sparsity"] = shares
    if settings.get("encoder") == "gru":
        return Frame.of(settings), None
    depth = len(blocks_of(encoder, name)[1])
    alike = None
    if settings.get("blocks") is None:
        order = np.random.default_rng(4).permutation(len(lines.parts["train"]))
        sample = [lines.parts["train"][k] for k in order[:LOOKED]]
        special = torch.tensor(added_by(tokenizer))
        batches = []
        for _, batch in sorted_batches(sample, pad_of(tokenizer)):
            real = batch["attention_mask"].bool() & ~torch.isin(batch["input_ids"], special)
            takes = {"input_ids", "attention_mask"}
            batches.append({**{k: v for k, v in batch.items() if k in takes}, "real": real})
        alike = homogeneity(encoder.eval(), batches)
        settings["blocks"] = split_of(alike, rest=settings.get("predictor", "rest") == "rest")
        progress.report(0, 1, f"the first {settings['blocks']} of {depth} blocks select, by the spread of token states")
    elif settings["blocks"] == 0:
        settings["blocks"] = depth
    frame = Frame.of(defaulted(settings))
    frame.fits(depth, name)
    return frame, alike


def defaulted(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with what follows from the number of blocks."""
    if settings.get("encoder") == "gru" or not isinstance(settings["blocks"], int):
        return settings
    made = {"pruning": min(Frame().pruning, max(1, settings["blocks"] - 1)), **settings}
    if made["pruning"] == made["blocks"]:  # no state stands before the pruning blocks
        made.setdefault("full_text", "predictor")
    return made


def assembled(
    encoder: Any, tokenizer: Any, frame: Frame, labels: Sequence[str], seed: int, base: str = ""
) -> Rationalizer:
    """A rationalizer around an encoder; its heads are a function of the seed."""
    if tokenizer.cls_token_id is None and frame.encoder != "gru":
        raise Unsupported("The tokenizer puts no token in front of a text, so nothing would be left to read.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if frame.encoder == "gru":
            table = encoder.get_input_embeddings().weight.detach()
            stored = {
                "model_type": Recurrent.TYPE,
                "vocab_size": table.shape[0],
                "embedding_size": table.shape[1],
                "hidden_size": frame.width,
                "pad_token_id": pad_of(tokenizer),
            }
            inner: Any = Recurrent(stored)
            with torch.no_grad():
                inner.words.weight.copy_(table)
        else:
            inner = encoder
        names = dict(enumerate(labels)) if labels else {0: "value"}
        config = RationalizerConfig(
            asdict(frame),
            inner.config.to_dict(),
            special=added_by(tokenizer),
            separator=tokenizer.sep_token_id,
            base=base,
            typed="token_type_ids" in getattr(tokenizer, "model_input_names", ()),
            id2label=names,
            label2id={label: number for number, label in names.items()},
            problem_type="single_label_classification" if labels else "regression",
        )
        made = Rationalizer(config, inner)
        if frame.encoder == "gru" and made.reader is not None:
            for part in towers(made)[1:]:
                part.gru.reset_parameters()
    made = made.float()  # heads and blocks are of one kind, whatever the checkpoint was stored in
    if frame.encoder != "gru":
        check_hiding(made, tokenizer)
    made.requires_grad_(True)
    made.head.offsets.requires_grad_(False)
    for part in towers(made):  # P1: embeddings stay as they are
        part.get_input_embeddings().weight.requires_grad_(False)
        for path, parameter in part.named_parameters():
            if path.startswith("embeddings."):
                parameter.requires_grad_(False)
    return made


@torch.no_grad()
def check_hiding(model: Rationalizer, tokenizer: Any) -> None:
    """Refuse an encoder in which hidden tokens would be read: it is tried, not believed.

    With the rationale fixed, other words in all other places must not move the answer, in evaluation and in training
    (dropout apart); and a token must see those behind it, as an encoder's do.
    """
    name = type(model.encoder).__name__
    size = getattr(model.encoder.config, "vocab_size", None) or len(tokenizer)
    marks = set(model.config.special)
    ordinary = [k for k in range(size) if k not in marks][: 2 * SIZE]
    if len(ordinary) < 2:
        return
    ends = [tokenizer.cls_token_id], [i for i in (tokenizer.sep_token_id,) if i is not None]
    one, other = ([ordinary[(k * step) % len(ordinary)] for k in range(SIZE)] for step in (1, 3))
    kept = torch.tensor([[0, *[int(k % 3 == 1) for k in range(SIZE)], *[0 for _ in ends[1]]]])
    mixed = [a if k % 3 == 1 else b for k, (a, b) in enumerate(zip(one, other, strict=True))]
    first, second = (torch.tensor([[*ends[0], *words, *ends[1]]]) for words in (one, mixed))
    model.eval()
    for training in (False, True):
        model.training = training  # of the frame alone: dropout stays off inside
        one_answer, other_answer = (model(ids, rationale=kept).logits for ids in (first, second))
        model.training = False
        if not torch.allclose(one_answer, other_answer, rtol=1e-4, atol=1e-5):
            raise Unsupported(
                f"Tokens can't be hidden from {name} (its attention can't be reached, or it reads neighbours in other "
                "ways), so a rationale would not be all that it reads: use an encoder such as BERT, RoBERTa, "
                "DistilBERT, ELECTRA or ModernBERT."
            )
    states = [stretch(model.encoder, 0, 1, {"input_ids": ids}).left[0][0, 1] for ids in (first, second)]
    changed = first.clone()
    changed[0, -2] = other[-1] if other[-1] != one[-1] else ordinary[-1]
    after = stretch(model.encoder, 0, 1, {"input_ids": changed}).left[0][0, 1]
    if torch.equal(states[0], after):
        raise Unsupported(f"{name} reads from left to right only, so it is no encoder: use one such as minilm.")


def towers(model: Rationalizer) -> list[Any]:
    """The encoders of a model: one, or one more for each predictor that has its own."""
    return [part for part in (model.encoder, model.reader, model.soft_reader) if part is not None]


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

    def look() -> dict[str, Any]:
        calibrate(model, lambda: (batch for _, batch in sorted_batches(sample, pad)))
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
    found: dict[str, Any] = {part: measured(model, rows, pad) for part, rows in lines.parts.items() if part != "train"}
    last = "test" if "test" in found else "dev"
    found["every token"] = measured(model, lines.parts[last], pad, "all")
    every = measured(model, lines.parts["dev"], pad, "all")
    found["troubles"] = troubles({**found["dev"], f"every token {key}": every[key]}, most)
    found["epochs run"] = len(done.history)
    found["history"] = done.history
    found["CPU minutes"] = round(done.seconds / 60, 2)
    return found


def commonest(lines: Lines) -> float:
    if not lines.labels:
        return 0.0
    counts = np.bincount([int(line.label) for line in lines.parts["dev"]])
    return float(counts.max() / counts.sum())


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
