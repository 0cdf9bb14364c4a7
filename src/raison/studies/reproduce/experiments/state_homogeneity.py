"""Experiment: how homogeneous the token states of a text are, layer by layer, in encoders (P1 Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.evaluation import EvaluatedText, Evaluation
from raison.core.records import Example
from raison.datasets.open import open_dataset
from raison.models.load import load, model_type_of_folder
from raison.rationalizers.batching import special_ids
from raison.rationalizers.encoders import load_encoder
from raison.rationalizers.homogeneity import measure_homogeneity
from raison.rationalizers.stored_config import MODEL_TYPE
from raison.studies.reproduce.experiment import (
    ResultRow,
    Trial,
    evaluation_of_rows,
    experiment,
    experiment_column,
)

__all__ = [
    "HomogeneityRow",
    "LayerStates",
    "encoder_for_homogeneity",
    "state_homogeneity",
    "states_by_layer",
]

LONGEST = 256  # tokens of a text


@dataclass(frozen=True)
class HomogeneityRow(ResultRow):
    """The numbers of one text."""

    spread_first: float = experiment_column(
        "trace of the covariance of token states behind the first block", higher=None
    )
    spread_middle: float = experiment_column("behind two thirds of the blocks", higher=None)
    spread_last: float = experiment_column("behind the last block", higher=None)
    cosine_first: float = experiment_column(
        "mean cosine of two tokens' states behind the first block", higher=None
    )
    cosine_middle: float = experiment_column("behind two thirds of the blocks", higher=None)
    cosine_last: float = experiment_column("behind the last block", higher=None)


@dataclass(frozen=True)
class LayerStates:
    """[n l] how alike the states of each text are: of the embeddings and behind each block."""

    spread: np.ndarray
    cosine: np.ndarray

    def rows(self) -> list[HomogeneityRow]:
        last = self.spread.shape[1] - 1
        middle = round(2 * last / 3)
        rows = []
        for spread, cosine in zip(self.spread, self.cosine, strict=True):
            rows.append(
                HomogeneityRow(
                    spread_first=float(spread[1]),
                    spread_middle=float(spread[middle]),
                    spread_last=float(spread[last]),
                    cosine_first=float(cosine[1]),
                    cosine_middle=float(cosine[middle]),
                    cosine_last=float(cosine[last]),
                )
            )
        return rows


@experiment("homogeneity")
def state_homogeneity(trial: Trial) -> Evaluation:
    """Spread and cosine of token states; a method is a name that raison knows, or a folder below the given one."""
    place = Path(str(trial.model))
    if not place.is_dir():
        raise InputError(
            f"{str(place)!r} is no folder, and states are read from models: make them by the recipe."
        )
    examples = open_dataset(trial.run.data, trial.run.split, trial.count, trial.data_dir).examples
    rows = {}
    spread_curves: dict[str, list[float]] = {}
    cosine_curves: dict[str, list[float]] = {}
    for title, name in trial.methods.items():
        trial.step(f"{trial.run.name}: {title}")
        states = states_by_layer(place, name, examples)
        rows[title] = states.rows()
        spread_curves[title] = states.spread.mean(0).tolist()
        cosine_curves[title] = states.cosine.mean(0).tolist()

    evaluation = evaluation_of_rows(
        trial,
        HomogeneityRow.columns(),
        rows,
        data=trial.run.data,
        model="many rationalizers",
        notes=["The curves begin with the embeddings; 100 % is the last block."],
    )
    texts = [EvaluatedText(example.id, example.text) for example in examples]
    curves = {"spread_curve": spread_curves, "cosine_curve": cosine_curves}
    return replace(evaluation, curves=curves, texts=tuple(texts))


def states_by_layer(place: Path, name: str, examples: Sequence[Example]) -> LayerStates:
    """How alike the token states of each text are in one encoder."""
    encoder, tokenizer = encoder_for_homogeneity(place, name)
    special = torch.tensor(special_ids(tokenizer))
    spreads, cosines = [], []
    for example in examples:
        tokens = tokenizer(example.text, return_tensors="pt", truncation=True, max_length=LONGEST)
        ids = tokens["input_ids"]
        real = ~torch.isin(ids, special)
        if int(real.sum()) < 2:
            raise InputError(
                f"{example.text[:40]!r} has fewer than two tokens, whose states can't be compared."
            )
        batch = {"input_ids": ids, "attention_mask": tokens["attention_mask"], "real": real}
        layers = measure_homogeneity(encoder, [batch])
        spreads.append(layers.spread)
        cosines.append(layers.cosine)
    return LayerStates(np.array(spreads), np.array(cosines))


def encoder_for_homogeneity(place: Path, name: str) -> tuple[Any, Any]:
    """The encoder of a folder, a rationalizer's or an ordinary model's, or of a model that raison knows."""
    folder = place / name
    if model_type_of_folder(folder) == MODEL_TYPE:
        model: Any = load(folder)
        return model.hf.encoder, model.tokenizer
    loaded = load_encoder(folder if folder.is_dir() else name)
    return loaded.encoder.eval(), loaded.tokenizer
