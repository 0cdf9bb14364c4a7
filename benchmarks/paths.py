"""Integrated gradients: what a path costs and how far the scores are from complete, next to peers and the bare model.

    python benchmarks/paths.py                      # prints the section; attributions.py writes it into the results

One thread, CPU time, the sides interleaved in one run, medians of ratios. All sides start from the texts: tokens,
prediction and path are part of the time. "bare" is the same number of forward and backward passes of the plain
transformers model at points of the path, in batches of equal length, and nothing else.

Every side but Interpreto's explains the predicted class's logit against [MASK] in place of every token but [CLS] and
[SEP]. Interpreto knows one number as a baseline for all texts, so it gets its own default, an embedding of 1e-6 for
every token, and its scores are compared with nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from measure import cpu, data_option, grown, log, peak_of, sentences, table, verdicts

import raison

STEPS = 50
FINE = 500
TOKENS = 4096  # of a bare batch, as in ours
BATCHES = (8, 16, 32, 64)  # tried for peers that want a batch size
BEST = " (the best way to batch)"
PROMPTS = (
    "The capital of France is",
    "Once upon a time there was a little",
    "The opposite of hot is",
    "She put the keys in her bag and left the",
)


@dataclass
class Side:
    """Something that explains texts: its scores [t] per text, or None where they are not comparable."""

    name: str
    run: Callable[[Sequence[str]], list[np.ndarray] | None]
    seconds: list[float] = field(default_factory=list)
    found: list[Any] | None = None
    points: float | None = STEPS

    def work(self, texts: Sequence[str]) -> None:
        self.found = self.run(texts)


# -- the sides -----------------------------------------------------------------------------------------------


def ours(model: Any, spec: str, texts: Sequence[str]) -> list[Any]:
    return raison.explain(model, list(texts), spec)


def ids_of(tokenizer: Any, text: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids [1 t] of a text and of its baseline."""
    ids = torch.tensor([tokenizer(text)["input_ids"]])
    absent = torch.full_like(ids, tokenizer.mask_token_id)
    absent[:, 0], absent[:, -1] = ids[:, 0], ids[:, -1]
    return ids, absent


def by_length(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> list[list[int]]:
    groups: dict[int, list[int]] = {}
    for number, (ids, _) in enumerate(pairs):
        groups.setdefault(ids.shape[1], []).append(number)
    return list(groups.values())


def bare(model: Any, texts: Sequence[str]) -> None:
    """Forward and backward passes at STEPS points of every path, without scores or anything else."""
    hf, table = model.hf, model.hf.get_input_embeddings()
    pairs = [ids_of(model.tokenizer, text) for text in texts]
    for group in by_length(pairs):
        size = pairs[group[0]][0].shape[1]
        points = [(number, (step + 0.5) / STEPS) for number in group for step in range(STEPS)]
        most = max(1, TOKENS // size)
        for start in range(0, len(points), most):
            rows = []
            for number, place in points[start : start + most]:
                own, absent = (table(ids[0]).detach() for ids in pairs[number])
                rows.append(torch.lerp(absent, own, place))
            batch = torch.stack(rows).requires_grad_(True)
            logits = hf(
                inputs_embeds=batch, attention_mask=torch.ones(batch.shape[:2], dtype=torch.long)
            ).logits
            torch.autograd.grad(logits[:, 0].sum(), batch)


def captum(model: Any, together: bool, size: int | None, texts: Sequence[str]) -> list[np.ndarray]:
    """LayerIntegratedGradients with its defaults; sentences one by one, or those of equal length together."""
    from captum.attr import LayerIntegratedGradients

    hf = model.hf
    forward = lambda ids, mask: hf(input_ids=ids, attention_mask=mask).logits  # noqa: E731
    method = LayerIntegratedGradients(forward, hf.get_input_embeddings())
    pairs = [ids_of(model.tokenizer, text) for text in texts]
    scores: list[Any] = [None] * len(texts)
    for group in by_length(pairs) if together else [[number] for number in range(len(texts))]:
        ids, absent = (torch.cat([pairs[number][side] for number in group]) for side in (0, 1))
        mask = torch.ones_like(ids)
        with torch.no_grad():
            best = forward(ids, mask).argmax(-1)
        how = {} if size is None else {"internal_batch_size": max(size, len(group))}
        found = method.attribute(
            ids,
            baselines=absent,
            target=best,
            additional_forward_args=(mask,),
            n_steps=STEPS,
            **how,
        )
        for number, row in zip(group, found.sum(-1).detach().double().numpy(), strict=True):
            scores[number] = row
    return scores


def interpreto(model: Any, size: int, texts: Sequence[str]) -> None:
    from interpreto import Granularity, IntegratedGradients
    from perturbation import named_as_classifier

    hf = named_as_classifier(model.hf)
    how = dict(granularity=Granularity.TOKEN, n_perturbations=STEPS, batch_size=size)
    IntegratedGradients(hf, model.tokenizer, **how).explain(list(texts))


def candidates(model: Any) -> dict[str, list[Side]]:
    """Ours and the bare model; and each peer as it comes, with other ways to batch behind it."""
    return {
        "": [
            Side("raison, adaptive", partial(ours, model, "integrated_gradients")),
            Side(
                f"raison, {STEPS} midpoints",
                partial(ours, model, f"integrated_gradients(steps={STEPS})"),
            ),
            Side(f"bare model, {STEPS} points", partial(bare, model)),
        ],
        "captum": [
            Side(f"Captum, {STEPS} steps", partial(captum, model, False, None)),
            *(
                Side(f"Captum, internal batches of {n}", partial(captum, model, False, n))
                for n in BATCHES
            ),
            Side("Captum, equal lengths together", partial(captum, model, True, None)),
            *(
                Side(f"Captum, equal lengths, batches of {n}", partial(captum, model, True, n))
                for n in BATCHES
            ),
        ],
        "interpreto": [
            Side(f"Interpreto, {STEPS} points", partial(interpreto, model, 4)),
            *(Side(f"Interpreto, batches of {n}", partial(interpreto, model, n)) for n in BATCHES),
        ],
    }


def sides_of(model: Any, few: Sequence[str]) -> list[Side]:
    """Ours, the bare model and the peers that are installed, each peer also with the batches that suit it best."""
    found: list[Side] = []
    for library, made in candidates(model).items():
        if not library:
            found += made
            continue
        try:
            made[0].run(few[:1])
        except Exception as error:  # not installed, or not for this model
            log(f"{library} is left out: {type(error).__name__}: {error}")
            continue
        times = {
            side.name: min(cpu(lambda side=side: side.run(few)) for _ in range(2))
            for side in made[1:]
        }
        log(times)
        best = min(made[1:], key=lambda side: times[side.name])
        found += [made[0], Side(best.name + BEST, best.run)]
    return found


# -- what is measured ------------------------------------------------------------------------------------------


def ends(model: Any, texts: Sequence[str]) -> np.ndarray:
    """[n] f(text) − f(baseline) of the predicted class, by the plain model."""
    found = []
    with torch.no_grad():
        for text in texts:
            own, absent = (
                model.hf(input_ids=ids).logits[0] for ids in ids_of(model.tokenizer, text)
            )
            best = int(own.argmax())
            found.append(float(own[best] - absent[best]))
    return np.array(found)


def quality(
    scores: Sequence[np.ndarray], fine: Sequence[np.ndarray], totals: np.ndarray
) -> list[str]:
    """Gaps, mean and largest, and how far the scores are from the fine ones, in per cent."""
    gaps = np.array(
        [abs(s.sum() - total) / abs(total) for s, total in zip(scores, totals, strict=True)]
    )
    apart = np.array(
        [np.linalg.norm(s - f) / np.linalg.norm(f) for s, f in zip(scores, fine, strict=True)]
    )
    return [f"{100 * x:.2f}" for x in (gaps.mean(), gaps.max(), apart.mean(), apart.max())]


def token_scores(found: Sequence[Any]) -> list[np.ndarray]:
    return [np.array(one.parts["token_scores"]) for one in found]


def peak(args: argparse.Namespace) -> float:
    """By how many MB the largest resident size grows when one side runs by itself."""
    model = raison.load("sentiment")
    texts = sentences(args.data, args.sentences)
    run = next(
        s.run
        for made in candidates(model).values()
        for s in made
        if s.name == args.peak.removesuffix(BEST)
    )
    return grown(lambda: run(texts[:1]), lambda: run(texts))


# -- the section -------------------------------------------------------------------------------------------------


def section(args: argparse.Namespace) -> list[str]:
    """The tables of this file, as Markdown."""
    torch.set_num_threads(1)
    model = raison.load("sentiment")
    texts = sentences(args.data, args.sentences)
    sides = sides_of(model, texts[: args.few])
    for side in sides:
        side.run(texts[:2])  # warm up
    for _ in range(args.repeats):
        for side in sides:
            side.seconds.append(cpu(lambda side=side: side.work(texts)))
            log(f"{side.name}: {side.seconds[-1]:.1f} s")
    for side in sides:
        if side.name.startswith("raison"):
            side.points = statistics.mean(one.cost["forwards"] for one in side.found)
            side.found = token_scores(side.found)
    fine = token_scores(ours(model, f"integrated_gradients(steps={FINE})", texts))
    totals = ends(model, texts)
    first = sides[0]
    rows = []
    for side in sides:
        told = ["-"] * 4 if side.found is None else quality(side.found, fine, totals)
        ratio = statistics.median(a / b for a, b in zip(side.seconds, first.seconds, strict=True))
        points = "-" if side.points is None else f"{side.points:.1f}"
        told_too = (
            "--peak",
            side.name,
            "--data",
            str(args.data),
            "--sentences",
            str(min(20, args.sentences)),
        )
        memory = peak_of(__file__, *told_too) if args.memory else "-"
        rows.append(
            (
                side.name,
                points,
                f"{statistics.median(side.seconds):.1f}",
                f"{ratio:.2f} ×",
                memory,
                *told,
            )
        )
    head = (
        "side",
        "points",
        "CPU s",
        "by ours",
        "MB",
        "gap %, mean",
        "largest",
        f"from {FINE} steps %, mean",
        "largest",
    )
    lines = ["## 2. Integrated gradients", "", *table(head, rows), ""]
    lines += [
        f"{len(texts)} SST-2 (dev) sentences, `sentiment` model. Points: passes forward and back per sentence. Gap: "
        "|Σ scores − (f(x) − f(x′))| / |f(x) − f(x′)|.",
        f"From {FINE} steps: L2 distance of the token scores to those of {FINE} midpoints, relative to their length. "
        "MB: what a side holds at most beyond the loaded model, in a process of its own, on 20 sentences after one.",
        "",
        *required(sides, rows),
        "",
        *rules(model, args),
        "",
        *baselines(args),
    ]
    return lines


def required(sides: Sequence[Side], rows: Sequence[Sequence[str]]) -> list[str]:
    """What was asked of this release, and whether it is so."""
    at = {
        side.name.partition(",")[0] + ("*" if side.name.endswith(BEST) else ""): side
        for side in sides[2:]
    }
    first, equal, plain = sides[0], sides[1], sides[2]
    # the two more points are the ends of the path, for the gap
    over = statistics.median(a / b for a, b in zip(equal.seconds, plain.seconds, strict=True))
    over *= plain.points / equal.points
    checks = [("at most 1.1 × the bare model per step", f"{over:.2f} ×", over <= 1.1)]
    for name, side in at.items():
        if name.startswith("Captum"):
            ratio = statistics.median(
                a / b for a, b in zip(side.seconds, first.seconds, strict=True)
            )
            checks.append(
                (f"adaptive at least 1.8 × as fast as {side.name}", f"{ratio:.2f} ×", ratio >= 1.8)
            )
    mean, largest, _, apart = map(float, rows[0][5:])
    checks.append(
        (
            "adaptive: every gap below 1 %, mean at most 0.3 %",
            f"{largest} %, {mean} %",
            largest < 1 and mean <= 0.3,
        )
    )
    checks.append((f"adaptive: scores within 1 % of {FINE} steps", f"{apart} %", apart < 1))
    return verdicts(checks)


def rules(model: Any, args: argparse.Namespace) -> list[str]:
    """Equal steps, equal steps tripled until they settle, and the adaptive rule, on sentences of their own."""
    texts = sentences(args.data, 400 + args.rules)[400:]
    found = {
        n: ours(model, f"integrated_gradients(steps={n})", texts) for n in (9, 27, 50, 81, 243)
    }
    fine, totals = token_scores(found[243]), ends(model, texts)
    rows = []
    for n in (27, 50, 81):
        rows.append((f"{n} midpoints", f"{n}", *quality(token_scores(found[n]), fine, totals)))
    tripled, points = [], []
    for number in range(len(texts)):
        for before, after in ((9, 27), (27, 81), (81, 243)):
            old, new = (np.array(found[n][number].parts["token_scores"]) for n in (before, after))
            settled = np.linalg.norm(new - old) < 0.05 * np.linalg.norm(new)
            if settled and abs(found[after][number].diagnostics["completeness_gap"]) < 0.01:
                break
        tripled.append(new)
        points.append(after)
    name = "midpoints tripled, 9 to 243, until the gap is below 1 % and the scores move by less than 5 %"
    rows.append((name, f"{np.mean(points):.1f}", *quality(tripled, fine, totals)))
    ends_too = ours(model, "integrated_gradients", texts)
    points = [one.diagnostics["points"] for one in ends_too]
    rows.append(
        (
            "adaptive: only bad stretches halved",
            f"{np.mean(points):.1f}",
            *quality(token_scores(ends_too), fine, totals),
        )
    )
    head = ("rule", "points", "gap %, mean", "largest", "from 243 steps %, mean", "largest")
    return [
        "### Which rule",
        "",
        f"{len(texts)} other sentences. Equal steps spend most of their points where the gradient is flat.",
        "",
        *table(head, rows),
    ]


def baselines(args: argparse.Namespace) -> list[str]:
    """Completeness against several baselines, on models with RMSNorm."""
    rows = []
    for name in ("stories15m", "smollm2"):
        try:
            model = raison.load(name)
        except raison.RaisonError as error:
            log(f"{name} is left out: {error}")
            continue
        for baseline in ("zero", "mean", "pad"):
            row = [f"`{name}`", baseline]
            for spec in (f"steps={args.coarse}", f"steps={3 * args.coarse}", ""):
                spec = f"integrated_gradients(baseline={baseline}{', ' if spec else ''}{spec})"
                try:
                    found = ours(model, spec, PROMPTS[: args.prompts])
                except raison.RaisonError as error:
                    row.append(str(error).partition(":")[0])
                    continue
                gaps = [one.diagnostics["completeness_gap"] for one in found]
                told = f"{100 * np.mean(gaps):.1f} / {100 * max(gaps):.1f}"
                if "steps" not in spec:
                    told += f" ({np.mean([one.diagnostics['points'] for one in found]):.0f})"
                row.append(told)
            rows.append(row)
            log(row)
    head = (
        "model",
        "baseline",
        f"{args.coarse} midpoints",
        f"{3 * args.coarse} midpoints",
        "adaptive (points)",
    )
    return [
        "### Which baseline, where norms are RMS",
        "",
        f"Gap in per cent, mean / largest, of the next token's log-probability after {args.prompts} short prompts.",
        "",
        *table(head, rows),
    ]


def options(given: Sequence[str] | None = None, quick: bool = False) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_option(parser)
    parser.add_argument("--sentences", type=int, default=8 if quick else 100)
    parser.add_argument("--repeats", type=int, default=1 if quick else 3)
    parser.add_argument(
        "--few",
        type=int,
        default=2 if quick else 8,
        help="sentences on which batch sizes are tried",
    )
    parser.add_argument(
        "--rules", type=int, default=3 if quick else 20, help="sentences of the comparison of rules"
    )
    parser.add_argument("--prompts", type=int, default=1 if quick else 4)
    parser.add_argument(
        "--coarse", type=int, default=27, help="equal steps of the comparison of baselines"
    )
    parser.add_argument("--memory", action=argparse.BooleanOptionalAction, default=not quick)
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    return parser.parse_args(given)


if __name__ == "__main__":
    torch.set_num_threads(1)
    asked = options()
    print(json.dumps(peak(asked)) if asked.peak else "\n".join(section(asked)))
