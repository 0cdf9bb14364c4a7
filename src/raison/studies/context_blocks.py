"""Blocks of text of one length (contexts), read and encoded, on which a language model is measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Encoding, Example
from raison.datasets.open import open_dataset
from raison.models.protocol import Model, TargetSpec

__all__ = ["encode_blocks", "read_block_texts"]

LETTERS = 6  # for a token, and more than any tokenizer of a language with letters needs


def read_block_texts(
    model: Model,
    data: str,
    *,
    split: str | None,
    limit: int,
    folder: Path | str | None,
    length: int,
) -> list[Example]:
    """Texts of a data set or file; for a language model short ones that follow each other are joined, as lines are."""
    loaded = open_dataset(data, split=split, data=folder, skip_broken=True)
    if model.task == "seq2seq":
        return list(loaded.examples[:limit])
    texts = join_texts_of_context_blocks(loaded.examples, characters=LETTERS * length, limit=limit)
    if not texts:
        raise InputError(
            f"{data} is shorter than {length} tokens: give more text, or a smaller --length."
        )
    return texts


def join_texts_of_context_blocks(
    examples: Iterable[Example], *, characters: int, limit: int
) -> list[Example]:
    """At most `limit` texts of more than so many characters, each made of texts that follow each other."""
    joined: list[Example] = []
    lines: list[str] = []
    for example in examples:
        lines.append(example.text)
        if sum(len(line) for line in lines) > characters:
            joined.append(Example("\n".join(lines)))
            lines = []
        if len(joined) == limit:
            break
    return joined


def encode_blocks(model: Model, texts: Sequence[Example], length: int) -> list[Encoding]:
    """Texts of at least `length` tokens, cut there; or sources with their translations (the gold label) behind them."""
    blocks = []
    for example in texts:
        if model.task == "seq2seq":
            blocks.append(encode_with_translation(model, example))
            continue
        (whole,) = model.encode([example], truncate=True)
        if len(whole) >= length:
            # a text that is too long for the model is cut in front
            begin = int(whole.start[whole.start >= 0].min())
            end = int(whole.end[length - 1])
            block = whole.texts[0][begin:end]
            blocks += model.encode([Example(block)], truncate=True)
    if not blocks:
        raise InputError(f"No text has {length} tokens: give longer texts, or a smaller --length.")
    return blocks


def encode_with_translation(model: Model, example: Example) -> Encoding:
    """A source with its translation behind it."""
    if example.label is None:
        raise InputError(
            f"{model.name} translates: give texts with their translations, such as a parallel set."
        )
    (source,) = model.encode([Example(example.text)])
    translation = TargetSpec(target=str(example.label))
    encoding, _ = model.resolve_targets(source, translation)[0]
    return encoding
