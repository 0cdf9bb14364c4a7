"""The models of the catalog, for tests that need real ones."""

from __future__ import annotations

import pytest

import raison
from raison.core.errors import DownloadError, MissingExtra
from raison.models.protocol import Model

__all__ = ["load_or_skip"]


def load_or_skip(name: str) -> Model:
    try:
        return raison.load(name)
    except (DownloadError, MissingExtra) as error:
        pytest.skip(f"the real model {name} can't be had here: {error}")
