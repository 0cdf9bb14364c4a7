"""How alike the token states of a text are, block by block, in encoders before and after training (P1 Figure 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.evaluation import Column, EvaluatedText, Evaluation
from raison.core.records import Example
from raison.datasets.open import open_dataset
from raison.models.load import kind_of, load
from raison.rationalizers.batching import added_by
from raison.rationalizers.encoders import opened_encoder
from raison.rationalizers.homogeneity import homogeneity
from raison.rationalizers.module import TYPE
from raison.studies.reproduce.experiment import Number, Trial, experiment, found
from raison.studies.reproduce.experiments.rationalizers import Many

__all__ = ["alike"]

COLUMNS = (
    Column("spread_first", "trace of the covariance of token states behind the first block", None),
    Column("spread_middle", "behind two thirds of the blocks", None),
    Column("spread_last", "behind the last block", None),
    Column("cosine_first", "mean cosine of two tokens' states behind the first block", None),
    Column("cosine_middle", "behind two thirds of the blocks", None),
    Column("cosine_last", "behind the last block", None),
)


@experiment("homogeneity")
def alike(trial: Trial) -> Evaluation:
    """Spread and cosine of token states; a method is a name that raison knows, or a folder below the given one."""
    place = Path(str(trial.model))
    if not place.is_dir():
        raise InputError(f"{str(place)!r} is no folder, and states are read from models: make them by the recipe.")
    texts = open_dataset(trial.run.data, trial.run.split, trial.count, trial.data_dir).examples
    numbers: dict[str, list[Mapping[str, Number]]] = {}
    curves: dict[str, dict[str, list[float]]] = {"spread_curve": {}, "cosine_curve": {}}
    for title, name in trial.methods.items():
        trial.step(f"{trial.run.name}: {title}")
        spreads, cosines = layers_of(place, name, texts)  # [n l]
        rows = []
        depth = spreads.shape[1] - 1
        for spread, cosine in zip(spreads, cosines, strict=True):
            at = {"first": 1, "middle": round(2 * depth / 3), "last": depth}
            row: dict[str, Number] = {f"spread_{where}": float(spread[k]) for where, k in at.items()}
            rows.append(row | {f"cosine_{where}": float(cosine[k]) for where, k in at.items()})
        numbers[title] = list(rows)
        curves["spread_curve"][title] = spreads.mean(0).tolist()
        curves["cosine_curve"][title] = cosines.mean(0).tolist()
    about = ["The curves begin with the embeddings; 100 % is the last block."]
    evaluation = found(replace(trial, model=Many()), COLUMNS, numbers, data=trial.run.data, about=about)  # type: ignore[arg-type]
    return replace(evaluation, curves=curves, texts=tuple(EvaluatedText(e.id, e.text) for e in texts))


def layers_of(place: Path, name: str, texts: list[Example]) -> tuple[np.ndarray, np.ndarray]:
    """[n l] of each text: the spread and the cosine, of the embeddings and behind each block."""
    encoder, tokenizer = encoder_of(place, name)
    special = torch.tensor(added_by(tokenizer))
    spreads, cosines = [], []
    for example in texts:
        inputs: dict[str, Any] = tokenizer(example.text, return_tensors="pt", truncation=True, max_length=256)
        batch = {key: inputs[key] for key in ("input_ids", "attention_mask")}
        real = ~torch.isin(batch["input_ids"], special)
        if int(real.sum()) < 2:
            raise InputError(f"{example.text[:40]!r} has fewer than two tokens, whose states can't be compared.")
        told = homogeneity(encoder, [{**batch, "real": real}])
        spreads.append(told.spread)
        cosines.append(told.cosine)
    return np.array(spreads), np.array(cosines)


def encoder_of(place: Path, name: str) -> tuple[Any, Any]:
    """The encoder of a folder, a rationalizer's or an ordinary model's, or of a model that raison knows."""
    folder = place / name
    if kind_of(folder) == TYPE:
        model: Any = load(folder)
        return model.hf.encoder, model.tokenizer
    encoder, tokenizer, _ = opened_encoder(folder if folder.is_dir() else name)
    return encoder.eval(), tokenizer
