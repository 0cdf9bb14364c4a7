"""The analogies of experiments, replaced by a few."""

from __future__ import annotations

from itertools import combinations

import pytest

from raison.core.records import Example
from raison.datasets.agreement_templates import fill_templates
from raison.datasets.loading import LoadedData
from raison.studies.reproduce.experiments import long_range_agreement
from tests.helpers.copier import PAIRS, TEMPLATE


@pytest.fixture
def colours(monkeypatch):
    """The analogies, replaced by four pairs of words and one template."""
    lines = list(combinations(PAIRS.items(), 2))
    meta = [{"relation": "colours", "words": [*one, *other]} for one, other in lines]
    read = LoadedData(
        "analogies",
        "test",
        "causal",
        (),
        [Example("x", id=str(k), meta=m) for k, m in enumerate(meta)],
    )
    monkeypatch.setattr(long_range_agreement, "open_dataset", lambda name, data=None: read)
    monkeypatch.setattr(
        long_range_agreement,
        "fill_templates",
        lambda examples: fill_templates(examples, (TEMPLATE,)),
    )
