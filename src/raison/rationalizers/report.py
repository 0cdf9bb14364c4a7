"""What a rationalizer says and selects, in numbers; and what goes wrong, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from raison.rationalizers.batching import marks, sorted_batches
from raison.rationalizers.module import Rationalizer, Selected
from raison.rationalizers.selection import texts_of
from raison.training.class_data import Line, Lines
from raison.training.f1 import f1_of
from raison.training.fit import on_cpu

__all__ = ["commonest", "measured", "troubles"]

FAILED = 0.2  # share of empty or full rationales from which training is said to fail


@torch.inference_mode()
def measured(model: Rationalizer, lines: Sequence[Line], pad: int, rationale: str = "own") -> dict[str, float]:
    """What it says and selects when it has to decide; `rationale` all: the predictor reads every token."""
    model.eval()
    said, gold, empty, full, right = [], [], [], [], []
    kept = first = words = 0.0
    texts = torch.zeros(2, 2, dtype=torch.float64)  # kept and all tokens, of each text of a pair
    both = chosen = marked = 0.0
    for rows, inputs in sorted_batches(lines, pad, device=model.device):
        given = {"rationale": torch.ones_like(inputs["input_ids"])} if rationale == "all" else {}
        # where gold is; and not every device has the precision that is counted in
        told: Any = Selected(**on_cpu(model(**inputs, **given, full=rationale == "own")))
        own = told.rationale.bool()
        said.append(told.logits.double())
        gold.append(torch.tensor([line.label for line in rows], dtype=torch.float64))
        if told.full_logits is not None:
            right.append(told.full_logits.double())
        count, total_words = own.sum(1), told.real.sum(1)
        empty.append((told.empty | (count == 0)).double())
        full.append(((count == total_words) & (total_words > 1)).double())
        kept, words = kept + float(count.sum()), words + float(total_words.sum())
        first += float(told.masks[0].sum())
        for number, text in enumerate(texts_of(told.real, told.side)):
            texts[number] += torch.stack([(own & text).sum(), text.sum()])
        truth, known = marks(rows)
        inside = told.real & known[:, None]
        both += float((own & truth & inside).sum())
        chosen, marked = chosen + float((own & inside).sum()), marked + float((truth & inside).sum())
    answers, labels = torch.cat(said), torch.cat(gold)
    found = quality(answers, labels)
    if right:
        found |= {f"full text {key}": value for key, value in quality(torch.cat(right), labels).items()}
    found |= {"sparsity": kept / max(words, 1), "sparsity of the first": first / max(words, 1)}
    if texts[1, 1]:
        found |= {f"sparsity, text {k + 1}": float(some / all_) for k, (some, all_) in enumerate(texts)}
    found |= {"empty": float(torch.cat(empty).mean()), "full": float(torch.cat(full).mean())}
    if marked:
        precision, recall = both / max(chosen, 1), both / marked
        found |= {"precision": precision, "recall": recall, "rationale f1": 2 * both / max(chosen + marked, 1)}
    return found


def quality(answers: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Accuracy and F1 of classes; error and correlation of a regression."""
    if answers.shape[-1] == 1:
        values = answers[:, 0]
        moved = values.std() > 0 and labels.std() > 0
        known = float(torch.corrcoef(torch.stack([values, labels]))[0, 1]) if len(labels) > 1 and moved else 0.0
        error, of_mean = (values - labels).square().mean(), (labels - labels.mean()).square().mean()
        return {"error": float(error), "error of the mean": float(of_mean), "correlation": known}
    said = answers.argmax(-1).numpy()
    gold = labels.long().numpy()
    return {"accuracy": float((said == gold).mean()), "f1": f1_of(said, gold, answers.shape[-1])}


def troubles(found: dict[str, float], most: float) -> list[str]:
    """What goes wrong, in sentences; `most` is the accuracy of always saying the commonest label."""
    said = []
    if found["empty"] > FAILED:
        said.append(f"{found['empty']:.0%} of the rationales would be empty")
    if found["full"] > FAILED:
        said.append(f"{found['full']:.0%} of the rationales are the whole text")
    best = max(found.get("full text accuracy", 0.0), found.get("every token accuracy", 0.0))
    if "accuracy" in found and found["accuracy"] < most + min(0.02, (1 - most) / 2):
        said.append("the predictor says no more than the commonest label")
    elif "accuracy" in found and best - found["accuracy"] > 0.15:
        said.append(
            f"generator and predictor are stuck (interlocking): {found['accuracy']:.2f} from rationales, {best:.2f} "
            "from all tokens"
        )
    if "correlation" in found and found["correlation"] < 0.05:
        said.append(f"what is told has nothing to do with the labels (correlation {found['correlation']:.2f})")
    elif "error" in found and found["error"] >= found["error of the mean"]:
        said.append(
            f"always telling the mean would be as good (error {found['error']:.3g}, of the mean "
            f"{found['error of the mean']:.3g})"
        )
    return said


def commonest(lines: Lines) -> float:
    if not lines.labels:
        return 0.0
    counts = np.bincount([int(line.label) for line in lines.parts["dev"]])
    return float(counts.max() / counts.sum())
