"""raison audit: what the influence of words on hidden states costs, and how long an audit of SST takes.

    python benchmarks/audit.py              # writes benchmarks/results/audit.md; needs SST-2
    python benchmarks/audit.py --quick      # a small text and few sentences; prints and writes no file

One thread, CPU time, medians of one run. Bare: one forward pass, then one backward pass for every hidden state, by
torch.autograd.grad on the plain module. Ours: one forward pass, and batched backward passes for many hidden states.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measure import cpu, data_option, log, table, verdicts, write

from raison.attention_models.adapter import AttentionModel, attention_model
from raison.attention_models.build import new_classifier
from raison.attention_models.config import ClassifierConfig
from raison.attention_models.train import train_classifier
from raison.attention_models.vocabulary import words_tokenizer
from raison.attention_models.word_vectors import random_vectors
from raison.core.records import Encoding, Example
from raison.studies.audit.run_audit import audit
from raison.studies.audit.state_importance import influence_on_states
from raison.training.seeds import seeded_generator

WIDTH = 50
ABOUT = "(one thread, CPU time, medians of one run; bare and ours in turn)"
ENCODERS = {"BiLSTM": {}, "transformer, two layers": {"encoder": "transformer", "layers": 2}}


def subject(length: int, config: dict[str, Any]) -> tuple[AttentionModel, Encoding]:
    """An untrained model and a text of so many words: what is computed does not depend on the weights."""
    text = " ".join(f"word{chr(97 + k % 26)}{chr(97 + k // 26 % 26)}" for k in range(length))
    tokenizer = words_tokenizer([text])
    made = ClassifierConfig(width=WIDTH, **config)
    model = attention_model(
        new_classifier(
            made,
            tokenizer,
            ["no", "yes"],
            random_vectors(len(tokenizer), WIDTH, seeded_generator(0)),
            0,
        ),
        tokenizer,
        "m",
    )
    return model, model.encode([Example(text)])[0]


def bare(model: AttentionModel, encoding: Encoding) -> None:
    """n backward passes of the plain module."""
    ids = torch.tensor(encoding.ids)[None]
    leaf = model.hf.words(ids).detach().requires_grad_()
    states = model.hf.encoder(
        leaf, torch.ones_like(ids, dtype=torch.bool), torch.arange(ids.shape[1])[None]
    )[0]
    for p in range(1, len(encoding) - 1):
        torch.autograd.grad(states[p].norm(), leaf, retain_graph=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    data_option(parser)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    length, rounds, limit = (30, 2, 20) if arguments.quick else (200, 5, None)
    for number, part in enumerate(
        (influences(length, rounds), whole_audit(arguments.data, limit)), 1
    ):
        for line in part:
            print(line)
        if not arguments.quick:
            write(
                "audit", "Audit: what asking whether attention explains costs", ABOUT, number, part
            )


def influences(length: int, rounds: int) -> list[str]:
    rows, held = [], []
    for name, config in ENCODERS.items():
        model, encoding = subject(length, config)
        model.hf.requires_grad_(False)
        sides = {
            "bare": partial(bare, model, encoding),
            "ours": partial(influence_on_states, model, encoding),
        }
        spent: dict[str, list[float]] = {side: [] for side in sides}
        for action in sides.values():
            action()
        for _ in range(rounds):
            for side, action in sides.items():
                spent[side].append(cpu(action))
        plain, mine = (statistics.median(spent[side]) for side in ("bare", "ours"))
        rows.append([name, f"{plain:.3f}", f"{mine:.3f}", f"{mine / plain:.2f}"])
        held.append(
            (
                f"{name}: at most 1.3 x the bare backward passes",
                f"{mine / plain:.2f} x",
                mine / plain <= 1.3,
            )
        )
        log(*rows[-1])
    head = f"## 1. The influence of {length} words on {length} hidden states of {WIDTH} numbers"
    return [
        head,
        "",
        *table(("encoder", "bare, CPU s", "ours, CPU s", "ratio"), rows),
        *verdicts(held),
    ]


def whole_audit(data: Path, limit: int | None) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "m"
        train_classifier(
            "sst2", out=out, config={"width": WIDTH}, training={"epochs": 3}, data_dir=data
        )
        start = time.process_time()
        found = audit(str(out), "sst2", limit=limit, data_dir=data)
        spent = time.process_time() - start
    told = f"{spent:.0f} CPU s, {1000 * spent / found.count:.0f} ms for each sentence"
    check = (
        f"{found.count} sentences in under 10 minutes on two cores",
        f"{told}, one thread",
        spent < 600,
    )
    return [
        "## 2. An audit of a BiLSTM on the test part of SST, no trained adversaries",
        *verdicts([check]),
    ]


if __name__ == "__main__":
    main()
