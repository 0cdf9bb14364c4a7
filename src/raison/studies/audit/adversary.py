"""Another attention for every text, the same answers: adversaries that are trained on a data set.

Wiegreffe & Pinter (2019); P2 App. C: an adversary is trained with TVD(ŷ, ŷ') − λ · JSD(α, α') on the base model's own
answers ŷ and attention α. Frozen: only its attention moves. Unfrozen: a new model over the same word vectors. TVD is
that of all classes.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from raison.attention_models.adapter import Attentive
from raison.attention_models.module import AttentionClassifier
from raison.attention_models.train import fresh, measured
from raison.models.load import placed
from raison.studies.audit.divergence import jsd, tvd
from raison.training.class_data import Line, padded
from raison.training.feed import Feed
from raison.training.fit import Course, Stopped, fit

__all__ = ["Adversary", "trained_adversary"]


@dataclass(frozen=True)
class Adversary:
    """What a trained adversary reaches on texts that it was not trained on."""

    kind: str  # frozen or unfrozen
    lam: float
    jsd: float
    tvd: float
    accuracy: float
    f1: float


def trained_adversary(
    model: Attentive,
    train: Sequence[Line],
    test: Sequence[Line],
    *,
    kind: str,
    lam: float,
    epochs: int = 15,
    batch: int = 32,
    lr: float = 1e-3,
    seed: int = 0,
    folder: Path | None = None,
) -> Adversary:
    """Train an adversary on the base model's own answers and attention, and measure it on the test texts.

    Checkpoints are in the `folder` while it learns; where there is none, a run that is stopped is lost.
    """
    batch = min(batch, len(train))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    base: AttentionClassifier = model.hf
    new = placed(fresh(base.design, model.tokenizer, model.labels, base.words.weight.detach(), seed + 1), base.device)
    if kind == "frozen":
        other = copy.deepcopy(base)
        # from the base's own attention nothing would ever move: JSD and TVD are both at rest there
        other.scorer = new.scorer
        moving = list(other.scorer.parameters())
    else:
        other = new
        other.words.weight.requires_grad_(False)
        moving = [p for name, p in other.named_parameters() if name != "words.weight"]
    other.requires_grad_(False)
    for parameter in moving:
        parameter.requires_grad_()

    known = answers(base, train, states=kind == "frozen")

    def loss(learner: Any, lines: Sequence[Line], part: int) -> torch.Tensor:
        rows = zip(*(known[id(line)] for line in lines), strict=True)
        said, own, *states = (pad_sequence(list(row), batch_first=True) for row in rows)
        if kind == "frozen":  # its states are the base's
            logits, weights = reattended(learner, *states)
        else:
            ids, there, _ = padded(lines, device=base.device)
            mine = learner(ids, attention_mask=there)
            logits, weights = mine.logits, mine.weights
        return (tvd(logits.softmax(-1), said) - lam * jsd(weights, own)).mean()

    steps = epochs * (len(train) // batch)
    feed = Feed(train, batch, seed)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as nowhere:
        course = Course(
            out=Path(nowhere) if folder is None else folder,
            steps=steps,
            seed=seed,
            schedule="constant",
            warm=0.0,
            clip=5.0,
            decay=1e-5,
            save_every=1e9 if folder is None else 60.0,
        )
        try:
            fit(other, [{"params": moving, "peak": lr}], feed, loss, course)
        except Stopped as error:
            if folder is None:
                raise Stopped("Stopped; nothing of this audit is kept: with --keep FOLDER it could go on.") from error
            raise
    apart, moved = compared(base, other, test)
    said = measured(other, test)
    if folder is not None:
        shutil.rmtree(folder)
    return Adversary(kind, lam, apart, moved, said["accuracy"], said["f1"])


def reattended(model: AttentionClassifier, read: torch.Tensor, real: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits [b c] and attention [b t] of a model on states [b t d] that are already there."""
    weights = model.normalizer(model.scorer(read), real)
    return model.decoder((weights[:, None, :] @ read)[:, 0]), weights


@torch.no_grad()
def answers(
    base: Any, lines: Sequence[Line], batch: int = 256, states: bool = False
) -> dict[int, tuple[torch.Tensor, ...]]:
    """Line, by its identity -> the base's probabilities [c] and attention [t], and its `states` [t d] with the words
    [t] among them: asked once, not in every epoch."""
    found = {}
    order = sorted(lines, key=lambda line: len(line.ids))
    for start in range(0, len(order), batch):
        some = order[start : start + batch]
        ids, there, _ = padded(some, device=base.device)
        told = base(ids, attention_mask=there)
        rows = [told.weights, told.read, told.real] if states else [told.weights]
        for line, said, *every in zip(some, told.logits.softmax(-1), *rows, strict=True):
            found[id(line)] = (said, *(each[: len(line.ids)] for each in every))
    return found


@torch.inference_mode()
def compared(base: Any, other: Any, lines: Sequence[Line], batch: int = 256) -> tuple[float, float]:
    """Mean JSD of attentions and mean TVD of answers."""
    apart, moved = [], []
    for start in range(0, len(lines), batch):
        ids, there, _ = padded(lines[start : start + batch], device=base.device)
        one, two = base(ids, attention_mask=there), other(ids, attention_mask=there)
        apart.append(jsd(one.weights, two.weights))
        moved.append(tvd(one.logits.softmax(-1), two.logits.softmax(-1)))
    return float(torch.cat(apart).mean()), float(torch.cat(moved).mean())
