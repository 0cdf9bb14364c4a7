"""Texts that come with something known about them: trees, labels, rationales of people."""

from __future__ import annotations

from raison.datasets.base import Dataset, dataset
from raison.datasets.dataset_rows import Broken
from raison.datasets.loading import LoadedData
from raison.datasets.open import open_dataset
from raison.datasets.overlap import overlap

__all__ = ["Broken", "Dataset", "LoadedData", "dataset", "open_dataset", "overlap"]
