"""Make the head statistics that raison ships for its default models, from the dev split of UD English EWT.

    python recipes/heads.py --data DATA_DIR --out src/raison/models/catalog/shipped

Reads DATA_DIR/ud_english_ewt/en_ewt-ud-dev.conllu.gz (2,001 sentences, CC BY-SA 4.0) and writes OUT/MODEL/heads.json.
Nothing is random: same weights, same library versions, same machine: same file, byte for byte.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch

import raison
from raison.datasets.conllu import read_conllu
from raison.methods.head_masks import head_masks
from raison.models.catalog.model_cache import cache_root, origin_of_folder
from raison.studies.head_statistics import head_statistics

TREEBANK = "ud_english_ewt/en_ewt-ud-dev.conllu.gz"
CORPUS = "UD English EWT dev"
# whose weights each model's attention comes from, as the cache calls them
WEIGHTS = {"sentiment": "minilm-1", "smollm2": "smollm2-1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with ud_english_ewt/")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder to write MODEL/heads.json into"
    )
    parser.add_argument("--models", nargs="+", default=list(WEIGHTS), choices=list(WEIGHTS))
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    sentences = read_conllu(args.data / TREEBANK)
    for name in args.models:
        clock = time.process_time()
        found = head_statistics(raison.load(name), sentences, corpus=CORPUS)
        extra = {
            "weights": origin_of_folder(cache_root() / "models" / WEIGHTS[name]),
            "command": "python recipes/heads.py --data DATA_DIR --out FOLDER",
        }
        found = replace(found, about={**found.about, **extra})
        place = args.out / name
        place.mkdir(parents=True, exist_ok=True)
        found.save(place / "heads.json")
        synt, pos = head_masks(found)
        told = {
            "model": name,
            "syntactic": int(synt.sum()),
            "positional": int(pos.sum()),
            "blocks without": [
                b for b, some in enumerate((synt | pos).any(1).tolist()) if not some
            ],
            "content": found.content()[:16],
        }
        print(json.dumps(told))
        print(f"{name}: {time.process_time() - clock:.0f} s of CPU time", file=sys.stderr)


if __name__ == "__main__":
    main()
