"""Shared by all tests: quiet libraries, one thread, data and models where they can be had."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from tests.helpers.head_statistics import statistics  # noqa: F401 - a fixture
from tests.helpers.paths import RECIPES, ROOT
from tests.helpers.treebanks import sentences, treebank  # noqa: F401 - fixtures

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # tests never wait for the hub
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    import torch

    torch.set_num_threads(
        1
    )  # small tensors on shared cores: more threads are slower, and tests less alike


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets (RAISON_DATA, or shared/data beside the checkout)."""
    beside = ROOT.parent / "shared" / "data"
    found = Path(os.environ.get("RAISON_DATA", beside))
    if not found.is_dir():
        pytest.skip("needs the real data sets: set RAISON_DATA to their folder")
    return found


@pytest.fixture
def open_recipe():
    """Opens a command of recipes/ as a module; recipes find each other, as they do from their own folder."""
    import importlib.util
    import sys

    made = []

    def opened(name: str):
        spec = importlib.util.spec_from_file_location(name, RECIPES / f"{name}.py")
        made.append(name)
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield opened
    for name in made:
        sys.modules.pop(name, None)


def load_or_skip(name: str):
    from tests.helpers import real_models  # late, since the environment is set above

    return real_models.load_or_skip(name)


@pytest.fixture(scope="session")
def sentiment():
    return load_or_skip("sentiment")


@pytest.fixture(scope="session")
def sentiment_rationalizer():
    return load_or_skip("sentiment-rationalizer")


@pytest.fixture(scope="session")
def smollm2():
    return load_or_skip("smollm2")


@pytest.fixture(scope="session")
def smollm2_compatible():
    return load_or_skip("smollm2-compatible")


@pytest.fixture(scope="session")
def stories15m():
    return load_or_skip("stories15m")


@pytest.fixture(scope="session")
def opus_at_hand(request):
    """Skips where opus-mt-zh-en would have to be made within `make test`: a download and some seconds of conversion."""
    from raison.models.catalog import model_cache
    from raison.models.catalog.opus_mt_zh_en import NAME, VERSION

    if "not full" in request.config.option.markexpr and model_cache.damage_of_folder(
        model_cache.cache_root() / "models" / f"{NAME}-{VERSION}"
    ):
        pytest.skip(
            f"{NAME} is not in the cache: run make test-full, or raison.load({NAME!r}), once"
        )


@pytest.fixture(scope="session")
def opus(opus_at_hand):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")
        return load_or_skip("opus-mt-zh-en")


def pytest_terminal_summary(terminalreporter):
    """Write what the long tests did where RAISON_FULL_REPORT says (make test-full)."""
    place = os.environ.get("RAISON_FULL_REPORT")
    if not place:
        return
    stats = {name: terminalreporter.stats.get(name, []) for name in ("passed", "failed", "skipped")}
    rows = [
        f"| {report.nodeid.split('::')[-1]} | {result} | {report.duration:.0f} | {measured(report)} |"
        for result, reports in stats.items()
        for report in reports
        if "test_full.py" in report.nodeid and (report.when == "call" or result == "skipped")
    ]
    counts = ", ".join(f"{len(reports)} {name}" for name, reports in stats.items())
    head = ["# Last run of `make test-full`", "", f"Whole suite: {counts}. The long tests:", ""]
    table = ["| test | result | seconds | measured |", "|---|---|---|---|", *sorted(rows), ""]
    Path(place).write_text("\n".join(head + table), encoding="utf-8")


def measured(report) -> str:
    """What a test has put on record (record_property)."""
    return ", ".join(f"{name}: {value}" for name, value in report.user_properties)
