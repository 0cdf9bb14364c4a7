"""raison train rationalizer: what selecting a rationale costs, beside ordinary fine-tuning and one forward pass.

    python benchmarks/rationalizer.py              # writes benchmarks/results/rationalizer.md; needs SST
    python benchmarks/rationalizer.py --quick      # few batches; prints and writes no file

One thread, CPU time, medians of one run, sides in turn. Ordinary: the same encoder, whose blocks are fine-tuned with a
linear head on the mean state, on the same batches; embeddings frozen on both sides.
"""

from __future__ import annotations

import argparse
import copy
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measure import cpu, data_option, log, table, verdicts, write
from torch.nn import functional

from raison.models.mean_pooled_bert import MeanPooledBert
from raison.rationalizers.batching import batch_inputs
from raison.rationalizers.build import build_rationalizer
from raison.rationalizers.config import VARIANTS, RationalizerConfig, RationalizerTraining
from raison.rationalizers.encoders import load_encoder
from raison.rationalizers.training_loop import RationalizerBatchLoss
from raison.training.feed import BatchFeed
from raison.training.labelled_lines import read_labelled_lines
from raison.training.labelled_parts import examples_by_part, labels_of_parts

ABOUT = "(MiniLM on SST-2, batches of 32 texts, one thread, CPU time, medians of one run; all sides in turn)"
CONFIGS = {
    "literal split": {},
    "whole-encoder predictor": VARIANTS["whole"],
    "RNP, two encoders": VARIANTS["rnp"],
}


def ordinary(encoder: Any) -> Any:
    model = MeanPooledBert(encoder.config)
    model.bert = copy.deepcopy(encoder)
    model.bert.pooler = None
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("embeddings" not in name)
    return model


def stepped(loss: Callable[[int], torch.Tensor], optimizer: Any, number: int) -> None:
    loss(number).backward()
    optimizer.step()
    optimizer.zero_grad()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    data_option(parser)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for number, part in enumerate(parts(arguments.data, 3 if arguments.quick else 15), 1):
        for line in part:
            print(line)
        if not arguments.quick:
            write("rationalizer", "Rationalizers: what selecting costs", ABOUT, number, part)


def parts(data: Path, rounds: int) -> list[list[str]]:
    loaded = load_encoder("minilm")
    encoder, tokenizer = loaded.encoder, loaded.tokenizer
    examples, _ = examples_by_part("sst2", data_dir=data, limit=None, held=0.1, seed=0)
    labels = labels_of_parts(examples)
    feed = BatchFeed(read_labelled_lines(examples, tokenizer, labels, 256).parts["train"], 32, 0)
    plain = ordinary(encoder)
    models = {"ordinary": plain}
    for name, settings in CONFIGS.items():
        blocks = settings.get("blocks", 4) or 6
        config = RationalizerConfig.from_settings(
            {**settings, "blocks": blocks, "sparsity": (0.25,)}
        )
        models[name] = build_rationalizer(copy.deepcopy(encoder), tokenizer, config, labels, 0)
    return [training(models, feed, rounds), inference(models, feed, rounds)]


def training(models: dict[str, Any], feed: BatchFeed, rounds: int) -> list[str]:
    """One step of each side on the same batch, in turn."""
    sides: dict[str, Callable[[int], None]] = {}
    for name, model in models.items():
        model.train()
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5)
        if name == "ordinary":
            loss = partial(fine_tuning, model, feed)
        else:
            batch_loss = RationalizerBatchLoss(
                model, model.settings, RationalizerTraining(), pad=0, warm_steps=0, seed=0
            )
            loss = partial(selecting, batch_loss, model, feed)
        sides[name] = partial(stepped, loss, optimizer)
    spent = in_turn(sides, rounds)
    held = [
        ("literal split: at most 1.6 x an ordinary epoch", *within(spent, "literal split", 1.6))
    ]
    held.append(("whole predictor: at most 1.6 x", *within(spent, "whole-encoder predictor", 1.6)))
    return ["## 1. A step of training", "", *rows(spent), *verdicts(held)]


def fine_tuning(model: Any, feed: BatchFeed, number: int) -> torch.Tensor:
    lines: Any = feed(number)
    labels = torch.tensor([line.label for line in lines])
    return functional.cross_entropy(model(**batch_inputs(lines, 0)).logits, labels)


def selecting(
    loss: RationalizerBatchLoss, model: Any, feed: BatchFeed, number: int
) -> torch.Tensor:
    lines: Any = feed(number)
    return loss(model, lines, number)


def inference(models: dict[str, Any], feed: BatchFeed, rounds: int) -> list[str]:
    sides = {name: partial(answered, model.eval(), feed) for name, model in models.items()}
    spent = in_turn(sides, rounds)
    held = [
        ("literal split: at most 1.3 x one forward", *within(spent, "literal split", 1.3)),
        ("whole predictor: at most 1.8 x", *within(spent, "whole-encoder predictor", 1.8)),
    ]
    return ["## 2. An answer with its rationale", "", *rows(spent), *verdicts(held)]


@torch.inference_mode()
def answered(model: Any, feed: BatchFeed, number: int) -> None:
    model(**batch_inputs(feed(number), 0))  # type: ignore[arg-type]


def in_turn(sides: dict[str, Callable[[int], None]], rounds: int) -> dict[str, float]:
    spent: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, action in sides.items():
            used = cpu(partial(action, number))
            if number:  # the first batch warms up
                spent[name].append(used)
    return {name: statistics.median(values) for name, values in spent.items()}


def rows(spent: dict[str, float]) -> list[str]:
    base = spent["ordinary"]
    made = [[name, f"{value:.3f}", f"{value / base:.2f}"] for name, value in spent.items()]
    log(*made)
    return table(("side", "CPU s a batch", "ratio"), made)


def within(spent: dict[str, float], name: str, most: float) -> tuple[str, bool]:
    ratio = spent[name] / spent["ordinary"]
    return f"{ratio:.2f} x", ratio <= most


if __name__ == "__main__":
    main()
