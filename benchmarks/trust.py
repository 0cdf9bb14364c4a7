"""How often the verdict of "Can I trust this?" is wrong, and how often it says something.

    python benchmarks/trust.py             # writes benchmarks/results/trust.md; needs SST-2; about 25 minutes
    python benchmarks/trust.py --quick     # a few sentences; prints and writes no file

Every sentence is explained by each method and judged. `random` must not be called supported in more than 2 % of the
sentences. The verdict has two guards against it: other seeds, and chance. So a random order that is the same with every
seed, as one from elsewhere may be, is counted apart: only chance can tell it, at its level of 2 %.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import torch
from measure import data_option, log, sentences, table, verdicts, write

import raison
from raison.models.protocol import Model
from raison.studies.trust import trust_each
from raison.studies.trust_verdict import VERDICTS, trust_verdict

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
                verdict, _ = trust_verdict(explanation, result.numbers, None)
                verdicts[FIXED].append(verdict)
        if number % 20 == 19:
            log(number + 1, {name: counts_in_order(each) for name, each in verdicts.items()})
    return verdicts


def counts_in_order(verdicts: Sequence[str]) -> list[int]:
    """How often each of VERDICTS stands in the list."""
    counts = Counter(verdicts)
    return [counts[verdict] for verdict in VERDICTS]


@dataclass(frozen=True)
class Supported:
    """How many verdicts are `supported`, as a share with its 95 % interval (Wilson's: right also for none of n)."""

    count: int
    size: int

    @property
    def share(self) -> float:
        return self.count / self.size

    @property
    def interval(self) -> tuple[float, float]:
        z = NormalDist().inv_cdf(0.975)
        middle = (self.count + z**2 / 2) / (self.size + z**2)
        half = (
            z
            / (self.size + z**2)
            * math.sqrt(self.count * (self.size - self.count) / self.size + z**2 / 4)
        )
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.share:.1%} ({low:.1%} … {high:.1%})"


def supported_in(verdicts: Sequence[str]) -> Supported:
    return Supported(list(verdicts).count("supported"), len(verdicts))


def report(found: Mapping[str, Sequence[str]], texts: int) -> list[str]:
    """The lines of the results: a table of verdicts, and what is required of them."""
    rows = []
    for name, each in found.items():
        rows.append(
            [name, str(len(each)), *map(str, counts_in_order(each)), str(supported_in(each))]
        )
    lines = [
        "## 1. Verdicts",
        "",
        f"The first {texts} sentences of SST-2's development set, without those of one word, which have no order.",
        f"The test against chance has a level of {ALLOWED:.0%}: so often a random order of one seed passes it.",
        "",
        *table(("method", "sentences", *VERDICTS, "supported, 95 % interval"), rows),
    ]
    checks = []
    if "random" in found:
        random = supported_in(found["random"])
        checks.append(
            (f"random: supported in at most {ALLOWED:.0%}", str(random), random.share <= ALLOWED)
        )
        fixed = supported_in(found[FIXED])
        level_is_held = fixed.interval[0] <= ALLOWED
        checks.append((f"{FIXED}: no more than the level explains", str(fixed), level_is_held))
    if "leave_one_out" in found:
        removed = supported_in(found["leave_one_out"])
        checks.append(("leave_one_out: supported in most", str(removed), removed.share > 0.5))
    return lines + verdicts(checks)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_option(parser)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument(
        "--quick", action="store_true", help="a few sentences; prints and writes no file"
    )
    args = parser.parse_args()
    torch.set_num_threads(1)
    texts = sentences(args.data, 8 if args.quick else args.sentences)
    model = raison.load("sentiment")

    found = verdicts_of(model, texts, args.methods)

    lines = report(found, len(texts))
    print("\n".join(lines), end="\n\n", flush=True)
    if not args.quick:
        write(
            "trust", "Trust: how often the verdict is wrong", "on the `sentiment` model.", 1, lines
        )


if __name__ == "__main__":
    main()
