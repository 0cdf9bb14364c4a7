"""How often the verdict of "Can I trust this?" is wrong, and how often it says something.

    python benchmarks/trust.py             # writes benchmarks/results/trust.md; needs SST-2; about 25 minutes
    python benchmarks/trust.py --quick     # a few sentences; prints and writes no file

Every sentence is explained by each method and judged. `random` must not be called supported in more than 2 % of the
sentences. The verdict has two guards against it: other seeds, and chance. So a random order that is the same with every
seed, as one from elsewhere may be, is counted apart: only chance can tell it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

import torch
from measure import data_option, log, sentences, table, verdicts, write

import raison
from raison.metrics.statistics import mean_interval
from raison.models.protocol import Model
from raison.studies.trust import trust_each
from raison.studies.trust_verdict import VERDICTS, judge

METHODS = ("random", "leave_one_out", "integrated_gradients", "attn_lrp", "attention_rollout")
FIXED = "a random order that no seed changes"
ALLOWED = 0.02


def verdicts_of(model: Model, texts: list[str], methods: Sequence[str]) -> dict[str, list[str]]:
    """The verdicts about each method's explanations; of `random` also those that it would have without other seeds."""
    verdicts: dict[str, list[str]] = {method: [] for method in methods}
    if "random" in methods:
        verdicts[FIXED] = []
    for number, text in enumerate(texts):
        explanations = [raison.explain(model, text, method, seed=number) for method in methods]
        if len(explanations[0].units) < 2:
            continue
        results = trust_each(model, explanations, seed=number)
        for method, explanation, result in zip(methods, explanations, results, strict=True):
            verdicts[method].append(result.verdict)
            if method == "random":
                verdict, _ = judge(explanation, result.numbers, None)
                verdicts[FIXED].append(verdict)
        if number % 20 == 19:
            log(number + 1, {name: counts_in_order(each) for name, each in verdicts.items()})
    return verdicts


def counts_in_order(verdicts: list[str]) -> list[int]:
    """How often each of VERDICTS stands in the list."""
    counts = Counter(verdicts)
    return [counts[verdict] for verdict in VERDICTS]


def row_of(name: str, found: list[str]) -> list[str]:
    """Counts of each verdict, and the share of `supported` with its interval."""
    share = mean_interval([verdict == "supported" for verdict in found])
    interval = f"{share.estimate:.1%} ({share.low:.1%} … {share.high:.1%})"
    return [name, str(len(found)), *map(str, counts_in_order(found)), interval]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data_option(parser)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--quick", action="store_true", help="a few sentences; prints and writes no file")
    args = parser.parse_args()
    torch.set_num_threads(1)
    texts = sentences(args.data, 8 if args.quick else args.sentences)
    model = raison.load("sentiment")

    found = verdicts_of(model, texts, args.methods)

    rows = [row_of(name, verdicts) for name, verdicts in found.items()]
    lines = [
        "## 1. Verdicts",
        "",
        f"The first {len(texts)} sentences of SST-2's development set, without those of one word, which have no order.",
        "",
        *table(("method", "sentences", *VERDICTS, "supported, 95 % interval"), rows),
    ]
    checks = []
    for name in ("random", FIXED):
        if name in found:
            share = found[name].count("supported") / len(found[name])
            checks.append((f"{name}: supported in at most {ALLOWED:.0%}", f"{share:.1%}", share <= ALLOWED))
    if "leave_one_out" in found:
        share = found["leave_one_out"].count("supported") / len(found["leave_one_out"])
        checks.append(("leave_one_out: supported in most", f"{share:.1%}", share > 0.5))
    lines += verdicts(checks)
    print("\n".join(lines), end="\n\n", flush=True)
    if not args.quick:
        write("trust", "Trust: how often the verdict is wrong", "on the `sentiment` model.", 1, lines)


if __name__ == "__main__":
    main()
