"""A classifier with attention that was trained."""

from __future__ import annotations

import pytest

from tests.helpers.small_classifiers import SMALL, reviews


@pytest.fixture(scope="session")
def taught(tmp_path_factory):
    from raison.attention_models.train import train_classifier

    folder = tmp_path_factory.mktemp("taught")
    train_classifier(reviews(300), out=folder / "m", config={"width": 16}, training=SMALL)
    return folder / "m"
