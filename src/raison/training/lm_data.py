"""What a model is trained on: blocks of text, or sources with their targets; some of it held out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from raison.core import limits, progress
from raison.core.errors import InputError, TooLong
from raison.core.records import Example
from raison.core.registry import datasets
from raison.datasets.base import DEVELOPMENT
from raison.datasets.file_formats import format_of
from raison.datasets.open import open_dataset, parse_data_spec
from raison.models.runner.generate import LONGEST
from raison.training.fit import OWN, saved
from raison.training.seeds import generator

__all__ = ["Feed", "Material", "Row", "blocks", "examples_of", "joined", "named", "several", "translations"]

POOL = 50  # batches whose rows are sorted by length together: little padding, and new neighbours in every epoch
STRANGE = 0.05  # share of unknown pieces from which the vocabulary does not fit


@dataclass(frozen=True)
class Row:
    """One sequence to learn: its tokens, and for an encoder-decoder the source that it is a translation of."""

    target: tuple[int, ...]
    source: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.target) + len(self.source)


@dataclass(frozen=True)
class Material:
    """Rows to train on and rows that are held out."""

    train: list[Row]
    held: list[Row]
    lead: int = 0  # special tokens at the start of every block, which evaluation never removes
    counts: dict[str, int] = field(default_factory=dict)

    def content(self) -> str:
        """A hash of all tokens: another text is another run."""
        made = hashlib.sha256()
        for part in (self.train, self.held):
            for row in part:
                made.update(np.array([len(row.source), *row.source, *row.target], dtype=np.int64).tobytes())
            made.update(b"|")
        return made.hexdigest()[:16]


@dataclass
class Feed:
    """The rows of each batch, a function of the seed and the batch's number only."""

    rows: Sequence[Row]
    size: int  # rows in a batch
    seed: int
    epoch: int = -1
    order: list[list[int]] = field(default_factory=list)

    def __call__(self, part: int) -> list[Row]:
        epoch, place = divmod(part, len(self.rows) // self.size)  # what does not fill a batch waits an epoch
        if epoch != self.epoch:
            self.epoch, self.order = epoch, self.groups(epoch)
        return [self.rows[i] for i in self.order[place]]

    def groups(self, epoch: int) -> list[list[int]]:
        """Batches of like length, in random composition and order."""
        random = generator(self.seed, epoch)
        order = torch.randperm(len(self.rows), generator=random).tolist()
        pools = [order[i : i + POOL * self.size] for i in range(0, len(order), POOL * self.size)]
        order = [i for pool in pools for i in sorted(pool, key=lambda i: len(self.rows[i]))]
        count = len(order) // self.size
        places = torch.randperm(count, generator=random).tolist()
        return [order[k * self.size : (k + 1) * self.size] for k in places]


def named(data: Any) -> str:
    """What to call the data in a report: no folder of anybody's machine."""
    if not isinstance(data, (str, Path)):
        return "texts in memory"
    return "+".join(called(part) for part in several(data))


def called(data: Any) -> str:
    name, params = parse_data_spec(str(data))
    inside = ", ".join(f"{key}={value}" for key, value in params.items())
    return Path(name).name + (f"({inside})" if inside else "")


def several(data: Any) -> list[Any]:
    """The data sets or files of `one+another`; a list of texts, or a file that is called so, is one."""
    if not isinstance(data, str) or Path(data).exists():
        return [data]
    parts, depth = [""], 0
    for char in data:
        depth += (char == "(") - (char == ")")
        if char == "+" and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    if not all(part.strip() for part in parts):
        raise InputError(f"{data!r} names nothing on one side of a +: write it like  wikitext2+imdb.")
    return [part.strip() for part in parts]


def examples_of(data: Any, *, split: str | None, data_dir: Any, limit: int | None, prose: bool) -> list[Example]:
    """The examples of a file, a data set or a list; plain text is read as a whole where `prose` is wanted."""
    if not isinstance(data, (str, Path)):
        found = [one(item) for item in data]
        if not found:
            raise InputError("The list of texts is empty: give at least one text.")
        return found[:limit]
    name, params = parse_data_spec(str(data))
    if split is None and name in datasets:
        has = datasets[name].splits
        known = [part for part in ("train", *DEVELOPMENT) if part in has]
        if not known:
            raise InputError(f"{name!r} has only {', '.join(has)}: say with split= (--split) what to train on.")
        split = known[0]
    more: dict[str, Any] = {}
    if prose and name not in datasets and Path(name).is_file() and "level" not in params:
        more = {"level": "file"} if params.get("format", "") in ("", "txt") and told(Path(name)) == "txt" else {}
    return open_dataset(str(data), split, limit, data_dir, **more).examples


def told(path: Path) -> str:
    try:
        return format_of(path)
    except InputError:
        return ""


def one(item: Any) -> Example:
    if isinstance(item, Example):
        return item
    if isinstance(item, str):
        return Example(item)
    if isinstance(item, (tuple, list)) and len(item) == 2:
        return Example(str(item[0]), label=str(item[1]))
    raise InputError(f"A {type(item).__name__} is nothing to train on: give texts, pairs of texts or Examples.")


def blocks(
    model: Any, examples: Iterable[Example], *, length: int, held: float, batch: int, most: int | None = None
) -> Material:
    """The text as blocks of `length` tokens, each led by the special tokens that the tokenizer puts before a text.

    Of a longer text its first `most` tokens. The last share is held out; a training block that stands there too is
    left out.
    """
    if model.max_tokens is not None and length > model.max_tokens:
        raise InputError(
            f"{model.name} reads at most {model.max_tokens} tokens: give a length up to that, not {length}."
        )
    pieces = model.codec("text")
    lead = [int(i) for i in pieces.ids[: int(np.argmin(pieces.special))]]
    room = length - len(lead)
    texts = (example.text if example.text.endswith("\n") else f"{example.text}\n" for example in examples)
    read, pieces_of = 0, []
    for text in texts:
        pieces_of.append(model.codec(text, special=False).ids)
        read += len(pieces_of[-1])
        if most is not None and read >= most:
            break
    stream = np.concatenate([np.zeros(0, np.int64), *pieces_of])[:most]
    fits(model, stream)
    count = len(stream) // room
    rows = [Row((*lead, *stream[k * room : (k + 1) * room].tolist())) for k in range(count)]
    kept = max(1, round(held * count))
    test = rows[count - kept :]
    beside = {row.target for row in test}
    train = [row for row in rows[: count - kept] if row.target not in beside]
    counts = {
        "tokens read": len(stream),
        "blocks to train on": len(train),
        "blocks held out": len(test),
        "blocks left out, held out as well": count - kept - len(train),
        "tokens left over": len(stream) - count * room,
    }
    if len(train) < batch:
        raise InputError(
            f"The text gives {len(train)} block{'s' * (len(train) != 1)} of {length} tokens to train on, less than a "
            f"batch of {batch}: give more text, a smaller batch or a smaller length."
        )
    return Material(train, test, len(lead), counts)


def joined(parts: Sequence[Material]) -> Material:
    """Blocks of several texts as one material; each has held out its own share, and they take turns there."""
    first = parts[0]
    if len(parts) == 1:
        return first
    turns = max(len(part.held) for part in parts)
    held = [part.held[k] for k in range(turns) for part in parts if k < len(part.held)]
    counts = {name: sum(part.counts[name] for part in parts) for name in first.counts}
    return Material([row for part in parts for row in part.train], held, first.lead, counts)


def translations(
    model: Any, examples: Sequence[Example], *, length: int, held: float, batch: int, own: bool, out: Path
) -> Material:
    """Sources with their targets (given, or what the model itself writes), each of at most `length` tokens.

    The last share is held out; pairs whose source stands there too are left out.
    """
    sources, asked = [], []
    cut = 0
    for example in examples:
        try:
            encoding = model.encode([Example(example.text, id=example.id)])[0]
        except TooLong:
            cut += 1
            continue
        if (encoding.segment == 0).sum() > length:
            cut += 1
            continue
        sources.append(encoding)
        asked.append(example)
    targets = written(model, sources, out) if own else given(model, sources, asked)
    rows = []
    for encoding, target in zip(sources, targets, strict=True):
        if len(target) > length:
            cut += 1
            continue
        rows.append(Row(tuple(target), tuple(int(i) for i in encoding.ids[encoding.segment == 0])))
    kept = max(1, round(held * len(rows)))
    test = rows[len(rows) - kept :]
    beside = {row.source for row in test}
    train = [row for row in rows[: len(rows) - kept] if row.source not in beside]
    counts = {
        "pairs read": len(examples),
        "pairs to train on": len(train),
        "pairs held out": len(test),
        "pairs left out, longer than length": cut,
        "pairs left out, source held out as well": len(rows) - kept - len(train),
    }
    if len(train) < batch:
        raise InputError(
            f"The data gives {len(train)} pair{'s' * (len(train) != 1)} to train on, less than a batch of {batch}: "
            "give more, or a smaller batch."
        )
    return Material(train, test, 0, counts)


def end_of(model: Any) -> int:
    """The token that ends what the model writes."""
    for source in (model.hf.generation_config, model.hf.config):
        found = getattr(source, "eos_token_id", None)
        if found is not None:
            return int(found[0] if isinstance(found, (list, tuple)) else found)
    raise InputError(f"{model.name} does not say which token ends a text: set eos_token_id in its config.")


def given(model: Any, sources: Sequence[Any], examples: Sequence[Example]) -> list[list[int]]:
    """Tokens of the targets that the examples bring along."""
    copied(model)
    found = []
    for encoding, example in zip(sources, examples, strict=True):
        text = next(
            (t for t in (example.target, example.label, example.pair) if isinstance(t, str) and t.strip()), None
        )
        if text is None:
            raise InputError(
                f"The source {example.text[:40]!r} has no translation: give pairs (a column label=), or train on the "
                "model's own translations with own_targets=True (--own-targets)."
            )
        found.append([*model.pieces_of(encoding, 0, text), end_of(model)])
    if found:
        fits(model, np.concatenate([np.array(ids) for ids in found]))
    return found


def copied(model: Any) -> None:
    """Refuse a tokenizer whose pieces of the target language are a copy of the source's."""
    files = [Path(str(path)) for path in getattr(model.tokenizer, "spm_files", ()) or ()]
    if len(files) == 2 and all(path.is_file() for path in files):
        first, second = (path.read_bytes() for path in files)
        if first == second:
            raise InputError(
                f"The tokenizer of {model.name} has no target side of its own, so translations would become other "
                "tokens than the model writes: train on its own translations with own_targets=True (--own-targets)."
            )


def fits(model: Any, ids: np.ndarray) -> None:
    """Refuse tokens that the model does not have, or a text that the tokenizer can't spell."""
    if not len(ids):
        raise InputError("The tokenizer makes no tokens of this text: give some words.")
    vocabulary = model.hf.config.get_text_config().vocab_size
    if ids.max() >= vocabulary:
        raise InputError(
            f"The tokenizer makes token {ids.max()}, but {model.name} has a vocabulary of {vocabulary}: load the "
            "tokenizer that belongs to the model."
        )
    unknown = model.codec.own.unk_token_id
    if unknown is None or unknown in (model.codec.own.eos_token_id, model.codec.own.bos_token_id):
        return
    share = float((ids == unknown).mean())
    if share > STRANGE:
        more = ", or train on its own translations with own_targets=True (--own-targets)"
        raise InputError(
            f"{share:.0%} of the text is unknown to the tokenizer of {model.name}: give text in the language that it "
            f"writes{more if model.task == 'seq2seq' else ''}."
        )


def written(model: Any, sources: Sequence[Any], out: Path) -> list[list[int]]:
    """What the model itself writes for each source; kept beside the checkpoint, since it takes long."""
    mark = hashlib.sha256(json.dumps([encoding.ids.tolist() for encoding in sources]).encode()).hexdigest()
    path = out / OWN
    if path.is_file():
        try:
            found = limits.from_json(path.read_text(encoding="utf-8"))
        except ValueError:  # half a file: what it held is written anew
            found = {}
        if isinstance(found, dict) and (found.get("model"), found.get("sources")) == (model.name, mark):
            ready: list[list[int]] = found["targets"]
            return ready
    end, longest = end_of(model), model.hf.generation_config.max_new_tokens or LONGEST
    targets = []
    for number, encoding in enumerate(sources, 1):
        ids = model.write(encoding, longest)
        targets.append(ids if len(ids) >= longest else [*ids, end])  # one that was cut off has no end
        progress.report(number, len(sources), "own translations")
    with saved(path) as half:
        half.write_text(json.dumps({"model": model.name, "sources": mark, "targets": targets}), encoding="utf-8")
    return targets
