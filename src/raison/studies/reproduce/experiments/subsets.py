"""Random parts of a context: what they are worth to a model before and after compatibility training (P0 section 4).

Blocks of text that no model was trained on; in each some places, and −log f of what stands there given the whole
context and given random parts of it by size, as `raison compatibility` measures them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raison.core.errors import InputError
from raison.core.evaluation import Column, EvaluatedText, Evaluation
from raison.models.tasks.generation import Writer
from raison.studies.context_blocks import encode_blocks, read_texts
from raison.studies.random_parts import losses_on_parts
from raison.studies.reproduce.experiment import Number, Trial, experiment, found

__all__ = ["subsets"]

LENGTH = 64  # tokens of a block
PLACES = 4  # in each
SIZES = (1, 10, 30)


@experiment("subsets")
def subsets(trial: Trial) -> Evaluation:
    """Mean −log f of the next token by the number of kept tokens, block by block."""
    model, settings = trial.model, trial.run.settings
    if not isinstance(model, Writer):
        raise InputError(f"{model.name} does not write: pass a language model or a translator.")
    sizes: Sequence[int] = settings.get("sizes", SIZES)
    length, places = int(settings.get("length", LENGTH)), int(settings.get("places", PLACES))
    texts = read_texts(
        model,
        trial.run.data,
        split=trial.run.split,
        limit=trial.count,
        folder=trial.data_dir,
        length=length,
    )
    rows: list[dict[str, Number]] = []
    seen = []
    for number, encoding in enumerate(encode_blocks(model, texts, length)):
        trial.step(f"block {number + 1} of {len(texts)}")
        generator = np.random.default_rng([trial.seed, number])
        losses = losses_on_parts(model, encoding, targets=places, sizes=sizes, generator=generator)
        each = [place.by_size for place in losses]
        rows.append({key(size): mean([loss[size] for loss in each if size in loss]) for size in (*sizes, None)})
        seen.append(EvaluatedText(str(number), encoding.texts[-1]))
    columns = [Column(key(size), f"mean −log f given {told(size)}", False) for size in (*sizes, None)]
    (title,) = trial.methods
    evaluation = found(trial, columns, {title: rows}, data=trial.run.data)
    means = {size: evaluation.cell(title, key(size)).value for size in (*sizes, None)}
    lines = [f"{np.exp(value):,.1f} given {told(size)}" for size, value in means.items() if value is not None]
    return replace(evaluation, texts=tuple(seen), notes=(f"Perplexity: {', '.join(lines)}.",))


def key(size: int | None) -> str:
    return "all" if size is None else f"of_{size}"


def told(size: int | None) -> str:
    if size is None:
        return "the whole context"
    return "the last token alone" if size == 1 else f"{size} random tokens"


def mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None
