"""What a language model is trained on: texts as blocks of tokens, some of which are held out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from raison.core.errors import InputError
from raison.core.records import Example
from raison.core.registry import datasets
from raison.datasets.base import DEVELOPMENT
from raison.datasets.file_formats import format_of
from raison.datasets.open import open_dataset, parse_data_spec

if TYPE_CHECKING:
    from raison.models.protocol import InspectableModel

__all__ = [
    "TrainingMaterial",
    "TrainingRow",
    "check_vocabulary_of_language_model",
    "join_language_materials",
    "language_model_blocks",
    "language_model_examples",
    "split_held_out",
]

STRANGE = 0.05  # share of unknown pieces from which the vocabulary does not fit


@dataclass(frozen=True)
class TrainingRow:
    """One sequence to learn: its tokens, and for an encoder-decoder the source that it is a translation of."""

    target: tuple[int, ...]
    source: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.target) + len(self.source)


@dataclass(frozen=True)
class TrainingMaterial:
    """Rows to train on and rows that are held out."""

    train: list[TrainingRow]
    held: list[TrainingRow]
    lead: int = 0  # special tokens at the start of every block, which evaluation never removes
    counts: dict[str, int] = field(default_factory=dict)

    def content(self) -> str:
        """A hash of all tokens: another text is another run."""
        digest = hashlib.sha256()
        for part in (self.train, self.held):
            for row in part:
                tokens = np.array([len(row.source), *row.source, *row.target], dtype=np.int64)
                digest.update(tokens.tobytes())
            digest.update(b"|")
        return digest.hexdigest()[:16]


@dataclass(frozen=True)
class HeldOutSplit:
    """Rows to train on, rows that are held out, and how many of the former were left out since they stand there too."""

    train: list[TrainingRow]
    held: list[TrainingRow]
    left_out: int


def split_held_out(
    rows: Sequence[TrainingRow], share: float, key: Callable[[TrainingRow], tuple[int, ...]]
) -> HeldOutSplit:
    """Hold out the last share of the rows; what has the `key` of one of them is not trained on."""
    count = max(1, round(share * len(rows)))
    first_held = len(rows) - count
    before, held = rows[:first_held], rows[first_held:]
    held_keys = {key(row) for row in held}
    train = [row for row in before if key(row) not in held_keys]
    return HeldOutSplit(train, list(held), left_out=len(before) - len(train))


# -- texts ----------------------------------------------------------------------------------------------------


def language_model_examples(
    data: object, *, split: str | None, data_dir: str | Path | None, limit: int | None, prose: bool
) -> list[Example]:
    """The examples of a file, a data set or a list; plain text is read as a whole where `prose` is wanted."""
    if not isinstance(data, (str, Path)):
        if not isinstance(data, Iterable):
            raise InputError(
                f"A {type(data).__name__} is nothing to train on: give texts, pairs of texts or Examples."
            )
        examples = [language_model_example(item) for item in data]
        if not examples:
            raise InputError("The list of texts is empty: give at least one text.")
        return examples[:limit]

    name, params = parse_data_spec(str(data))
    if split is None and name in datasets:
        split = language_model_split(name)
    is_file = name not in datasets and Path(name).is_file()
    if (
        prose
        and is_file
        and "level" not in params
        and is_plain_training_text(Path(name), params.get("format", ""))
    ):
        return open_dataset(str(data), split, limit, data_dir, level="file").examples
    return open_dataset(str(data), split, limit, data_dir).examples


def language_model_split(name: str) -> str:
    """The part of a data set that is trained on where nobody names one."""
    splits = datasets[name].splits
    for split in ("train", *DEVELOPMENT):
        if split in splits:
            return split
    raise InputError(
        f"{name!r} has only {', '.join(splits)}: say with split= (--split) what to train on."
    )


def is_plain_training_text(path: Path, named_format: object) -> bool:
    """Whether a file is plain text by its ending, and nobody says that it is something else."""
    if named_format not in ("", "txt"):
        return False
    try:
        return format_of(path) == "txt"
    except InputError:
        return False


def language_model_example(item: object) -> Example:
    """A text, or a pair of a source and its translation, as an example."""
    if isinstance(item, Example):
        return item
    if isinstance(item, str):
        return Example(item)
    if isinstance(item, (tuple, list)) and len(item) == 2:
        return Example(str(item[0]), label=str(item[1]))
    raise InputError(
        f"A {type(item).__name__} is nothing to train on: give texts, pairs of texts or Examples."
    )


# -- blocks ---------------------------------------------------------------------------------------------------


def language_model_blocks(
    model: InspectableModel,
    examples: Iterable[Example],
    *,
    length: int,
    held: float,
    batch: int,
    most: int | None = None,
) -> TrainingMaterial:
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
    stream = language_model_tokens(model, examples, most)
    check_vocabulary_of_language_model(model, stream)

    room = length - len(lead)
    count = len(stream) // room
    rows = []
    for start in range(0, count * room, room):
        block = stream[start : start + room].tolist()
        rows.append(TrainingRow((*lead, *block)))
    split = split_held_out(rows, held, key=lambda row: row.target)
    counts = {
        "tokens read": len(stream),
        "blocks to train on": len(split.train),
        "blocks held out": len(split.held),
        "blocks left out, held out as well": split.left_out,
        "tokens left over": len(stream) - count * room,
    }
    if len(split.train) < batch:
        blocks_there = f"{len(split.train)} block{'s' * (len(split.train) != 1)}"
        raise InputError(
            f"The text gives {blocks_there} of {length} tokens to train on, less than a "
            f"batch of {batch}: give more text, a smaller batch or a smaller length."
        )
    return TrainingMaterial(split.train, split.held, len(lead), counts)


def language_model_tokens(
    model: InspectableModel, examples: Iterable[Example], most: int | None
) -> np.ndarray:
    """All texts as one sequence of tokens, each with an end of line; at most so many, so that no more are cut."""
    pieces = [np.zeros(0, np.int64)]
    count = 0
    for example in examples:
        text = example.text
        if not text.endswith("\n"):
            text += "\n"
        ids = model.codec(text, special=False).ids
        pieces.append(ids)
        count += len(ids)
        if most is not None and count >= most:
            break
    return np.concatenate(pieces)[:most]


def join_language_materials(parts: Sequence[TrainingMaterial]) -> TrainingMaterial:
    """Blocks of several texts as one material; each has held out its own share, and they take turns there."""
    first = parts[0]
    if len(parts) == 1:
        return first
    train: list[TrainingRow] = []
    for part in parts:
        train += part.train
    held: list[TrainingRow] = []
    for turn in zip_longest(*(part.held for part in parts)):
        held += [row for row in turn if row is not None]
    counts = dict.fromkeys(first.counts, 0)
    for part in parts:
        for name in counts:
            counts[name] += part.counts[name]
    return TrainingMaterial(train, held, first.lead, counts)


# -- checks ---------------------------------------------------------------------------------------------------


def check_vocabulary_of_language_model(model: InspectableModel, ids: np.ndarray) -> None:
    """Refuse tokens that the model does not have, or a text that the tokenizer can't spell."""
    if not len(ids):
        raise InputError("The tokenizer makes no tokens of this text: give some words.")
    vocabulary = model.hf.config.get_text_config().vocab_size
    if ids.max() >= vocabulary:
        raise InputError(
            f"The tokenizer makes token {ids.max()}, but {model.name} has a vocabulary of {vocabulary}: load the "
            "tokenizer that belongs to the model."
        )
    tokenizer = model.codec.own
    unknown = tokenizer.unk_token_id
    if unknown is None or unknown in (tokenizer.eos_token_id, tokenizer.bos_token_id):
        return
    share = float((ids == unknown).mean())
    if share > STRANGE:
        more = ""
        if model.task == "seq2seq":
            more = ", or train on its own translations with own_targets=True (--own-targets)"
        raise InputError(
            f"{share:.0%} of the text is unknown to the tokenizer of {model.name}: give text in the language that it "
            f"writes{more}."
        )
