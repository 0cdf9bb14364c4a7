"""Rationalizers around tiny encoders, and trainings of seconds."""

from __future__ import annotations

import copy

import torch

from raison.rationalizers.build import build_rationalizer
from raison.rationalizers.config import RationalizerConfig, RationalizerTraining
from raison.rationalizers.module import Rationalizer
from raison.rationalizers.output import RationalizerOutput
from raison.rationalizers.train import train_rationalizer
from raison.testing import tiny_hf
from raison.training import fit as fitting
from tests.helpers.small_classifiers import reviews

__all__ = [
    "CONFIGS", "ENCODERS", "SMALL", "TEXTS", "batch_of", "built", "encoder_of", "output_of", "start", "stop_after",
]  # fmt: skip


ENCODERS = ("bert", "roberta", "distilbert", "electra", "modernbert")


TEXTS = [
    "The old town lies on a hill above the river.",
    "A dull story with good actors",
    "It begins.",
]


def encoder_of(family: str):
    hf, tokenizer = tiny_hf(family, "classification")
    return copy.deepcopy(getattr(hf, hf.base_model_prefix)), tokenizer


def built(family: str = "bert", **config) -> tuple[Rationalizer, object]:
    encoder, tokenizer = encoder_of(family)
    settings = {"blocks": 1, "pruning": 1, "full_text": "predictor", "dropout": 0.0, **config}
    labels = ["negative", "positive"]
    model = build_rationalizer(
        encoder, tokenizer, RationalizerConfig.from_settings(settings), labels, seed=0
    ).double()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name in ("attention_dropout", "dropout_prob", "dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return model.eval(), tokenizer


def batch_of(tokenizer, texts=TEXTS, pairs=None):
    found = tokenizer(texts, pairs, return_tensors="pt", padding=True)
    return {key: found[key] for key in ("input_ids", "attention_mask")}


CONFIGS = [
    {"predictor": p, "hide": h} for p in ("rest", "whole", "apart") for h in ("attention", "zero")
]


def output_of(mask, real, **more) -> RationalizerOutput:
    mask = torch.tensor(mask, dtype=torch.float64)
    real = torch.tensor(real, dtype=torch.bool)
    base = {
        "masks": (mask,),
        "real": real,
        "side": torch.zeros_like(real).long(),
        "logits": torch.zeros(len(mask), 2),
    }
    return RationalizerOutput(**{**base, **more})


SMALL = RationalizerTraining(lr=1e-3, head_lr=3e-3, epochs=3, batch=16, warm=1.0, weight_decay=0.0)


def start(tmp_path, **more):
    hf, tokenizer = tiny_hf("bert", "classification")
    hf = copy.deepcopy(hf).float()
    settings = {
        "config": {
            "sparsity": 0.3,
            "blocks": 1,
            "pruning": 1,
            "predictor": "whole",
            "full_text": "predictor",
        }
    }
    return train_rationalizer(
        hf, more.pop("data", reviews(200)), out=tmp_path, tokenizer=tokenizer,
        **{**settings, "training": SMALL, **more},
    )  # fmt: skip


def stop_after(monkeypatch, steps: int) -> None:
    """Runs are stopped there; every step has a checkpoint."""
    calls = {"count": 0}
    plain = fitting.training_step

    def stopping(*args, **kwargs):
        calls["count"] += 1
        if calls["count"] == steps + 1:
            raise fitting.TrainingStopped("stopped")
        return plain(*args, **kwargs)

    monkeypatch.setattr(fitting, "training_step", stopping)
    monkeypatch.setattr(fitting.TrainingWatch, "due", lambda self: True)
