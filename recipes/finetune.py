"""Fine-tune all-MiniLM-L6-v2 to classify IMDB reviews, Yelp sentences or pairs of QQP questions.

    python recipes/finetune.py --task {imdb,yelp,qqp} --data DATA_DIR --out FOLDER

Writes a plain BertForSequenceClassification with its tokenizer, and training.json with what was measured. The same
command goes on where a run was stopped or killed. Same seed, same machine, same library versions: same weights, stopped
or not. The weights are those of the last step: dev chooses nothing, test is evaluated once.

What to know about the sets: the base's authors trained it on Quora's duplicate questions too, so QQP is not new to it.
Yelp's published train part is not at hand: its dev part is trained on.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from transformers import AutoTokenizer, BertForSequenceClassification

from raison.core import progress
from raison.core.errors import InputError, RaisonError
from raison.models.catalog import minilm
from raison.training.fit import TrainingStopped, fit, progress_log_lines
from raison.training.fit_settings import FitSettings
from raison.training.training_folder import CHECKPOINT, prepare_training_folder, write_training_file

MAX_TOKENS = 128
REPORT = "training.json"
Batch = dict[str, torch.Tensor]
Rows = dict[str, list[int]]  # what a tokenizer makes of one text, and the labels


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---- data


class Text(NamedTuple):
    """A text or a pair of texts, with its label."""

    first: str
    second: str | None
    label: int


@dataclass(frozen=True)
class Task:
    """Where a set lies, what its labels are called, and what a run needs unless told otherwise."""

    labels: tuple[str, str]
    read: Callable[[Path, str], list[Text]]
    parts: tuple[str, str]  # what is trained on and what is tested on, as the publisher calls them
    dev: int  # texts of the first part that are held out
    epochs: float
    limit: int | None = None  # texts to train on; None: all


def normal(text: str) -> str:
    """The form in which two texts count as the same: lower case, letters and digits only."""
    return re.sub(r"[\W_]", "", text.lower())


def keys(text: Text) -> tuple[str, ...]:
    """The normal forms of a text or of both texts of a pair, in an order that does not depend on who comes first."""
    return tuple(sorted(normal(part) for part in (text.first, text.second) if part is not None))


@contextmanager
def reading(place: Path) -> Iterator[Path]:
    """A data file; whatever is wrong with it is told in one sentence."""
    if not place.is_file():
        raise InputError(f"There is no file {place}: give the folder of the data sets as --data.")
    try:
        yield place
    except (
        OSError,
        EOFError,
        zlib.error,
        tarfile.TarError,
        UnicodeDecodeError,
        json.JSONDecodeError,
    ) as error:
        raise InputError(
            f"{place} can't be read ({error}): put the published file there."
        ) from error


def read_imdb(data: Path, part: str) -> list[Text]:
    found = []
    with reading(data / "imdb" / "aclImdb_subset10000.tar.gz") as place, tarfile.open(place) as tar:
        for member in tar:
            match = re.fullmatch(rf"aclImdb/{part}/(neg|pos)/[^/]+\.txt", member.name)
            inside = tar.extractfile(member) if match else None
            if match and inside:
                text = re.sub(r"(\s*<br\s*/?>\s*)+", " ", inside.read().decode("utf-8"))
                found.append((member.name, Text(text.strip(), None, int(match[1] == "pos"))))
    return [text for _, text in sorted(found)]


def read_yelp(data: Path, part: str) -> list[Text]:
    found = []
    for label in (0, 1):
        place = data / "yelp_sentences" / f"sentiment.{part}.{label}.gz"
        with reading(place), gzip.open(place, "rt", encoding="utf-8") as lines:
            found += [Text(line.strip(), None, label) for line in lines if line.strip()]
    return found


def read_qqp(data: Path, part: str) -> list[Text]:
    # The publisher's file has a few broken bytes.
    place = data / "qqp" / f"{part}.tsv.gz"
    with (
        reading(place),
        gzip.open(place, "rt", encoding="utf-8", errors="replace", newline="\n") as lines,
    ):
        rows = [line.rstrip("\n").split("\t") for line in lines]
    wrong = next(
        (i for i, row in enumerate(rows, 1) if len(row) != 4 or row[0] not in ("0", "1")), None
    )
    if wrong is not None:
        raise InputError(
            f"Line {wrong} of {place} is not label, question, question, id: use the published file."
        )
    return [Text(first, second, int(label)) for label, first, second, _ in rows]


SIDES = ("negative", "positive")
TASKS = {
    "imdb": Task(SIDES, read_imdb, ("train", "test"), dev=500, epochs=4),
    "yelp": Task(SIDES, read_yelp, ("dev", "test"), dev=1000, epochs=3, limit=10_000),
    "qqp": Task(("not_duplicate", "duplicate"), read_qqp, ("dev", "test"), dev=500, epochs=5),
}


def divide(
    task: Task, pool: list[Text], test: list[Text], args: argparse.Namespace
) -> tuple[dict[str, list[Text]], dict[str, int]]:
    """Train, dev and test parts that share no text, the test part cut to --test; and how many were left out, and why.

    Whatever stands in the whole test file is left out of the two other parts, also if --test does not draw it. A pair
    is left out if only one of its questions stands there: pairs with a common question are often decided alike.
    """
    tested = {keys(text) for text in test}
    questions = {key for both in tested for key in both}
    shared = [text for text in pool if keys(text) in tested]
    halves = [
        text for text in pool if keys(text) not in tested and not questions.isdisjoint(keys(text))
    ]
    gone = {keys(text) for text in shared + halves}
    fresh: dict[tuple[str, ...], Text] = {}
    for text in pool:
        if keys(text) not in gone and all(keys(text)):
            fresh.setdefault(keys(text), text)
    order = shuffled(list(fresh.values()), args.seed)
    dev, train = order[: task.dev], order[task.dev :]
    if test and test[0].second is not None:
        held = {key for text in dev for key in keys(text)}
        train, before = [text for text in train if held.isdisjoint(keys(text))], len(train)
    else:
        before = len(train)
    once = {keys(text): text for text in reversed(test) if all(keys(text))}
    counts = {
        "read for training": len(pool),
        "read for testing": len(test),
        "left out, in test": len(shared),
        "left out, one question in test": len(halves),
        "left out, repeated or empty": len(pool) - len(shared) - len(halves) - len(fresh),
        "left out, one question in dev": before - len(train),
    }
    limit = args.limit or task.limit
    parts = {
        "train": train[:limit],
        "dev": dev,
        "test": shuffled(list(once.values()), args.seed)[: args.test],
    }
    empty = [name for name, texts in parts.items() if not texts]
    if empty:
        raise InputError(
            f"No text is left for the {empty[0]} part of {len(pool)} texts: use the published files."
        )
    return parts, counts


def shuffled(rows: list, seed: int) -> list:
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed)).tolist()
    return [rows[i] for i in order]


def encode(tokenizer, texts: Sequence[Text], epoch: int = 0) -> list[Rows]:
    """Texts cut to MAX_TOKENS. In odd epochs long texts keep their end instead, where reviews often say their verdict,
    and pairs change their order: another look at the same labels."""
    swap = epoch % 2 == 1
    tokenizer.truncation_side = "left" if swap else "right"
    sides = [[t.first for t in texts]]
    if texts[0].second is not None:
        sides.append([t.second or "" for t in texts])
    found = tokenizer(*(sides[::-1] if swap else sides), truncation=True, max_length=MAX_TOKENS)
    tokenizer.truncation_side = "right"
    return [
        {**{name: found[name][i] for name in tokenizer.model_input_names}, "labels": [text.label]}
        for i, text in enumerate(texts)
    ]


# ---- batches


def collate(rows: Sequence[Rows]) -> Batch:
    """Lists padded with zeros, which is [PAD], masked and the first segment; single numbers as a vector."""
    width = max(len(row["input_ids"]) for row in rows)
    made = {}
    for name in rows[0]:
        if len(rows[0][name]) == 1:
            made[name] = torch.tensor([row[name][0] for row in rows])
        else:
            made[name] = torch.tensor([row[name] + [0] * (width - len(row[name])) for row in rows])
    return made


def by_length(rows: Sequence[Rows], size: int) -> list[list[int]]:
    """Which rows go together, for evaluation: the shortest first, little padding."""
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]["input_ids"]))
    return [order[i : i + size] for i in range(0, len(order), size)]


@dataclass
class Feed:
    """The batch of each step, a function of the seed and the step only: a run that goes on needs no other memory."""

    rows: Callable[[int], list[Rows]]  # the rows of an epoch
    count: int  # rows in an epoch
    size: int  # rows in a batch
    seed: int
    held: tuple[int, list[list[Rows]]] = (-1, [])

    @property
    def per_epoch(self) -> int:
        return -(-self.count // self.size)

    def __call__(self, step: int) -> Batch:
        epoch, place = divmod(step, self.per_epoch)
        if self.held[0] != epoch:
            self.held = epoch, list(self.groups(self.rows(epoch), epoch))
        return collate(self.held[1][place])

    def groups(self, rows: list[Rows], epoch: int) -> Iterator[list[Rows]]:
        """Batches of like length, in random composition and order."""
        generator = torch.Generator().manual_seed(self.seed * 10_007 + epoch)
        order = torch.randperm(len(rows), generator=generator).tolist()
        # Sorting within pools of fifty batches keeps the padding small and the batches different every epoch.
        pools = [order[i : i + 50 * self.size] for i in range(0, len(order), 50 * self.size)]
        order = [i for pool in pools for i in sorted(pool, key=lambda i: len(rows[i]["input_ids"]))]
        starts = torch.randperm(self.per_epoch, generator=generator).mul(self.size).tolist()
        for start in starts:
            yield [rows[i] for i in order[start : start + self.size]]


# ---- training


def groups(model: Any, args: argparse.Namespace) -> list[dict[str, Any]]:
    """The trained parameters with their rates. The word table stays as it is: half of the weights, of which a small set
    would move only the words that it has, and a test text has others."""
    model.bert.embeddings.word_embeddings.requires_grad_(False)
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    new = [p for name, p in named if not name.startswith(("bert.embeddings", "bert.encoder"))]
    old = [p for name, p in named if name.startswith(("bert.embeddings", "bert.encoder"))]
    return [{"params": old, "peak": args.lr}, {"params": new, "peak": args.head_lr}]


def train(
    model: torch.nn.Module,
    feed: Callable[[int], Batch],
    args: argparse.Namespace,
    total: int,
    every: int,
    look: Callable[[], dict[str, float]],
) -> tuple[float, list[dict[str, float]]]:
    """Train in place, from the checkpoint if there is one; CPU seconds, and what `look` saw every so many steps."""
    fit_settings = FitSettings(
        out=args.out,
        steps=total,
        settings=settings(args) | {"number of steps": total},
        seed=args.seed,
        bfloat16=args.bfloat16,
        every=every,
    )
    with progress.listen(progress_log_lines()):
        done = fit(
            model,
            groups(model, args),
            feed,
            lambda model, batch, step: model(**batch).loss,
            fit_settings,
            look,
        )
    return done.seconds, done.history


@torch.inference_mode()
def evaluate(model: torch.nn.Module, rows: list[Rows], size: int = 32) -> list[bool]:
    """Which rows the model gets right, in float32."""
    model.eval()
    right = [False] * len(rows)
    for group in by_length(rows, size):
        batch = collate([rows[i] for i in group])
        gold = batch.pop("labels")
        for i, good in zip(group, (model(**batch).logits.argmax(-1) == gold).tolist(), strict=True):
            right[i] = good
    return right


def share(right: Sequence[bool]) -> float:
    return round(sum(right) / len(right), 4)


# ---- command


def make_parser(description: str) -> argparse.ArgumentParser:
    """What every training command takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder to write; the same command goes on there"
    )
    parser.add_argument(
        "--base", type=Path, help="folder of the encoder (all-MiniLM-L6-v2, which is fetched)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=positive, default=32)
    parser.add_argument("--lr", type=above_zero, default=1e-4, help="peak rate of the encoder")
    parser.add_argument("--head-lr", type=above_zero, default=1e-3, help="peak rate of what is new")
    parser.add_argument(
        "--bfloat16",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="train in bfloat16 where it is safe: a third less time on CPUs that have it, far more on others",
    )
    return parser


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def above_zero(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def prepare(args: argparse.Namespace) -> Path:
    """One thread, exact repetition, quiet libraries, a folder to write to; the folder of the encoder."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(args.seed)
    # The report of the head missing from the base is no news here, and would drown the progress lines.
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if not args.data.is_dir():
        raise InputError(
            f"There is no folder {args.data}: give the folder of the data sets as --data."
        )
    prepare_training_folder(args.out, REPORT)
    return args.base or minilm.minilm_folder()


def started(base: Path, kind: Any, **config: Any) -> tuple[Any, Any]:
    """The encoder with a new head, and its tokenizer. Attention is trained without dropout, whose random numbers would
    take a tenth of the time."""
    try:
        model = kind.from_pretrained(base, attention_probs_dropout_prob=0.0, **config)
        return model, AutoTokenizer.from_pretrained(base)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{base} has no encoder to start from ({str(error).splitlines()[0]})."
        ) from error


def settings(args: argparse.Namespace) -> dict[str, Any]:
    """What makes two runs the same."""
    return {
        name: value for name, value in vars(args).items() if name not in ("data", "out", "base")
    }


def command_line(script: str, parser: argparse.ArgumentParser, args: argparse.Namespace) -> str:
    """This run's command with generic paths."""
    words = [
        f"python recipes/{script}",
        "--data DATA_DIR --out FOLDER",
        *["--base BASE_DIR"][: args.base is not None],
    ]
    for name, value in settings(args).items():
        if value == parser.get_default(name) and name != "seed":
            continue
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words.append(f"--{flag} {value}")
    return " ".join(words)


def finish(out: Path, model, tokenizer, report: dict[str, Any]) -> None:
    """The model folder; the report comes last, as the sign that all is there."""
    model.save_pretrained(out)
    (out / "model.safetensors").chmod(0o644)  # safetensors writes for the owner only
    tokenizer.save_pretrained(out)
    report["versions"] = {m.__name__: m.__version__ for m in (torch, transformers)}
    text = json.dumps(report, indent=2) + "\n"
    with write_training_file(out / REPORT) as half:
        half.write_text(text, encoding="utf-8")
    (out / CHECKPOINT).unlink(missing_ok=True)
    print(text, end="")


def run(work: Callable[[], None]) -> int:
    """An exit code; whatever a user can mend is told in one sentence."""
    try:
        work()
    except RaisonError as error:
        say(str(error) if isinstance(error, TrainingStopped) else f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:  # before or after the training: the checkpoint, if any, is as it was
        say("Stopped: the same command goes on from the last checkpoint.")
        return 130
    return 0


def finetune(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    task = TASKS[args.task]
    base = prepare(args)
    pool, test = (task.read(args.data, part) for part in task.parts)
    parts, counts = divide(task, pool, test, args)
    labels = {
        "id2label": dict(enumerate(task.labels)),
        "label2id": {label: i for i, label in enumerate(task.labels)},
    }
    model, tokenizer = started(base, BertForSequenceClassification, num_labels=2, **labels)
    dev, tested = (encode(tokenizer, parts[name]) for name in ("dev", "test"))
    feed = Feed(
        lambda epoch: encode(tokenizer, parts["train"], epoch),
        len(parts["train"]),
        args.batch,
        args.seed,
    )
    total = max(1, round((args.epochs or task.epochs) * feed.per_epoch))
    sizes = {name: len(texts) for name, texts in parts.items()}
    say(f"{args.task}: {sizes}, {total} steps; {counts}")
    seconds, seen = train(
        model, feed, args, total, feed.per_epoch, lambda: {"accuracy": share(evaluate(model, dev))}
    )
    say("evaluating on test")
    cpu = time.process_time()
    right = evaluate(model, tested)
    # Texts that were not cut: those that explanations are made for.
    whole = [good for good, text in zip(right, parts["test"], strict=True) if fits(tokenizer, text)]
    report = {
        "task": args.task,
        "labels": list(task.labels),
        "base": "all-MiniLM-L6-v2" if args.base is None else base.name,
        "class": "BertForSequenceClassification",
        "max tokens": MAX_TOKENS,
        "dev accuracy": seen[-1]["accuracy"],
        "test accuracy": share(right),
        "test accuracy of texts that fit": share(whole) if whole else None,
        "texts": {**sizes, "test that fit": len(whole)},
        "overlap": counts,
        "trained on": task.parts[0],
        "seed": args.seed,
        "steps": total,
        "after each epoch": seen,
        "CPU minutes of training": round(seconds / 60, 1),
        "CPU minutes of testing": round((time.process_time() - cpu) / 60, 1),
        "command": command_line("finetune.py", parser, args),
    }
    finish(args.out, model, tokenizer, report)


def fits(tokenizer, text: Text) -> bool:
    return len(tokenizer(text.first, text.second)["input_ids"]) <= MAX_TOKENS


def main(words: Sequence[str] | None = None) -> int:
    parser = make_parser(
        "Fine-tune all-MiniLM-L6-v2 to classify IMDB reviews, Yelp sentences or QQP pairs."
    )
    parser.add_argument("--task", choices=list(TASKS), required=True)
    parser.add_argument(
        "--limit", type=positive, help="texts to train on (yelp: 10,000; others: all)"
    )
    parser.add_argument("--epochs", type=above_zero, help="(imdb 4, yelp 3, qqp 5)")
    parser.add_argument(
        "--test", type=positive, default=2000, help="texts to test on, drawn by the seed"
    )
    args = parser.parse_args(words)
    return run(lambda: finetune(parser, args))


if __name__ == "__main__":
    sys.exit(main())
