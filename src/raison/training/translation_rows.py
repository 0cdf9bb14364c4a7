"""Translation rows that an encoder-decoder is trained on, with targets given or written by the model itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from raison.core import limits, progress
from raison.core.errors import InputError, TooLong
from raison.core.records import Encoding, Example
from raison.models.runner.generate import LONGEST
from raison.training.language_model_rows import (
    TrainingMaterial,
    TrainingRow,
    check_vocabulary_of_language_model,
    split_held_out,
)
from raison.training.training_folder import OWN, write_training_file

if TYPE_CHECKING:
    from raison.models.transformers_model import TransformersWriter

__all__ = ["translation_material"]


def translation_material(
    model: TransformersWriter,
    examples: Sequence[Example],
    *,
    length: int,
    held: float,
    batch: int,
    own: bool,
    out: Path,
) -> TrainingMaterial:
    """Sources with their targets (given, or what the model itself writes), each of at most `length` tokens.

    The last share is held out; pairs whose source stands there too are left out.
    """
    sources, asked = [], []
    for example in examples:
        source = translation_source_encoding(model, example, length)
        if source is not None:
            sources.append(source)
            asked.append(example)
    if own:
        targets = own_translation_targets(model, sources, out)
    else:
        targets = given_translation_targets(model, sources, asked)
    rows = []
    for source, target in zip(sources, targets, strict=True):
        if len(target) <= length:
            source_ids = source.ids[source.segment == 0]
            rows.append(TrainingRow(target=tuple(target), source=tuple(source_ids.tolist())))
    split = split_held_out(rows, held, key=lambda row: row.source)
    counts = {
        "pairs read": len(examples),
        "pairs to train on": len(split.train),
        "pairs held out": len(split.held),
        "pairs left out, longer than length": len(examples) - len(rows),
        "pairs left out, source held out as well": split.left_out,
    }
    if len(split.train) < batch:
        pairs_there = f"{len(split.train)} pair{'s' * (len(split.train) != 1)}"
        raise InputError(
            f"The data gives {pairs_there} to train on, less than a batch of {batch}: give more, or a smaller batch."
        )
    return TrainingMaterial(split.train, split.held, 0, counts)


def translation_source_encoding(
    model: TransformersWriter, example: Example, length: int
) -> Encoding | None:
    """The source of a pair; None where it is too long."""
    try:
        (encoding,) = model.encode([Example(example.text, id=example.id)])
    except TooLong:
        return None
    of_source = encoding.segment == 0
    if of_source.sum() > length:
        return None
    return encoding


def end_token_of_translation(model: TransformersWriter) -> int:
    """The token that ends what the model writes."""
    for config in (model.hf.generation_config, model.hf.config):
        token = getattr(config, "eos_token_id", None)
        if isinstance(token, (list, tuple)):
            token = token[0]
        if token is not None:
            return int(token)
    raise InputError(
        f"{model.name} does not say which token ends a text: set eos_token_id in its config."
    )


def given_translation_targets(
    model: TransformersWriter, sources: Sequence[Encoding], examples: Sequence[Example]
) -> list[list[int]]:
    """Tokens of the targets that the examples bring along."""
    check_target_side(model)
    if not sources:
        return []
    end = end_token_of_translation(model)
    targets = []
    for encoding, example in zip(sources, examples, strict=True):
        pieces = model.pieces_of(encoding, 0, translation_of(example))
        targets.append([*pieces, end])
    check_vocabulary_of_language_model(model, np.concatenate(targets))
    return targets


def translation_of(example: Example) -> str:
    """The target that an example brings along."""
    for text in (example.target, example.label, example.pair):
        if isinstance(text, str) and text.strip():
            return text
    raise InputError(
        f"The source {example.text[:40]!r} has no translation: give pairs (a column label=), or train on the "
        "model's own translations with own_targets=True (--own-targets)."
    )


def check_target_side(model: TransformersWriter) -> None:
    """Refuse a tokenizer whose pieces of the target language are a copy of the source's."""
    files = [Path(str(path)) for path in getattr(model.tokenizer, "spm_files", ()) or ()]
    if len(files) != 2 or not all(path.is_file() for path in files):
        return
    source, target = files
    if source.read_bytes() == target.read_bytes():
        raise InputError(
            f"The tokenizer of {model.name} has no target side of its own, so translations would become other "
            "tokens than the model writes: train on its own translations with own_targets=True (--own-targets)."
        )


def own_translation_targets(
    model: TransformersWriter, sources: Sequence[Encoding], out: Path
) -> list[list[int]]:
    """What the model itself writes for each source; kept beside the checkpoint, since it takes long."""
    source_ids = [source.ids.tolist() for source in sources]
    fingerprint = hashlib.sha256(json.dumps(source_ids).encode()).hexdigest()
    path = out / OWN
    kept = stored_own_translation_targets(path, model.name, fingerprint)
    if kept is not None:
        return kept
    end = end_token_of_translation(model)
    longest = model.hf.generation_config.max_new_tokens or LONGEST
    targets = []
    for number, source in enumerate(sources, 1):
        ids = model.write(source, longest)
        if len(ids) < longest:  # one that was cut off has no end
            ids = [*ids, end]
        targets.append(ids)
        progress.report(number, len(sources), "own translations")
    content = {"model": model.name, "sources": fingerprint, "targets": targets}
    with write_training_file(path) as half:
        half.write_text(json.dumps(content), encoding="utf-8")
    return targets


def stored_own_translation_targets(
    path: Path, name: str, fingerprint: str
) -> list[list[int]] | None:
    """What the model wrote for the same sources before; None where that is not there."""
    if not path.is_file():
        return None
    try:
        content = limits.read_json_text(path.read_text(encoding="utf-8"))
    except ValueError:  # half a file: what it held is written anew
        return None
    if not isinstance(content, dict) or (content.get("model"), content.get("sources")) != (
        name,
        fingerprint,
    ):
        return None
    targets: list[list[int]] = content["targets"]
    return targets
