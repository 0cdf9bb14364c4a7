"""An ordinary classifier to compare with: the same encoder, fine-tuned on all tokens, with a head on their mean.

With `skip`, only the blocks behind the first so many: what the short predictor of a rationalizer could say at best.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from transformers import AutoTokenizer

from raison.models.catalog.quiet_loading import quiet_transformers
from raison.models.load import load
from raison.models.mean_pooled_bert import MeanPooledBert
from raison.rationalizers.batching import batch_inputs, sorted_batches
from raison.rationalizers.config import RationalizerTraining
from raison.rationalizers.encoders import load_encoder
from raison.training.data_names import name_of_data
from raison.training.early_stopping import BestEpochKeeper
from raison.training.feed import BatchFeed
from raison.training.fit import fit
from raison.training.fit_settings import FitSettings
from raison.training.labelled_lines import read_labelled_lines
from raison.training.labelled_parts import examples_by_part, labels_of_parts
from raison.training.multi_seed import REPORT
from raison.training.training_folder import (
    BEST,
    CHECKPOINT,
    prepare_training_folder,
    write_training_file,
    writing_trained_model,
)

__all__ = ["open_ordinary", "train_ordinary"]


def shaped(base: str, labels: Any, seed: int, skip: int = 0) -> tuple[Any, Any]:
    loaded = load_encoder(base)
    encoder, tokenizer = loaded.encoder, loaded.tokenizer
    encoder.encoder.layer = encoder.encoder.layer[skip:]
    encoder.config.num_hidden_layers -= skip
    encoder.config.id2label = dict(enumerate(labels))
    encoder.config.label2id = {label: number for number, label in enumerate(labels)}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = MeanPooledBert(encoder.config)
    encoder.pooler = None
    model.bert = encoder
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("embeddings" not in name)  # as in a rationalizer
    return model, tokenizer


def train_ordinary(
    base: str,
    data: Any,
    *,
    out: Path,
    training: RationalizerTraining,
    seed: int,
    data_dir: Any,
    skip: int = 0,
) -> None:
    """Labels, rates, epochs and early stopping as a rationalizer has them."""
    prepare_training_folder(out, REPORT)
    parts, left = examples_by_part(
        data, data_dir=data_dir, limit=None, held=training.held_out, seed=seed
    )
    labels = labels_of_parts(parts)
    model, tokenizer = shaped(base, labels, seed, skip)
    lines = read_labelled_lines(parts, tokenizer, labels, training.longest)
    each = len(lines.parts["train"]) // training.batch
    settings = {
        "data": lines.content(),
        "seed": seed,
        "epochs": training.epochs,
        "lr": training.lr,
        "skip": skip,
    }

    def loss(model: Any, batch: Any, part: int) -> torch.Tensor:
        gold = torch.tensor([line.label for line in batch])
        return functional.cross_entropy(model(**batch_inputs(batch, 0)).logits, gold)

    def look(part: str = "dev") -> dict[str, float]:
        right = 0
        with torch.inference_mode():
            for rows, inputs in sorted_batches(lines.parts[part], 0):
                right += int(
                    (
                        model(**inputs).logits.argmax(-1) == torch.tensor([r.label for r in rows])
                    ).sum()
                )
        return {"accuracy": right / len(lines.parts[part])}

    best = BestEpochKeeper(out, settings, "accuracy", training.patience)
    heads = set(map(id, model.classifier.parameters()))
    moving = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in moving if id(p) not in heads], "peak": training.lr},
        {"params": [p for p in moving if id(p) in heads], "peak": training.head_lr},
    ]
    fit_settings = FitSettings(
        out=out,
        steps=training.epochs * each,
        settings=settings,
        seed=seed,
        every=each,
        bfloat16=training.bfloat16,
    )
    feed = BatchFeed(lines.parts["train"], training.batch, seed)
    done = fit(
        model, groups, feed, loss, fit_settings, best.look_and_keep(model, look), best.should_stop
    )
    best.restore(model)
    report = {
        "what": "ordinary",
        "data": name_of_data(data),
        "seed": seed,
        "labels": labels,
        "skip": skip,
        "counts": left,
    }
    report |= {part: look(part) for part in lines.parts if part != "train"}
    report["cpu_minutes"] = round(done.seconds / 60, 2)
    with writing_trained_model(out):
        with quiet_transformers():
            model.save_pretrained(out)
            tokenizer.save_pretrained(out)
        with write_training_file(out / REPORT) as half:
            half.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for name in (CHECKPOINT, BEST):
        (out / name).unlink(missing_ok=True)


def open_ordinary(folder: Path) -> Any:
    with quiet_transformers():
        model = MeanPooledBert.from_pretrained(folder)
    return load(model.eval(), AutoTokenizer.from_pretrained(folder))
