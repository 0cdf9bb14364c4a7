"""A tiny corpus, and a run of it that nothing has happened to."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import pytest

from raison.runs.driver import run
from raison.testing import tiny_hf
from tests.helpers.runs import spec_of, write_texts


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """A tiny model and a file of texts, one of which stands there twice."""
    place = tmp_path_factory.mktemp("corpus")
    hf, tokenizer = tiny_hf("bert", "classification")
    copy.deepcopy(hf).float().save_pretrained(place / "model")
    tokenizer.save_pretrained(place / "model")
    write_texts(place / "data.csv", 60)
    return place


@pytest.fixture(scope="session")
def done(folder, tmp_path_factory) -> Path:
    """A run that nothing has happened to."""
    place = tmp_path_factory.mktemp("runs") / "plain"
    status = run(place, spec_of(folder))
    assert status.state == "done" and status.failed == 0
    return place


@pytest.fixture
def copied(done, tmp_path) -> Path:
    place = tmp_path / "copy"
    shutil.copytree(done, place)
    return place


@pytest.fixture(scope="session")
def other(folder, tmp_path_factory):
    """Another run, by the same model."""
    place = tmp_path_factory.mktemp("runs") / "other"
    (place.parent / "texts.csv").write_text(
        "text\n" + "\n".join(f"the plot of film {k} is dull" for k in range(30))
    )
    run(
        place,
        spec_of(folder, data=str(place.parent / "texts.csv"), metrics=(), methods=("occlusion",)),
    )
    return place
