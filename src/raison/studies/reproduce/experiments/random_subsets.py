"""Experiment: the loss on random parts of a context, before and after compatibility training (P0 section 4).

Blocks of text that no model was trained on; in each some places, and −log f of what stands there given the whole
context and given random parts of it by size, as `raison compatibility` measures them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import Column, EvaluatedText, Evaluation
from raison.models.transformers_model import TransformersWriter
from raison.studies.context_blocks import encode_blocks, read_block_texts
from raison.studies.random_parts import losses_on_parts
from raison.studies.reproduce.experiment import (
    Number,
    ResultRow,
    Trial,
    evaluation_of_rows,
    experiment,
)

__all__ = ["random_subsets"]

LENGTH = 64  # tokens of a block
PLACES = 4  # in each
SIZES = (1, 10, 30)

Size = int | None  # kept tokens; None: the whole context


@dataclass(frozen=True)
class LossBySize(ResultRow):
    """Mean −log f in one block, by the number of kept tokens; None where no context is that long."""

    losses: Mapping[Size, float | None]

    def numbers(self) -> Mapping[str, Number]:
        losses = {}
        for size, loss in self.losses.items():
            losses[subset_column_key(size)] = loss
        return losses


@experiment("subsets")
def random_subsets(trial: Trial) -> Evaluation:
    """Mean −log f of the next token by the number of kept tokens, block by block."""
    model = trial.model
    run = trial.run
    if not isinstance(model, TransformersWriter):
        raise InputError(f"{model.name} does not write: pass a language model or a translator.")
    sizes: Sequence[int] = run.settings.get("sizes", SIZES)
    length = int(run.settings.get("length", LENGTH))
    places = int(run.settings.get("places", PLACES))
    texts = read_block_texts(
        model, run.data, split=run.split, limit=trial.count, folder=trial.data_dir, length=length
    )
    rows = []
    evaluated = []
    for number, encoding in enumerate(encode_blocks(model, texts, length)):
        trial.step(f"block {number + 1} of {len(texts)}")
        draw = np.random.default_rng([trial.seed, number])
        on_parts = losses_on_parts(model, encoding, targets=places, sizes=sizes, generator=draw)
        losses = [place.by_size for place in on_parts]
        mean_losses = {}
        for size in (*sizes, None):
            mean_losses[size] = mean_loss(losses, size)
        rows.append(LossBySize(mean_losses))
        evaluated.append(EvaluatedText(str(number), encoding.texts[-1]))

    columns = []
    for size in (*sizes, None):
        columns.append(
            Column(
                subset_column_key(size), f"mean −log f given {random_subset_in_words(size)}", False
            )
        )
    (title,) = trial.methods
    evaluation = evaluation_of_rows(trial, columns, {title: rows}, data=run.data)
    perplexities = []
    for size in (*sizes, None):
        mean = evaluation.cell(title, subset_column_key(size)).value
        if mean is not None:
            perplexities.append(f"{np.exp(mean):,.1f} given {random_subset_in_words(size)}")
    return replace(
        evaluation, texts=tuple(evaluated), notes=(f"Perplexity: {', '.join(perplexities)}.",)
    )


def subset_column_key(size: Size) -> str:
    return "all" if size is None else f"of_{size}"


def random_subset_in_words(size: Size) -> str:
    """What is kept, in words."""
    if size is None:
        return "the whole context"
    if size == 1:
        return "the last token alone"
    return f"{size} random tokens"


def mean_loss(losses: Sequence[Mapping[Size, float]], size: Size) -> float | None:
    """The mean over the places whose context is that long; None where there are none."""
    values = []
    for loss_by_size in losses:
        if size in loss_by_size:
            values.append(loss_by_size[size])
    if values:
        return float(np.mean(values))
    return None
