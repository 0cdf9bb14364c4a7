"""MiniLM that selects the words it judges a sentence by, and reads no others: shipped with raison.

The adapter is what `raison train rationalizer -m minilm --data "sst_trees(distance=1)" --sparsity 0.25 --lora 16
--lr 2e-4 --epochs 5 --half --bfloat16 --out FOLDER` writes; its training.json holds the settings and how it went.
The tokenizer is the base's and left out. It was trained from labels; the words that people marked only measured it.
"""

from __future__ import annotations

from pathlib import Path

from raison.models.catalog import register_catalog_folder
from raison.models.catalog.minilm import BYTES

register_catalog_folder(
    "sentiment-rationalizer",
    "Selects a quarter of a sentence and tells its sentiment from that alone: MiniLM with raison's adapter (SST-2).",
    "Apache-2.0",
    BYTES,
    Path(__file__).parent / "shipped" / "sentiment-rationalizer",
)
