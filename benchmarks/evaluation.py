"""raison evaluate: how much of its time is the model's, and what other libraries take for the same metrics.

    python benchmarks/evaluation.py             # writes benchmarks/results/evaluation.md; needs SST-2
    python benchmarks/evaluation.py --quick     # a few sentences; prints and writes no file

One thread, CPU time. The share of the model is measured from inside: every forward pass of the view and every backward
pass is timed; what is left is tokens, units, ranking, masks, numbers and intervals. Interpreto and ferret measure
the token scores of the same six methods; ours reads those scores from a file, as from anywhere else.
"""

from __future__ import annotations

import argparse
import copy
import cProfile
import io
import json
import pstats
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import HERE, cpu, data_option, log, sentences, table, verdicts, write

import raison
from raison.core.records import Example
from raison.studies.evaluate_methods import evaluate

METHODS = (
    "leave_one_out",
    "input_x_gradient",
    "integrated_gradients",
    "attention_rollout",
    "gae",
    "random",
)
METRICS = ("comprehensiveness", "sufficiency", "aopc", "deletion", "loo_correlation")
STEPS = 20


class Inside:
    """CPU seconds spent in the passes of a model, forward and back."""

    def __init__(self, model: Any) -> None:
        self.model, self.spent, self.started = model, 0.0, 0.0

    def __enter__(self) -> Inside:
        view = self.model.runner.view
        self.hooks = [
            view.register_forward_pre_hook(lambda *_: self.start()),
            view.register_forward_hook(lambda *_: self.stop()),
        ]
        self.grad = torch.autograd.grad
        torch.autograd.grad = self.timed(self.grad)  # only in this process, and put back below
        return self

    def timed(self, action: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            self.start()
            try:
                return action(*args, **kwargs)
            finally:
                self.stop()

        return run

    def start(self) -> None:
        self.started = time.process_time()

    def stop(self) -> None:
        self.spent += time.process_time() - self.started

    def __exit__(self, *_: Any) -> None:
        torch.autograd.grad = self.grad
        for hook in self.hooks:
            hook.remove()


def share(args: argparse.Namespace) -> tuple[list[str], tuple[str, str, bool]]:
    """How much of an evaluation is the model's."""
    model = raison.load("sentiment")
    texts = sentences(args.data, args.sentences)
    evaluate(model, texts[:4], METHODS, METRICS)  # warm up
    found = []
    for _ in range(args.repeats):
        with Inside(model) as inside:
            whole = cpu(lambda: evaluate(model, texts, METHODS, METRICS))
        found.append((inside.spent / whole, whole))
        log(f"inside the model {inside.spent:.1f} of {whole:.1f} s")
    part = statistics.median(each for each, _ in found)
    seconds = statistics.median(whole for _, whole in found)
    profile = cProfile.Profile()
    profile.runcall(evaluate, model, texts, METHODS, METRICS)
    out = io.StringIO()
    pstats.Stats(profile, stream=out).sort_stats("tottime").print_stats(12)
    told = [line.split(None, 5) for line in out.getvalue().splitlines()]
    told = [
        row for row in told if len(row) == 6 and row[1].replace(".", "").isdigit()
    ]  # not its headings
    rows = [(row[1], row[0], f"`{Path(row[5]).name}`") for row in told]
    lines = [
        "## 1. Whose time it is",
        "",
        f"{len(METHODS)} methods ({', '.join(METHODS)}) × {len(METRICS)} metrics ({', '.join(METRICS)}) on "
        f"{len(texts)} SST-2 sentences, `sentiment` model: {seconds:.1f} s of CPU time, {part:.0%} of it in its "
        "own passes.",
        "",
        *table(("CPU s", "calls", "where"), rows),
    ]
    return lines, ("at least 80 % of the CPU time inside the model", f"{part:.1%}", part >= 0.8)


def six_methods(model: Any, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Token scores of all methods, as any tool could have written them: text by text, method after method."""
    found = []
    for method in METHODS:
        for number, one in enumerate(raison.explain(model, list(texts), method, units="token")):
            tokens, scores = list(one.units.names), np.asarray(one.scores).tolist()
            found.append(
                {
                    "id": str(number),
                    "text": texts[number],
                    "method": method,
                    "tokens": tokens,
                    "scores": scores,
                }
            )
    return found


def written(folder: str, records: Sequence[dict[str, Any]]) -> Path:
    file = Path(folder) / "made.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in records))
    return file


def interpreto_side(
    args: argparse.Namespace, texts: Sequence[str]
) -> tuple[list[str], tuple[str, str, bool]] | None:
    """Deletion and insertion of the same scores: by Interpreto, and by ours."""
    try:
        import interpreto
        from interpreto.attributions.metrics import Deletion, Insertion
        from perturbation import named_as_classifier
    except Exception as error:
        log(f"Interpreto is left out: {type(error).__name__}: {error}")
        return None
    model = raison.load("sentiment")
    hf = named_as_classifier(model.hf)
    explainer = interpreto.Occlusion(
        hf, model.tokenizer, granularity=interpreto.Granularity.TOKEN, batch_size=32
    )
    empty = explainer.explain(
        list(texts)
    )  # its own records, into which the scores of every method are put
    records, made = six_methods(model, texts), []
    for record in records:
        one = copy.copy(empty[int(record["id"])])
        scores = torch.tensor(record["scores"])
        assert one.attributions.shape[-1] == len(scores), record
        one.attributions = scores.reshape(one.attributions.shape).to(one.attributions.dtype)
        made.append(one)
    with tempfile.TemporaryDirectory() as folder:
        file = written(folder, records)
        specs = [f"deletion(steps={STEPS})", f"insertion(steps={STEPS})"]
        examples = [Example(text, id=str(number)) for number, text in enumerate(texts)]
        ours = lambda how: evaluate(  # noqa: E731
            model, examples, metrics=specs, explanations=file, removal=how, units="token"
        )
        best = min(
            (4, 32, 128),
            key=lambda n: cpu(lambda: both(Deletion, Insertion, hf, model, made[:4], n, STEPS)),
        )
        sides = {
            "raison": lambda: ours("delete"),
            "raison, removed words become [MASK]": lambda: ours("mask_token"),
            "Interpreto": lambda: both(Deletion, Insertion, hf, model, made, best, STEPS),
        }
        times = interleaved(sides, args.repeats)
    ratio = ratio_of(times, "Interpreto")
    lines = [
        "## 2. Interpreto",
        "",
        f"Deletion and insertion, {STEPS} steps, of the token scores of the same six methods on {len(texts)} "
        "sentences. Interpreto puts [MASK] for removed tokens; ours leaves them out of the computation by default. "
        f"Interpreto in batches of {best}, its best. Ours includes reading the scores, finding their tokens, "
        "predicting, and the intervals.",
        "",
        *table(("side", "CPU s", "by ours"), rows_of(times)),
    ]
    return lines, (
        "at least 1.5 × faster than Interpreto's metrics",
        f"{ratio:.2f} ×",
        ratio >= 1.5,
    )


def interleaved(sides: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """CPU seconds of every side, in turn."""
    next(iter(sides.values()))()  # warm up
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, run in sides.items():
            times[name].append(cpu(run))
        log({name: round(spent[-1], 2) for name, spent in times.items()})
    return times


def ratio_of(times: dict[str, list[float]], name: str) -> float:
    """How much longer a side takes than the first one."""
    return statistics.median(
        a / b for a, b in zip(times[name], next(iter(times.values())), strict=True)
    )


def rows_of(times: dict[str, list[float]]) -> list[tuple[str, str, str]]:
    return [
        (name, f"{statistics.median(spent):.1f}", f"{ratio_of(times, name):.2f} ×")
        for name, spent in times.items()
    ]


def both(
    deletion: Any, insertion: Any, hf: Any, model: Any, made: Any, size: int, steps: int
) -> None:
    for kind in (deletion, insertion):
        kind(hf, model.tokenizer, batch_size=size, n_perturbations=steps).evaluate(made)


def ferret_side(
    args: argparse.Namespace, texts: Sequence[str]
) -> tuple[list[str], tuple[str, str, bool]] | None:
    """Comprehensiveness, sufficiency and τ with leave-one-out of the same scores: by ferret, and by ours."""
    if args.ferret is None:
        log("ferret is left out: name the Python of an environment that has it with --ferret")
        return None
    from safetensors.torch import save_file

    import raison.models.mean_pooled_bert as pooled

    model = raison.load("sentiment")
    encodings = model.encode([Example(text) for text in texts])
    labels = [int(model.resolve_targets(encoding)[0][1].ids[0]) for encoding in encodings]
    records = six_methods(model, texts)
    with tempfile.TemporaryDirectory() as folder:
        model.hf.config.save_pretrained(folder)
        model.tokenizer.save_pretrained(folder)
        save_file(
            {name: tensor.contiguous() for name, tensor in model.hf.state_dict().items()},
            f"{folder}/weights.safetensors",
        )
        found = subprocess.run(
            [str(args.ferret), str(HERE / "ferret_side.py"), folder, pooled.__file__], text=True, capture_output=True,
            input=json.dumps({"texts": list(texts), "labels": labels, "repeats": args.repeats, "made": records}),
        )  # fmt: skip
        if found.returncode:
            log(f"ferret is left out: {found.stderr.splitlines()[-1]}")
            return None
        theirs = json.loads(found.stdout.splitlines()[-1])
        file = written(folder, records)
        examples = [Example(text, id=str(number)) for number, text in enumerate(texts)]
        shares = "(shares=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0))"
        specs = [f"comprehensiveness{shares}", f"sufficiency{shares}", "loo_correlation"]
        ours = lambda: evaluate(model, examples, metrics=specs, explanations=file, units="token")  # noqa: E731
        times = interleaved({"raison": ours}, args.repeats)
    times["ferret"] = theirs["seconds"]
    ratio = ratio_of(times, "ferret")
    lines = [
        "## 3. ferret",
        "",
        "Comprehensiveness and sufficiency at ten shares and τ with leave-one-out, of the token scores of the same six "
        f"methods on {len(texts)} sentences; ferret in an environment of its own (it wants transformers below 5), "
        "right before ours. It ranks positive scores only, so all get one number added. It runs leave-one-out "
        "again for every explanation; ours once for each sentence.",
        "",
        *table(("side", "CPU s", "by ours"), rows_of(times)),
    ]
    return lines, ("at least 3 × faster than ferret's metrics", f"{ratio:.2f} ×", ratio >= 3)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_option(parser)
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--sections", type=int, nargs="*", choices=(1, 2, 3), default=(1, 2, 3))
    parser.add_argument(
        "--ferret", type=Path, help="the Python of an environment with ferret-xai, for section 3"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a few sentences; prints and writes no file"
    )
    args = parser.parse_args()
    if args.quick:
        args.sentences, args.repeats = 8, 1
    torch.set_num_threads(1)
    texts = sentences(args.data, args.sentences)
    sides = {
        1: lambda: share(args),
        2: lambda: interpreto_side(args, texts),
        3: lambda: ferret_side(args, texts),
    }
    for number in args.sections:
        found = sides[number]()
        if found is None:
            continue
        lines, check = found
        lines += verdicts([check])
        print("\n".join(lines), end="\n\n", flush=True)
        if not args.quick:
            about = "on the `sentiment` model; one thread, CPU seconds, sides interleaved, medians of ratios."
            write("evaluation", "Evaluation: what measuring costs", about, number, lines)


if __name__ == "__main__":
    main()
