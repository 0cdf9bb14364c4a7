"""Shared by all tests: quiet libraries, one thread, data and models where they can be had."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # tests never wait for the hub
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    import torch

    torch.set_num_threads(1)  # small tensors on shared cores: more threads are slower, and tests less alike


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets (RAISON_DATA, or shared/data beside the checkout)."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    found = Path(os.environ.get("RAISON_DATA", beside))
    if not found.is_dir():
        pytest.skip("needs the real data sets: set RAISON_DATA to their folder")
    return found


def opened(name: str):
    import raison
    from raison.errors import DownloadError, MissingExtra

    try:
        return raison.load(name)
    except (DownloadError, MissingExtra) as error:
        pytest.skip(f"the real model {name} can't be had here: {error}")


@pytest.fixture(scope="session")
def sentiment():
    return opened("sentiment")


@pytest.fixture(scope="session")
def smollm2():
    return opened("smollm2")
