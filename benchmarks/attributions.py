"""Attributions: what every kind of method costs, next to the bare model and to other libraries.

    python benchmarks/attributions.py               # writes benchmarks/results/attributions.md; needs SST-2
    python benchmarks/attributions.py --sections 2  # only one of its sections
    python benchmarks/attributions.py --quick       # a few sentences; prints and writes no file

1. methods that look inside a forward and a backward pass (insides.py)
2. integrated gradients (paths.py)
3. methods that remove words (perturbation.py)

Captum, Interpreto and SHAP take part if they are installed beside raison: pip install captum interpreto shap.
"""

from __future__ import annotations

import argparse

import insides
import paths
import perturbation
import torch
from measure import log, write

SECTIONS = {1: insides, 2: paths, 3: perturbation}
TITLE = "Attributions: what they cost"
ABOUT = "on the `sentiment` and `smollm2` models; one thread, CPU seconds, sides interleaved, medians of ratios."


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sections", type=int, nargs="*", choices=SECTIONS, default=tuple(SECTIONS)
    )
    parser.add_argument(
        "--quick", action="store_true", help="a few sentences of each; prints and writes no file"
    )
    given, rest = parser.parse_known_args()
    torch.set_num_threads(1)
    for number in given.sections:
        log(f"section {number}")
        lines = SECTIONS[number].section(SECTIONS[number].options(rest, given.quick))
        print("\n".join(lines), end="\n\n", flush=True)
        if not given.quick:
            write("attributions", TITLE, ABOUT, number, lines)


if __name__ == "__main__":
    main()
