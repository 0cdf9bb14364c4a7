"""Train and audit the classifiers of P2 (Meister et al. 2021) and P3 (Tutek & Šnajder 2020), and those of neither.

    python recipes/attention.py --data DATA_DIR --out FOLDER --glove PLACE [--wider PLACE] [--part NAME ...]

Every model is a folder FOLDER/DATA/NAME/seed-K that `raison.load` opens, with audit.json beside its weights and a line
in FOLDER/numbers.jsonl; what has a line is not made again, so the command can be stopped and given again. Parts can be
run alone (and side by side); without --part all are run, which takes about fifteen core-hours. `raison reproduce
P2-table1 --model audits=FOLDER` (and P2-…, P3-…) reads the lines; those of docs/reproduction.md are in
benchmarks/results/attention.jsonl, which can be given in place of FOLDER.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from parts import run_parts

from raison.attention_models.train import train_classifier
from raison.models.load import load
from raison.studies.audit.run_audit import Audit, audit
from raison.studies.evaluate_methods import evaluate
from raison.studies.reproduce.audit_lines import line_of_audit
from raison.studies.reproduce.recipe_lines import add_recipe_line, read_recipe_lines
from raison.training.training_folder import write_training_file

DATA = {
    "sst": "sst2",
    "imdb": "imdb",
    "20news": "news_sport",
    "ag": "ag_news(topics=(World, Business))",
}
SEEDS = {"sst": 5, "imdb": 3, "20news": 3, "ag": 3}
DECISIVE = 8  # seeds of what decides the papers' claims: of five the smallest p is 0.06
DEEP = {"sst": 300, "imdb": 60, "20news": 60, "ag": 150}  # texts of an audit for what costs most
LONGEST = 202  # two hundred words between [CLS] and [SEP]
LAMBDAS = (-100, -30, -10, -3, -1, -0.3, 0, 0.3, 0.6, 0.9)
ENDS = ("sparsegen-100", "sparsegen0.9")
OF_FEW_TEXTS = (
    "tau_",
    "entropy_",
    "instance_",
)  # numbers of an audit that are measured on `DEEP` texts
SWEPT = (0.1, 0.3, 1.0, 3.0, 10.0)  # λ of the adversaries of P3's Figure 1
# tied and masked models learn slowly, and three epochs without gain end them too soon; so all of P3's have them all
LONG = {"patience": 15}
P3 = {
    "base": ({}, {}),
    "concat": ({"combine": "concat"}, {}),
    "residual": ({"combine": "residual"}, {}),
    "tying": ({}, {"tying": 10.0}),
    "mlm": ({}, {"mlm": 1.0}),
}


@dataclass(frozen=True)
class Job:
    """One kind of model on one data set."""

    data: str
    name: str
    config: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    adversaries: tuple[float, ...] = ()  # λ of trained ones
    seeds: int = 0  # as many as its data set gets, where none are given
    deep: int = 0  # texts for what costs most, likewise; where they are given, no number of the line comes from them
    vectors: str = "glove"  # the option that names its word vectors


def encoder(kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """P2's two: a BiLSTM with additive attention, a transformer of two layers with dot attention."""
    if kind == "bilstm":
        return {"encoder": "bilstm", "attention": "additive"}, {}
    return {"encoder": "transformer", "layers": 2, "attention": "dot"}, {"lr": 3e-4}


def p2(data: str, kinds: Sequence[str], adversaries: tuple[float, ...] = ()) -> Iterator[Job]:
    for kind in ("bilstm", "transformer"):
        config, training = encoder(kind)
        for normalizer in kinds:
            name = f"{kind}-{normalizer.replace('(lam=', '').rstrip(')')}"
            yield Job(data, name, {**config, "normalizer": normalizer}, training, adversaries)


def p3(data: str, attentions: Sequence[str] = ("additive", "dot")) -> Iterator[Job]:
    for attention in attentions:
        for name, (config, training) in P3.items():
            yield Job(
                data,
                f"{attention}-{name}",
                {"attention": attention, **config},
                {**LONG, **training},
            )


def parts() -> dict[str, list[Job]]:
    others = ("imdb", "20news", "ag")
    both = [
        Job("sst", f"both-{norm}-{name}", {"normalizer": norm, **config}, {**LONG, **training})
        for norm in ("sparsemax", "entmax")
        for name, (config, training) in P3.items()
        if name != "concat"
    ]
    layered = [
        Job(
            "sst",
            f"layers{count}-{name}",
            {"layers": count, **P3[name][0]},
            {**LONG, **P3[name][1]},
        )
        for count in (2, 3)
        for name in ("base", "concat", "tying", "mlm")
    ]
    ablated = [
        Job("sst", f"tying-{delta:g}", {}, {**LONG, "tying": delta})
        for delta in (0.01, 0.1, 1.0, 20.0, 30.0)
    ]
    ablated += [
        Job("sst", f"mlm-{eta:g}", {}, {**LONG, "mlm": eta}) for eta in (0.1, 0.3, 3.0, 5.0)
    ]
    wide = [  # GloVe of more numbers, and the words of a pretrained encoder, 384 each
        *(
            Job(
                "sst",
                f"wide-glove-{name}",
                P3[name][0],
                {**LONG, **P3[name][1]},
                seeds=DECISIVE,
                vectors="wider",
            )
            for name in ("base", "tying", "mlm")
        ),
        Job("sst", "wide-base", {}, {**LONG, "embeddings": "minilm"}, seeds=3),
        Job(
            "sst",
            "wide-transformer",
            encoder("transformer")[0],
            {"embeddings": "minilm", "lr": 1e-4},
            seeds=3,
        ),
    ]
    swept_p2 = list(p2("sst", [f"sparsegen(lam={lam:g})" for lam in LAMBDAS if lam]))
    swept = [
        Job("sst", f"swept-{name}", P3[name][0], {**LONG, **P3[name][1]}, SWEPT, seeds=DECISIVE)
        for name in ("base", "tying", "mlm")
    ]
    return {
        "p2-sst": [
            replace(job, seeds=DECISIVE) for job in p2("sst", ("softmax", "sparsemax"), (1.0,))
        ],
        "p3-additive": [replace(job, seeds=DECISIVE) for job in p3("sst", ["additive"])],
        "p3-dot": [replace(job, seeds=DECISIVE) for job in p3("sst", ["dot"])],
        "wide": quick(wide),
        "both": decisive(both, ("both-sparsemax-base", "both-sparsemax-tying")),
        "p2-sweep": decisive(swept_p2, [job.name for job in swept_p2 if job.name.endswith(ENDS)]),
        "p3-layers": decisive(quick(layered), ("layers3-base", "layers3-tying", "layers3-mlm")),
        "p3-ablation": decisive(quick(ablated), ["tying-0.1"]),
        "p2-others": [job for data in others[:2] for job in p2(data, ("softmax", "sparsemax"))],
        "p3-others": quick([job for data in others for job in p3(data)]),
        "adversaries": quick(swept),
    }


def decisive(jobs: Sequence[Job], names: Sequence[str]) -> list[Job]:
    """With more seeds of those that a claim is about."""
    return [replace(job, seeds=DECISIVE) if job.name in names else job for job in jobs]


def quick(jobs: Sequence[Job]) -> list[Job]:
    """Where the papers ask nothing that takes long."""
    return [replace(job, deep=2) for job in jobs]


def made(job: Job, seed: int, arguments: argparse.Namespace) -> None:
    """Train and audit one model, as far as it is not there."""
    folder = arguments.out / job.data / job.name / f"seed-{seed}"
    if not (folder / "training.json").exists():
        place = getattr(arguments, job.vectors)
        training = {
            "embeddings": str(place),
            "longest": LONGEST,
            "patience": 3,
            "epochs": 15,
            **job.training,
        }
        if "mlm" not in training:  # which tells words by the frozen table
            training.setdefault("freeze", False)
        train_classifier(
            DATA[job.data],
            out=folder,
            config=job.config,
            training=training,
            seed=seed,
            data_dir=arguments.data,
        )
    if not (folder / "audit.json").exists():
        found = audit(
            load(folder), DATA[job.data], deep=job.deep or DEEP[job.data], data_dir=arguments.data, show=3, seed=seed,
            adversaries=("frozen", "unfrozen") if job.adversaries else (), lambdas=job.adversaries,
        )  # fmt: skip
        with write_training_file(folder / "audit.json") as half:
            half.write_text(found.to_json() + "\n", encoding="utf-8")
        told = json.loads((folder / "training.json").read_text(encoding="utf-8"))
        drop = found.replaced.permuted.f1_drop
        print(
            f"{job.data} {job.name} {seed}: F1 {found.f1:.3f}, permuted −{drop:.3f}, "
            f"{told['cpu_minutes']:.1f} min of training",
            flush=True,
        )


def judged_attention(job: Job, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """How the attention of a model of SST does as an explanation: words that people marked, and removing words."""
    if job.data != "sst":
        return {}
    folder = arguments.out / job.data / job.name / f"seed-{seed}"
    found = evaluate(
        load(folder), "sst_trees(distance=1)", ["own"], ["aopc", "auprc"], split="test", limit=400, seed=seed,
        data_dir=arguments.data,
    )  # fmt: skip
    return {key: found.cell("own", key).value for key in ("aopc", "auprc")}


def work(job: Job, seed: int, arguments: argparse.Namespace) -> None:
    """One model, as far as it is not there, and its line at the end."""
    if seed in read_recipe_lines(arguments.out).get((job.data, job.name), {}):
        return
    if getattr(arguments, job.vectors) is None:
        print(f"{job.data} {job.name} {seed}: left out, since it wants --{job.vectors}", flush=True)
        return
    made(job, seed, arguments)
    report = arguments.out / job.data / job.name / f"seed-{seed}" / "audit.json"
    audited = Audit.from_json(report.read_text(encoding="utf-8"))
    line = line_of_audit(
        audited, data=job.data, name=job.name, seed=seed, **judged_attention(job, seed, arguments)
    ).to_dict()
    if job.deep:  # so few texts that no number of the line may come from them
        line["numbers"] = {
            key: value for key, value in line["numbers"].items() if not key.startswith(OF_FEW_TEXTS)
        }
    add_recipe_line(arguments.out, line)


def main() -> int:
    more = {"glove": "GloVe vectors: a file, or glove.npy with words.txt"}
    also = {"wider": "GloVe vectors of more numbers, for the part wide"}
    return run_parts(__doc__, parts(), lambda job: job.seeds or SEEDS[job.data], work, more, also)


if __name__ == "__main__":
    sys.exit(main())
