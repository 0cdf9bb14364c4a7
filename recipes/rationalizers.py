"""Train the rationalizers of P1 (PLMR), its ablations and baselines, and judge them beside an ordinary model.

    python recipes/rationalizers.py --data DATA_DIR --out FOLDER [--part NAME ...] [--seeds N]

Every model is a folder FOLDER/DATA/NAME/seed-K that `raison.load` opens (ordinary ones: recipes/ordinary.py), with a
line in FOLDER/numbers.jsonl: what it says and selects of every test text. What has a line is not made again, so the
command can be stopped and given again. Parts can be run alone, and side by side; all of them take about eighteen
core-hours. `raison reproduce P1-variants --model rationalizers=FOLDER` (and P1-…) reads the lines; those of
docs/reproduction.md are in benchmarks/results/rationalizers.jsonl.xz, which can be given in place of FOLDER (not for
P1-homogeneity, which reads models).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from parts import run_parts

from raison.api import explain, rationalize
from raison.core import progress
from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.open import open_dataset
from raison.datasets.overlap import normalise_text_for_overlap, overlap
from raison.models.load import load
from raison.rationalizers.config import VARIANTS, LossWeights, RationalizerTraining
from raison.rationalizers.train import train_rationalizer
from raison.studies.reproduce.rationalizer_lines import (
    OWN,
    OtherAnswers,
    RationalizerLine,
    TokenCounts,
    pooled_f1_of_rationalizer,
)
from raison.studies.reproduce.recipe_lines import add_recipe_line, read_recipe_lines
from raison.training.labelled_lines import human_marked_tokens

BASE = "minilm"
SHARE = 0.25
SST, MOVIES, EDITED = "sst_trees(distance=1)", "eraser_movies", "imdb_counterfactual"
GRADES = "sst_trees(distance=1, classes=5)"
SEEDS = 3
TURNING = set(
    "not no never neither nor none without hardly barely too very so nothing nobody cannot only but".split()
)
DISTURBED = ("plmr", "whole", "rnp")  # judged on disturbed texts as well, beside the ordinary model
FEW = 500  # test texts for methods that ask the model many times
POST_HOC = {  # of the ordinary model; True: cheap enough for all test texts
    "gradient_norm": True,
    "input_x_gradient": True,
    "attn_lrp": True,
    "gae": True,
    "attention_last": True,
    "integrated_gradients": False,
    "leave_one_out": False,
    "refined": False,
}


@dataclass(frozen=True)
class Job:
    """One kind of model on one data set."""

    data: str  # short name of the folder
    name: str
    variant: str = "plmr"
    config: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    weights: dict[str, Any] = field(default_factory=dict)
    seeds: int = SEEDS


@dataclass(frozen=True)
class Judgement:
    """What a model says of every test text and selects in it; see `RationalizerLine`."""

    said: list[Any]
    picked: dict[str, TokenCounts] = field(default_factory=dict)
    more: OtherAnswers = OtherAnswers()


def lengthy(data: str) -> list[Job]:
    """Of long reviews, cut at 256 tokens: PLMR, RNP, and what gives PLMR's predictor all blocks, as RNP's has."""
    long = {"longest": 256, "batch": 16, "epochs": 4}
    made = [Job(data, name, name, training=long, seeds=1) for name in ("plmr", "rnp", "whole")]
    return [
        *made,
        Job(data, "whole_both", "whole", {"full_text": "predictor"}, training=long, seeds=1),
    ]


def parts() -> dict[str, list[Job]]:
    variants = [Job("sst", name, name) for name in VARIANTS if name not in ("plmr", "whole")]
    shaped = [
        Job("sst", "whole_no_full_text", "whole", {"full_text": "none"}),
        Job("sst", "whole_both", "whole", {"full_text": "predictor"}),
        Job("sst", "rnp_literal", "rnp", {"hide": "zero", "read": "first"}),
        Job("sst", "no_warm_up", training={"warm": 0.0}),
        Job("sst", "coherent", weights={"coherence": 10.0}),
        Job("sst", "light_full_text", weights={"full": 0.3}),
        Job("sst", "supervised", "whole", weights={"human": 1.0}),
    ]
    splits = [
        Job(
            "sst",
            f"split-{count}",
            config={"blocks": count, "pruning": min(2, count), "full_text": "predictor"},
        )
        for count in (1, 2, 3, 4, 5)
    ]
    return {
        "main": [Job("sst", "plmr"), Job("sst", "whole", "whole")],
        "ordinary": [
            Job("sst", "ordinary", "ordinary"),
            Job("sst", "short", "short", {"blocks": 4}),
        ],
        "variants": variants,
        "training": shaped,
        "splits": splits,
        "movies": lengthy("movies"),
        "edited": lengthy("edited"),
        "pairs": [Job("pairs", "whole", "whole", {"sparsity": (0.3, 0.3)}, seeds=1)],
        "regression": [Job("scores", "whole", "whole", seeds=1)],
    }


@cache
def material(data: str, data_dir: Path) -> tuple[Any, list[Example], int]:
    """What to train on, the test texts, and how many training texts were left out here since they stand there too."""
    if data == "pairs":  # the data set at hand has no train part: most of its dev part is one
        test = open_dataset("qqp", "test", 1500, data_dir).examples
        asked = {normalise_text_for_overlap(text) for e in test for text in (e.text, e.pair)}
        read = open_dataset("qqp", "dev", 6000, data_dir).examples
        kept = [
            e
            for e in read
            if not {normalise_text_for_overlap(e.text), normalise_text_for_overlap(e.pair)} & asked
        ]
        return kept, test, len(read) - len(kept)
    if data == "scores":
        scored = lambda split: [  # noqa: E731
            replace(e, label=str(e.meta["score"] / 4))
            for e in open_dataset(GRADES, split, data=data_dir).examples
        ]
        train, test = scored("train"), scored("test")
        copies = set(overlap(train, test))
        return [e for number, e in enumerate(train) if number not in copies], test, len(copies)
    name = {"sst": SST, "movies": MOVIES, "edited": EDITED}[data]
    return name, open_dataset(name, "test", data=data_dir).examples, 0


def made(job: Job, seed: int, arguments: argparse.Namespace) -> Path:
    """Train one model, as far as it is not there."""
    folder: Path = arguments.out / job.data / job.name / f"seed-{seed}"
    if (folder / "training.json").exists():
        return folder
    data, _, _ = material(job.data, arguments.data)
    training = RationalizerTraining(
        **{"epochs": 4, "bfloat16": True, **job.training}, weights=LossWeights(**job.weights)
    )
    if job.variant in ("ordinary", "short"):
        from ordinary import train_ordinary

        skip = job.config.get("blocks", 0)
        train_ordinary(
            BASE, data, out=folder, training=training, seed=seed, data_dir=arguments.data, skip=skip
        )
        return folder
    train_rationalizer(
        BASE, data, out=folder, config={"sparsity": SHARE, **job.config}, variant=job.variant, training=training,
        seed=seed, data_dir=arguments.data, regression=job.data == "scores",
    )  # fmt: skip
    return folder


def kept_of(
    model: Any, examples: Sequence[Example], chosen: Callable[[Any, int], np.ndarray]
) -> TokenCounts:
    """Counts of every text: tokens, tokens kept, marked by people, and both."""
    encodings = model.encode([Example(e.text, e.pair) for e in examples], truncate=True)
    rows: list[dict[str, int]] = []
    for number, (example, encoding) in enumerate(zip(examples, encodings, strict=True)):
        real = encoding.start >= 0
        own = np.asarray(chosen(encoding, number), bool) & real
        gold = np.zeros(len(encoding), bool)
        for span in example.gold:
            side = 1 if span.segment in ("second", "context") else 0
            gold |= (
                real
                & (encoding.segment == side)
                & (encoding.start < span.end)
                & (encoding.end > span.start)
            )
        rows.append(
            {
                "words": int(real.sum()),
                "kept": int(own.sum()),
                "marked": int(gold.sum()),
                "both": int((own & gold).sum()),
                "cut": int(encoding.truncated),
                "lost": int(
                    sum(human_marked_tokens(model.codec(example.text, example.pair), example))
                    - gold.sum()
                ),
                "second_words": int((real & (encoding.segment == 1)).sum()),  # of a pair
                "second_kept": int((own & (encoding.segment == 1)).sum()),
            }
        )
    return TokenCounts(**{key: [row[key] for row in rows] for key in rows[0]})


def judged(job: Job, seed: int, arguments: argparse.Namespace) -> Judgement:
    """What the model says and selects of every test text."""
    folder = made(job, seed, arguments)
    _, examples, _ = material(job.data, arguments.data)
    model = load(folder)
    plain = [Example(e.text, e.pair) for e in examples]
    encodings = model.encode(plain, truncate=True)
    own = model.selections(encodings)
    picked = kept_of(model, examples, lambda encoding, number: own[number].kept)
    picked = replace(picked, empty=[int(choice.empty) for choice in own])
    answers = model.predict(encodings)
    if job.data == "scores":
        train = material(job.data, arguments.data)[0]
        mean = float(np.mean([float(e.label) for e in train]))
        errors = [
            round((p.value - float(e.label)) ** 2, 6)
            for p, e in zip(answers, examples, strict=True)
        ]
        of_mean = [round((mean - float(e.label)) ** 2, 6) for e in examples]
        return Judgement(errors, {OWN: picked}, OtherAnswers(of_mean=of_mean))
    more = OtherAnswers()
    if job.data == "sst" and job.name in DISTURBED:
        more = robust(model, examples, arguments.data, seed)
    more = replace(more, every_token=every_token(model, encodings, examples))
    said = right(answers, examples)
    print(
        f"{job.data} {job.name} {seed}: accuracy {np.mean(said):.3f}, F1 {pooled_f1_of_rationalizer(picked):.3f}",
        flush=True,
    )
    return Judgement(said, {OWN: picked}, more)


def right(answers: Sequence[Any], examples: Sequence[Example]) -> list[int]:
    return [int(p.target.text == e.label) for p, e in zip(answers, examples, strict=True)]


def every_token(model: Any, encodings: Sequence[Any], examples: Sequence[Example]) -> list[int]:
    """1 where the same predictor is right when it reads all tokens."""
    import torch

    found = []
    for encoding, example in zip(encodings, examples, strict=True):
        ids = torch.tensor(encoding.ids)[None]
        types = None if encoding.types is None else torch.tensor(encoding.types)[None]
        with torch.inference_mode():
            logits = model.hf(ids, token_type_ids=types, rationale=torch.ones_like(ids)).logits[0]
        found.append(int(model.labels[int(logits.argmax())] == example.label))
    return found


def disturbed(examples: Sequence[Example], data_dir: Path, seed: int) -> dict[str, list[Example]]:
    """Test texts with a sentence of encyclopedia in front or behind, and with neutral words replaced by others."""
    rng = np.random.default_rng(seed)
    prose = open_dataset("wikitext2", "test", 4000, data_dir).examples
    sentences = [" ".join(e.text.split()[:15]) for e in prose if len(e.text.split()) >= 15]
    sentences = [
        text for text in sentences if "<unk>" not in text and "@" not in text and "=" not in text
    ]
    loaded = {w.lower() for e in examples for w, mark in words_of(e) if mark} | TURNING
    neutral = {w for e in examples for w, _ in words_of(e) if w.isalpha() and w.islower()}
    neutral = sorted(neutral - loaded)
    known = set(neutral)
    found: dict[str, list[Example]] = {"front": [], "behind": [], "words": []}
    for example in examples:
        extra = sentences[int(rng.integers(len(sentences)))]
        found["front"].append(Example(f"{extra} {example.text}", label=example.label))
        found["behind"].append(Example(f"{example.text} {extra}", label=example.label))
        changed = [
            neutral[int(rng.integers(len(neutral)))] if w in known and rng.random() < 0.3 else w
            for w, _ in words_of(example)
        ]
        found["words"].append(Example(" ".join(changed), label=example.label))
    return found


def words_of(example: Example) -> list[tuple[str, bool]]:
    """The words of a text, and whether people marked them."""
    found, at = [], 0
    for word in example.text.split(" "):
        marked = any(span.start < at + len(word) and at < span.end for span in example.gold)
        found.append((word, marked))
        at += len(word) + 1
    return found


def robust(model: Any, examples: Sequence[Example], data_dir: Path, seed: int) -> OtherAnswers:
    """1 where the model is right, text by text, of each kind of disturbed texts."""
    found = {}
    for kind, changed in disturbed(examples, data_dir, seed).items():
        encodings = model.encode([Example(e.text) for e in changed], truncate=True)
        found[kind] = right(model.predict(encodings), changed)
    return OtherAnswers(**found)


def post_hoc(job: Job, seed: int, arguments: argparse.Namespace) -> Judgement:
    """Rationales of the ordinary model by methods of attribution, as long as a rationalizer's."""
    lengths = lengths_of(arguments.out, job.data, seed)
    folder = made(job, seed, arguments)
    from ordinary import open_ordinary

    _, examples, _ = material(job.data, arguments.data)
    model = open_ordinary(folder)
    plain = [Example(e.text) for e in examples]
    said = right(model.predict(model.encode(plain, truncate=True)), examples)
    print(f"ordinary {seed}: accuracy {np.mean(said):.3f}", flush=True)
    rng = np.random.default_rng(seed)
    picked = {
        "random": kept_of(model, examples, lambda encoding, n: drawn(encoding, rng, lengths[n]))
    }
    sizes: list[np.ndarray] = []  # of gradients: what fills a search's rationale up
    for name, cheap in POST_HOC.items():
        chosen = examples if cheap else examples[:FEW]
        texts = [Example(e.text) for e in chosen]
        progress.report(0, 1, f"{name} of {len(texts)} texts")
        if name == "refined":
            found = rationalize(model, texts, "refined", units="token", truncate=True)
        else:
            found = explain(model, texts, name, units="token", truncate=True)
        if name == "gradient_norm":
            sizes = [np.asarray(each.scores, float) for each in found]
        picked[name] = kept_of(
            model,
            chosen,
            lambda encoding, n, f=found, g=sizes: best(encoding, f[n], lengths[n], g[n]),
        )
        print(
            f"ordinary {name} {seed}: F1 {pooled_f1_of_rationalizer(picked[name]):.3f}", flush=True
        )
    return Judgement(said, picked, robust(model, examples, arguments.data, seed))


def short(job: Job, seed: int, arguments: argparse.Namespace) -> Judgement:
    """What the blocks of PLMR's predictor say when they are trained on all tokens: are they its limit?"""
    folder = made(job, seed, arguments)
    from ordinary import open_ordinary

    _, examples, _ = material(job.data, arguments.data)
    model = open_ordinary(folder)
    said = right(
        model.predict(model.encode([Example(e.text) for e in examples], truncate=True)), examples
    )
    print(f"short {seed}: accuracy {np.mean(said):.3f}", flush=True)
    return Judgement(said)


def lengths_of(place: Path, data: str, seed: int) -> list[int]:
    """How many tokens the whole-encoder rationalizer of the same seed keeps of each text."""
    beside = read_recipe_lines(place).get((data, "whole"), {}).get(seed)
    if beside is None:
        raise InputError("Rationales of equal length need those of the part main: run that first.")
    kept: list[int] = beside["picked"]["own"]["kept"]
    return kept


def drawn(encoding: Any, rng: np.random.Generator, count: int) -> np.ndarray:
    """So many random tokens."""
    chosen = np.zeros(len(encoding), bool)
    chosen[rng.permutation(np.flatnonzero(encoding.start >= 0))[:count]] = True
    return chosen


def best(encoding: Any, explanation: Any, count: int, gradients: np.ndarray) -> np.ndarray:
    """The `count` tokens of largest score; what a search selected comes first, and gradients fill it up."""
    sizes = np.abs(np.asarray(explanation.scores, float))
    if explanation.selected is not None:
        sizes = np.where(explanation.selected, 1e6 + sizes, gradients)
    chosen = np.zeros(len(encoding), bool)
    free = np.flatnonzero(explanation.units.of >= 0)
    order = np.argsort(-sizes[explanation.units.of[free]], kind="stable")
    chosen[free[order[:count]]] = True
    return chosen


def work(job: Job, seed: int, arguments: argparse.Namespace) -> None:
    """One model, as far as it is not there, and its line at the end."""
    if seed in read_recipe_lines(arguments.out).get((job.data, job.name), {}):
        return
    judgement = {"ordinary": post_hoc, "short": short}.get(job.variant, judged)(
        job, seed, arguments
    )
    report = arguments.out / job.data / job.name / f"seed-{seed}" / "training.json"
    counts = json.loads(report.read_text(encoding="utf-8"))["counts"]
    left = (
        counts.get("train, left out: in dev or test as well", 0)
        + material(job.data, arguments.data)[2]
    )
    line = RationalizerLine(
        data=job.data,
        name=job.name,
        seed=seed,
        regression=job.data == "scores",
        left=left,
        said=judgement.said,
        picked=judgement.picked,
        more=judgement.more,
    )
    add_recipe_line(arguments.out, line.to_dict())


def main() -> int:
    return run_parts(__doc__, parts(), lambda job: job.seeds, work)


if __name__ == "__main__":
    sys.exit(main())
