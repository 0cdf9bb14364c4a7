"""Methods that remove words: CPU time and memory against the bare model and against other libraries.

    python benchmarks/perturbation.py            # prints the section; attributions.py writes it into the results

One thread, CPU time, the sides interleaved in one run, medians of ratios: timings of a busy machine are noisy, ratios
within one run are not. What is timed on our side is the whole `raison.explain` call on the list of texts; on the other
side a loop over the texts, where a library takes one at a time, with everything prepared before the clock starts.

Each library runs at its defaults and at the batch size that is fastest for it. Captum and SHAP's kernel explainer get a
function of keep-vectors over the same words as ours, with the tokenizer's mask token for removed words, so that all
sides make the same number of evaluations. Libraries that can't be imported are named and left out.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import statistics
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from measure import cpu, data_option, grown, log, peak_of, sentences, table, verdicts

import raison
from raison.core.units import group_tokens

SAMPLES = 256  # evaluations of each sampling method; enough for the longest sentence's units
WIDE = (32, 128)  # batch sizes from which each library may have its best
PASSAGE = (
    "The jokes are stale and the pacing is dull, but the ending is a wonderful surprise that nobody in the audience "
    "expected, and the actors, who had little to do until then, suddenly seem to enjoy themselves as much as we did, "
    "so that in the end one leaves the old theatre with a smile, and"
)


def library(name: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except Exception as error:  # a peer that is not installed, or not for these versions
        log(f"{name} can't be imported: {error}")
        return None


# -- the sides -----------------------------------------------------------------------------------------------


@dataclass
class Side:
    """One way to do the work: `run(texts)`; `slow` ones run on a few texts only."""

    name: str
    run: Callable[[Sequence[Any]], Any]
    slow: bool = False
    peer: bool = True
    share: float = 1.0  # of the evaluations that were asked for

    def work(self, texts: Sequence[Any]) -> None:
        found = self.run(texts)
        self.share = found if isinstance(found, float) else 1.0


@dataclass
class Work:
    """One text as everybody gets it: ids, and what may be removed as one."""

    text: str
    ids: torch.Tensor  # [t]
    unit: torch.Tensor  # [t] unit of each token, -1: may not be removed
    label: int

    @property
    def size(self) -> int:
        return int(self.unit.max()) + 1


def works(model: Any, texts: Sequence[str], level: str) -> list[Work]:
    found = []
    for text, encoding in zip(
        texts, model.encode([raison.Example(text) for text in texts]), strict=True
    ):
        target = model.resolve_targets(encoding)[0][1]
        units = group_tokens(encoding, level, target.free(encoding))
        ids, of = (torch.from_numpy(a.copy()) for a in (encoding.ids, units.of))
        found.append(Work(text, ids, of, target.ids[0]))
    return found


def ours(model: Any, method: str, level: str, work: Sequence[Work]) -> Any:
    return raison.explain(model, [one.text for one in work], method, units=level)


def logits_of(hf: Any, ids: torch.Tensor, writes: bool) -> torch.Tensor:
    """[n v] what a careful user writes: no cache, and of a language model only the last row."""
    extra: dict[str, Any] = {"logits_to_keep": 1, "use_cache": False} if writes else {}
    with torch.inference_mode():
        out = hf(input_ids=ids, attention_mask=torch.ones_like(ids), **extra).logits
    return out[:, -1] if writes else out


def bare(hf: Any, writes: bool, work: Sequence[Work]) -> None:
    """The plain model on the same rows: the text, and in one batch the text without each of its tokens."""
    for one in work:
        free = torch.nonzero(one.unit >= 0)[:, 0]
        rows = torch.stack([torch.cat([one.ids[:t], one.ids[t + 1 :]]) for t in free.tolist()])
        logits_of(hf, one.ids[None], writes)
        logits_of(hf, rows, writes)


def masked(hf: Any, one: Work, absent: int, writes: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function of keep-vectors [n u] for libraries that know no text."""
    given = one.unit < 0

    def forward(z: torch.Tensor) -> torch.Tensor:
        seen = given | (z[:, one.unit.clamp(min=0)] > 0.5)
        return logits_of(hf, torch.where(seen, one.ids, absent), writes)[:, one.label]

    return forward


def captum_side(
    attr: Any, kind: str, how: dict[str, Any], hf: Any, absent: int, writes: bool, work: Any
) -> None:
    for one in work:
        explainer = getattr(attr, kind)(masked(hf, one, absent, writes))
        settings = {key: value(one) if callable(value) else value for key, value in how.items()}
        explainer.attribute(torch.ones(1, one.size), baselines=torch.zeros(1, one.size), **settings)


def layer_side(attr: Any, hf: Any, absent: int, wide: int, work: Sequence[Work]) -> None:
    """Captum's ablation of an embedding layer, token by token."""
    for one in work:
        forward = lambda ids, label=one.label: logits_of(hf, ids, False)[:, label]  # noqa: E731
        layer = hf.get_input_embeddings()
        empty = layer(torch.full_like(one.ids, absent))[None].detach()
        mask = torch.arange(len(one.ids))[None, :, None]
        attr.LayerFeatureAblation(forward, layer).attribute(
            one.ids[None], layer_baselines=empty, layer_mask=mask, perturbations_per_eval=wide
        )


def interpreto_side(explainer: Any, work: Sequence[Work]) -> None:
    explainer([one.text for one in work])


def interpreto_next(explainer: Any, tokenizer: Any, work: Sequence[Work]) -> None:
    for one in work:
        explainer(one.text, tokenizer.decode([one.label]))


def kernel_side(shap: Any, hf: Any, absent: int, samples: int, work: Sequence[Work]) -> None:
    for one in work:
        forward = masked(hf, one, absent, False)
        explainer = shap.KernelExplainer(
            lambda z, f=forward: f(torch.from_numpy(z)).numpy(),
            np.zeros((1, one.size)),
            silent=True,
        )
        explainer.shap_values(np.ones((1, one.size)), nsamples=samples, silent=True, l1_reg=False)


def text_side(
    shap: Any,
    algorithm: str,
    hf: Any,
    tokenizer: Any,
    samples: Callable[[Work], int],
    wide: int,
    work: Sequence[Work],
) -> float:
    """SHAP's explainers of texts: they cut the text up and call the model with strings.

    They round the number of evaluations that they may make, so the share that they made is returned.
    """
    made = 0

    def forward(texts: Any) -> np.ndarray:
        nonlocal made
        made += len(texts)
        batch = tokenizer(list(map(str, texts)), return_tensors="pt", padding=True)
        with torch.inference_mode():
            return hf(**batch).logits.numpy()

    explainer = shap.Explainer(
        forward, shap.maskers.Text(tokenizer), algorithm=algorithm, silent=True
    )
    for one in work:
        explainer(
            [one.text],
            max_evals=max(samples(one), 2 * (one.size + 8) + 1),
            batch_size=wide,
            silent=True,
        )
    return made / sum(map(samples, work))


def llm_side(attr: Any, hf: Any, tokenizer: Any, work: Sequence[Work]) -> None:
    """Captum's interface for language models, at its defaults."""
    for one in work:
        explainer = attr.LLMAttribution(attr.FeatureAblation(hf), tokenizer)
        given = attr.TextTokenInput(one.text, tokenizer)
        explainer.attribute(given, target=tokenizer.decode([one.label]))


# -- measuring -----------------------------------------------------------------------------------------------


def best(sides: Sequence[Side], work: Sequence[Any], named: str | None = None) -> Side:
    """The fastest of the same library's sides on a few texts; in a process of its own, the one that is named."""
    for side in sides:
        if named is not None and named.endswith(f"/{side.name}"):
            return side
    return min(sides, key=lambda side: cpu(lambda: side.run(work)))


def compared(
    title: str, sides: Sequence[Side], work: Sequence[Any], few: int, repeats: int
) -> tuple[list, dict]:
    """A row for each side; ratios are medians over the repeats of this side's time by ours on the same texts.

    The time of a side that says which share of the evaluations it made is divided by that share for the ratio.
    """
    for side in sides:  # warm up
        cpu(lambda side=side: side.run(work[:1]))
    spent: dict[str, list[float]] = {side.name: [] for side in sides}
    base: dict[bool, list[float]] = {True: [], False: []}  # ours, on few texts and on all
    slow = any(side.slow for side in sides)
    for _ in range(repeats):
        for side in sides:
            seconds = cpu(lambda side=side: side.work(work[:few] if side.slow else work))
            spent[side.name].append(seconds)
            log(f"{title}: {side.name} {seconds:.2f} s")
            if side is sides[0]:
                base[False].append(seconds)
                if slow:
                    base[True].append(cpu(lambda side=side: side.run(work[:few])))
    rows, ratios = [], {}
    for side in sides:
        pairs = zip(spent[side.name], base[side.slow], strict=True)
        ratios[side.name] = statistics.median(a / b / side.share for a, b in pairs)
        count = min(few, len(work)) if side.slow else len(work)
        seconds = statistics.median(spent[side.name])
        name = (
            side.name if side.share == 1 else f"{side.name} ({side.share:.0%} of the evaluations)"
        )
        rows.append((title if side is sides[0] else "", name, str(count), f"{seconds:.2f}",
                     "" if side is sides[0] else f"{ratios[side.name]:.2f} ×"))  # fmt: skip
    return rows, ratios


def peak(args: argparse.Namespace) -> float:
    """By how many MB the largest resident size grows when one side runs by itself."""
    model_name, _, name = args.peak.partition("/")
    model = raison.load(model_name)
    work, sides = prepared(model, args, 20)
    side = next(side for side in sides if side.name == name)
    return grown(lambda: side.run(work[:1]), lambda: side.run(work))


# -- what is compared ----------------------------------------------------------------------------------------


def named_as_classifier(hf: Any) -> Any:
    """The same weights under a class name that Interpreto takes for a classifier."""
    same = copy.copy(hf)
    same.__class__ = type("MeanPooledForSequenceClassification", (type(hf),), {})
    return same


def prepared(model: Any, args: argparse.Namespace, count: int) -> tuple[list[Work], list[Side]]:
    """Texts and sides of leave_one_out, token by token."""
    writes = model.generates
    if writes:
        ids = model.encode([raison.Example(PASSAGE)])[0].ids
        texts = [
            model.codec.text(ids[: args.length]),
            model.codec.text(ids[-args.length :]).strip(),
        ][:count]
    else:
        texts = sentences(args.data, count)
    work = works(model, texts, "token")
    tokenizer = model.tokenizer
    absent = (
        tokenizer.mask_token_id if tokenizer.mask_token_id is not None else tokenizer.eos_token_id
    )
    sides = [
        Side("raison", partial(ours, model, "leave_one_out", "token"), peer=False),
        Side("bare model", partial(bare, model.hf, writes), peer=False),
    ]
    if (attr := library("captum.attr")) is not None:
        ablation = partial(captum_side, attr, "FeatureAblation")
        at_once = {"perturbations_per_eval": lambda one: one.size}
        sides.append(
            Side(
                "Captum FeatureAblation, all at once",
                partial(ablation, at_once, model.hf, absent, writes),
            )
        )
        sides.append(
            Side(
                "Captum FeatureAblation",
                partial(ablation, {}, model.hf, absent, writes),
                slow=not writes,
            )
        )
        if writes:
            sides.append(
                Side("Captum LLMAttribution", partial(llm_side, attr, model.hf, tokenizer))
            )
        else:
            wide = [Side(f"Captum LayerFeatureAblation, {n} at once", partial(layer_side, attr, model.hf, absent, n))
                    for n in WIDE]  # fmt: skip
            sides.append(best(wide, work[:3], args.peak))
            sides.append(
                Side(
                    "Captum LayerFeatureAblation",
                    partial(layer_side, attr, model.hf, absent, 1),
                    slow=True,
                )
            )
    if (interpreto := library("interpreto")) is not None:
        hf = model.hf if writes else named_as_classifier(model.hf)
        token = interpreto.Granularity.TOKEN
        run = partial(interpreto_next, tokenizer=tokenizer) if writes else interpreto_side
        call = lambda explainer: lambda work: run(explainer, work=work)  # noqa: E731
        made = {
            n: interpreto.Occlusion(hf, tokenizer, granularity=token, batch_size=n)
            for n in (4, *WIDE)
        }
        wide = [Side(f"Interpreto Occlusion, batches of {n}", call(made[n])) for n in WIDE]
        sides.append(best(wide, work[:1] if writes else work[:3], args.peak))
        sides.append(Side("Interpreto Occlusion", call(made[4]), slow=not writes))
    return work, sides


def sampled(
    model: Any, texts: Sequence[str], samples: int
) -> list[tuple[str, list[Work], list[Side]]]:
    """Texts and sides of the sampling methods, word by word, at equal numbers of evaluations."""
    work = works(model, texts, "word")
    hf, tokenizer = model.hf, model.tokenizer
    absent = tokenizer.mask_token_id
    orders = 8  # of shapley_sampling, each also backwards; Captum gets as many single orders
    compare = {
        "KernelSHAP": [
            Side(
                "raison",
                partial(ours, model, f"kernel_shap(samples={samples})", "word"),
                peer=False,
            )
        ],
        "LIME": [
            Side("raison", partial(ours, model, f"lime(samples={samples})", "word"), peer=False)
        ],
        "Shapley sampling": [
            Side(
                "raison",
                partial(ours, model, f"shapley_sampling(permutations={orders})", "word"),
                peer=False,
            )
        ],
    }
    if (attr := library("captum.attr")) is not None and library("sklearn") is not None:
        for title, kind, count in (("KernelSHAP", "KernelShap", samples), ("LIME", "Lime", samples),
                                   ("Shapley sampling", "ShapleyValueSampling", 2 * orders)):  # fmt: skip
            how = {"n_samples": count}
            run = lambda kind=kind, **how: partial(captum_side, attr, kind, how, hf, absent, False)  # noqa: E731
            wide = [
                Side(f"Captum {kind}, {n} at once", run(**how, perturbations_per_eval=n))
                for n in WIDE
            ]
            compare[title].append(best(wide, work[:2]))
            compare[title].append(Side(f"Captum {kind}", run(**how), slow=True))
    if (interpreto := library("interpreto")) is not None:
        classifier = named_as_classifier(hf)
        for title, kind in (("KernelSHAP", "KernelShap"), ("LIME", "Lime")):
            make = partial(
                getattr(interpreto, kind), classifier, tokenizer, n_perturbations=samples
            )
            made = {
                n: make(batch_size=n, granularity=interpreto.Granularity.WORD) for n in (4, *WIDE)
            }
            wide = [
                Side(f"Interpreto {kind}, batches of {n}", partial(interpreto_side, made[n]))
                for n in WIDE
            ]
            compare[title].append(best(wide, work[:2]))
            compare[title].append(
                Side(f"Interpreto {kind}", partial(interpreto_side, made[4]), slow=True)
            )
    if (shap := library("shap")) is not None:
        compare["KernelSHAP"].append(
            Side("SHAP Kernel", partial(kernel_side, shap, hf, absent, samples))
        )
        for name, title, made in (
            ("permutation", "Shapley sampling", lambda one: 2 * orders * one.size),
            ("partition", "KernelSHAP", lambda one: samples),
        ):
            side = partial(text_side, shap, name, hf, tokenizer, made, WIDE[0])
            compare[title].append(Side(f"SHAP {name.capitalize()}, on texts", side))
    return [(title, work, sides) for title, sides in compare.items()]


def section(args: argparse.Namespace) -> list[str]:
    """The tables of this file, as Markdown."""
    torch.set_num_threads(1)
    head = ("method", "side", "texts", "CPU s", "by ours")
    model = raison.load("sentiment")
    checks: list[tuple[str, str, bool]] = []

    work, sides = prepared(model, args, args.sentences)
    rows, ratios = compared("leave_one_out", sides, work, args.few, args.repeats)
    against_bare = 1 / ratios["bare model"]
    checks.append(
        ("leave_one_out at most 1.1 × the bare model", f"{against_bare:.2f} ×", against_bare <= 1.1)
    )
    checks.append(ahead("leave_one_out never behind a library", sides, ratios, 1.0))
    for title, some, others in sampled(model, sentences(args.data, args.sampled), SAMPLES):
        found, ratios = compared(title, others, some, args.few, max(1, args.repeats - 1))
        rows += found
        checks.append(ahead(f"{title} at least 1.7 × faster than any library", others, ratios, 1.7))
    lines = ["## 3. Removing words", "", "### From sentences", "", *table(head, rows), ""]
    lines += [
        f"SST-2 (dev) with the `sentiment` model: leave_one_out by tokens on {args.sentences} sentences, the others by "
        f"words on {args.sampled}, {SAMPLES} samples (16 orders). Slow defaults run on {args.few} sentences and are "
        "compared with ours on those.",
        "",
    ]

    writer = raison.load("smollm2")
    work, sides = prepared(writer, args, 2)
    rows, ratios = compared("leave_one_out", sides, work, args.few, args.repeats)
    checks.append(
        ahead("smollm2: leave_one_out at least 1.5 × faster than any library", sides, ratios, 1.5)
    )
    lines += ["### From the context of a language model", "", *table(head, rows), ""]
    lines += [f"The next token after {args.length} tokens, `smollm2`, {len(work)} texts.", ""]

    if args.memory:
        rows = []
        for name, these in (("sentiment", prepared(model, args, 20)[1]), ("smollm2", sides)):
            for side in these:
                if not side.slow:
                    told = ("--peak", f"{name}/{side.name}", "--data", str(args.data))
                    rows.append((name, side.name, peak_of(__file__, *told)))
        lines += ["### Memory", "", *table(("model", "side", "MB"), rows), ""]
        lines += ["What a side holds at most beyond the loaded model in leave_one_out on 20 sentences or 2 texts, "
                  "each side in a process of its own, after one text as a warm-up.", ""]  # fmt: skip
    lines += verdicts(checks)
    return lines


def ahead(
    what: str, sides: Sequence[Side], ratios: dict[str, float], least: float
) -> tuple[str, str, bool]:
    """Whether the fastest library takes at least so many times as long as ours."""
    peers = [side.name for side in sides if side.peer]
    if not peers:
        return what, "no library installed", False
    fastest = min(peers, key=lambda name: ratios[name])
    return what, f"{ratios[fastest]:.2f} × ({fastest})", ratios[fastest] >= least


def options(given: Sequence[str] | None = None, quick: bool = False) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_option(parser)
    few = "sentences on which slow defaults run"
    parser.add_argument("--repeats", type=int, default=1 if quick else 3)
    parser.add_argument(
        "--sentences", type=int, default=10 if quick else 100, help="for leave_one_out"
    )
    parser.add_argument(
        "--sampled", type=int, default=3 if quick else 20, help="sentences for the sampling methods"
    )
    parser.add_argument("--few", type=int, default=1 if quick else 5, help=few)
    parser.add_argument(
        "--length", type=int, default=60, help="tokens of the language model's context"
    )
    parser.add_argument("--memory", action=argparse.BooleanOptionalAction, default=not quick)
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    return parser.parse_args(given)


if __name__ == "__main__":
    torch.set_num_threads(1)
    asked = options()
    print(json.dumps(peak(asked)) if asked.peak else "\n".join(section(asked)))
