"""Every number that raison gives, on small models and real ones: kept, and compared to the last bit.

    python benchmarks/golden.py write FILE.json.xz       # before a change of the code that must change no number
    python benchmarks/golden.py compare FILE.json.xz     # after it; exit code 1 if a number differs
    python benchmarks/golden.py compare FILE.json.xz --parts tiny metrics   # only these parts of it

All methods, searches and metrics on tiny models of each task; the default models on 20 reviews, with certificates; a
run's Parquet; an audit; a training of each kind. Numbers are compared by their paths; `RENAMED` says which keys have
other names now. Bits depend on the processor and the versions, so both files must be written on one machine: `write`
the old one from a worktree of the old commit (PYTHONPATH=OLD/src). About ten minutes on one thread.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import lzma
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import raison
from raison.core.registry import methods, metrics, searches
from raison.datasets.open import open_dataset

# old key -> new key, at any depth
RENAMED: dict[str, str] = {
    # of an audit
    "accuracy drop": "accuracy_drop",
    "f1 drop": "f1_drop",
    "gradient of words": "gradient_of_words",
    "leaving words out": "leaving_words_out",
    "gradient of states": "gradient_of_states",
    "leaving states out": "leaving_states_out",
    "influence, by facet": "influence_by_facet",
    "influence, same texts": "influence_same_texts",
    "frequent words": "frequent_words",
    "drawn words": "drawn_words",
    "head.norm.weight": "selector.norm.weight",
    "head.norm.bias": "selector.norm.bias",
    "head.linear.weight": "selector.linear.weight",
    "head.linear.bias": "selector.linear.bias",
    "head.offsets": "selector.offsets",
}
# what is measured in time, or says where and when something was made
TIMED = {
    "cost",
    "costs",
    "cpu_seconds",
    "seconds",
    "cpu",
    "versions",
    "made",
    "spent",
    "started",
    "finished",
    "milliseconds",
}

TINY = (
    ("bert", "classification"),
    ("deberta", "classification"),
    ("modernbert", "classification"),
    ("roberta", "tagging"),
    ("bert", "qa"),
    ("gpt2", "causal"),
    ("llama", "causal"),
    ("gemma", "causal"),
    ("t5", "seq2seq"),
    ("bart", "seq2seq"),
)
REAL_METHODS = (
    "leave_one_out",
    "integrated_gradients",
    "attn_lrp",
    "lrp",
    "masked_lrp",
    "gae",
    "alti",
    "kernel_shap(samples=64)",
)
TEXT = "The film is a lovely surprise, and nobody in the old town expected it."
QUESTION = ("Where does the river begin?", "It begins in the hills above the small town.")
LABELLED = {  # generated, so that a classifier can learn it
    "positive": ("lovely", "warm", "clever"),
    "negative": ("dull", "cold", "clumsy"),
}

Leaves = dict[str, Any]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Numbers, truth values and hashes with their paths; words are no numbers."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key not in TIMED:
                yield from leaves(part, f"{path}/{key}")
    elif isinstance(value, (list, tuple)):
        for place, part in enumerate(value):
            yield from leaves(part, f"{path}/{place}")
    elif (
        isinstance(value, bool)
        or value is None
        or (isinstance(value, str) and value.startswith("sha256:"))
    ):
        yield path, value
    elif isinstance(value, (int, float)):
        yield path, value if math.isfinite(value) else str(value)


def outcome(verb: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a verb returns, as JSON; a refusal is a result as well."""
    try:
        found = verb(*arguments, **options)
    except raison.RaisonError as error:
        return {"refused": f"sha256:{type(error).__name__}"}
    return [each.to_dict() for each in found] if isinstance(found, list) else found.to_dict()


def tiny_models() -> Iterator[tuple[str, Any]]:
    """Every method and search on tiny models of each task."""
    from raison.testing import tiny_model

    for family, task in TINY:
        model = tiny_model(family, task)
        text = QUESTION if task == "qa" else TEXT
        request = {"target": "the old town"} if task == "seq2seq" else {}
        for name in methods:
            if name not in searches:
                yield (
                    f"tiny/{family}/{task}/{name}",
                    outcome(raison.explain, model, text, name, **request),
                )
        for name in searches:
            yield (
                f"tiny/{family}/{task}/{name}",
                outcome(raison.rationalize, model, text, name, **request),
            )


def reviews(count: int) -> list[Any]:
    return open_dataset("reviews", limit=count).examples


def all_metrics() -> Iterator[tuple[str, Any]]:
    """Every metric, one by one, since each has needs of its own."""
    from raison.testing import tiny_model

    model = tiny_model("bert", "classification")
    for name in metrics:
        compared = ["leave_one_out", "gradient_norm"]
        yield f"metrics/{name}", outcome(raison.evaluate, model, reviews(4), compared, [name])


def real_models() -> Iterator[tuple[str, Any]]:
    """The default models on 20 real texts."""
    sentiment, writer = raison.load("sentiment"), raison.load("smollm2")
    texts = [example.text for example in reviews(20)]
    for name in REAL_METHODS:
        yield f"sentiment/{name}", outcome(raison.explain, sentiment, texts, name)
    for name in ("refined", "exact"):
        request = {"sufficient": "probability(tau=0.6)"}
        yield (
            f"sentiment/{name}",
            outcome(raison.rationalize, sentiment, texts[:8], name, **request),
        )
    short = [" ".join(text.split()[:14]) for text in texts]
    for name in ("leave_one_out", "input_x_gradient", "cp_lrp"):
        yield f"smollm2/{name}", outcome(raison.explain, writer, short, name)
    for name in ("greedy", "refined"):
        yield f"smollm2/{name}", outcome(raison.rationalize, writer, short, name)
    passages = {str(place): text for place, text in enumerate(texts[:4])}
    yield (
        "smollm2/ground",
        outcome(raison.ground, writer, "Is the film good?", passages, generate=6),
    )


def table(path: Path, count: int, seed: int) -> str:
    """A file of labelled sentences whose label stands in one word."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["text", "label"])
        for _ in range(count):
            label = ("negative", "positive")[int(rng.integers(2))]
            words = [
                str(rng.choice(LABELLED[label])),
                *rng.choice("the film a story and of it was".split(), 7),
            ]
            out.writerow([" ".join(map(str, rng.permutation(words))), label])
    return f"{path}(text=text, label=label)"


def command(*arguments: str) -> str:
    """What `raison ARGUMENTS` prints."""
    found = subprocess.run(
        [sys.executable, "-m", "raison", *arguments], capture_output=True, text=True
    )
    if found.returncode:
        raise SystemExit(f"raison {' '.join(arguments)}: {found.stderr[-2000:]}")
    return found.stdout


def weights(folder: Path) -> dict[str, Any]:
    """A hash of each tensor in the safetensors files of a folder."""
    from safetensors.torch import load_file

    found = {}
    for file in sorted(folder.rglob("*.safetensors")):
        for name, tensor in load_file(file).items():
            raw = tensor.contiguous().view(torch.uint8).numpy().tobytes()
            found[name] = "sha256:" + hashlib.sha256(raw).hexdigest()[:24]
    return found


def long_work() -> Iterator[tuple[str, Any]]:
    """Trainings, an audit and a run, by their commands."""
    with tempfile.TemporaryDirectory() as folder:
        yield from long_work_in(Path(folder))


def long_work_in(folder: Path) -> Iterator[tuple[str, Any]]:
    import pyarrow.parquet

    train, test = table(folder / "train.csv", 160, 1), table(folder / "test.csv", 24, 2)
    classifier, tied = folder / "classifier", folder / "tied"
    common = ("--epochs", "2", "--width", "16", "--data-dir", str(folder))
    command(
        "train",
        "classifier",
        "-d",
        train,
        "--out",
        str(classifier),
        "--normalizer",
        "entmax(alpha=1.5)",
        *common,
    )
    command(
        "train",
        "classifier",
        "-d",
        train,
        "--out",
        str(tied),
        "--tying",
        "1",
        "--encoder",
        "transformer",
        *common,
    )
    yield "train/classifier", weights(classifier)
    yield "train/tied", weights(tied)

    chooser = folder / "chooser"
    command(
        "train",
        "rationalizer",
        "-d",
        train,
        "--out",
        str(chooser),
        "--epochs",
        "2",
        "--sparsity",
        "0.3",
    )
    yield "train/rationalizer", weights(chooser)
    own = [
        json.loads(line)
        for line in command("explain", TEXT, "-m", str(chooser), "--json").splitlines()
    ]
    yield "train/rationalizer/own", own

    text = folder / "text.txt"
    text.write_text("\n\n".join(example.text for example in reviews(60)))
    settings = ("--steps", "4", "--lora", "2", "--length", "32", "--batch", "2")
    command(
        "train",
        "compatibility",
        "-d",
        str(text),
        "--out",
        str(folder / "able"),
        "-m",
        "stories15m",
        *settings,
    )
    yield "train/compatibility", weights(folder / "able")

    settings = ("--permutations", "2", "--adversary", "frozen", "--epochs", "2", "--show", "2")
    audited = command(
        "audit", "-m", str(classifier), "-d", test, "--train", train, "--json", *settings
    )
    yield "audit", json.loads(audited)

    run = folder / "run"
    wanted = (
        "-M",
        "leave_one_out",
        "-M",
        "gae",
        "-M",
        "refined",
        "--metric",
        "comprehensiveness",
        "--metric",
        "aopc",
    )
    command("run", "--out", str(run), "-m", "sentiment", "-d", "reviews", "--limit", "12", *wanted)
    command("store", "export", str(run), str(folder / "run.parquet"))
    rows = pyarrow.parquet.read_table(folder / "run.parquet").to_pylist()
    yield "run", [{key: parsed(value) for key, value in row.items()} for row in rows]


def parsed(value: Any) -> Any:
    """JSON in a column is looked into."""
    if isinstance(value, str) and value[:1] in "[{":
        return json.loads(value)
    return value


PARTS = {"tiny": tiny_models, "metrics": all_metrics, "real": real_models, "long": long_work}


def measured(parts: Sequence[str]) -> dict[str, dict[str, Leaves]]:
    """The numbers of each part, by the names of its results."""
    numbers: dict[str, dict[str, Leaves]] = {}
    for part in parts:
        numbers[part] = {}
        for name, value in PARTS[part]():
            numbers[part][name] = dict(leaves(value))
            print(f"{name}: {len(numbers[part][name])} numbers", file=sys.stderr, flush=True)
    return numbers


def is_timed(path: str) -> bool:
    """Whether a number is a time, also in a file that an older version of this script wrote."""
    return not TIMED.isdisjoint(path.split("/"))


def renamed(path: str) -> str:
    return "/".join(RENAMED.get(key, key) for key in path.split("/"))


def differences(old: dict[str, Leaves], new: dict[str, Leaves]) -> list[str]:
    """One line for each result whose numbers differ."""
    found = [f"{name}: is missing" for name in old if name not in new]
    found += [f"{name}: is new" for name in new if name not in old]
    for name in old.keys() & new.keys():
        before = {renamed(path): value for path, value in old[name].items() if not is_timed(path)}
        after = {path: value for path, value in new[name].items() if not is_timed(path)}
        changed = sorted(
            path for path in before.keys() & after.keys() if before[path] != after[path]
        )
        gone, come = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
        for path in changed[:3]:
            found.append(
                f"{name}{path}: {before[path]} became {after[path]} ({len(changed)} differ)"
            )
        if gone or come:
            found.append(
                f"{name}: {len(gone)} numbers are gone {gone[:3]}, {len(come)} are new {come[:3]}"
            )
    return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("do", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    args = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "HF_HUB_OFFLINE"):  # for the commands, too
        os.environ[name] = "1"
    torch.set_num_threads(1)
    new = measured(args.parts)
    results = {name: numbers for part in new.values() for name, numbers in part.items()}
    count = f"{sum(map(len, results.values()))} numbers in {len(results)} results"
    if args.do == "write":
        args.file.write_bytes(lzma.compress(json.dumps(new).encode()))
        print(count)
        return

    old = json.loads(lzma.decompress(args.file.read_bytes()))
    lines = []
    for part in args.parts:
        lines += differences(old[part], json.loads(json.dumps(new[part])))
    print("\n".join(lines) or f"{count}: all the same")
    raise SystemExit(bool(lines))


if __name__ == "__main__":
    main()
