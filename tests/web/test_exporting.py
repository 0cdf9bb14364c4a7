"""Explanations that a browser sends."""

from __future__ import annotations

import json

import pytest

import raison
from raison.core.errors import InputError
from raison.testing import tiny_model


def test_offsets_behind_the_end_of_a_text_are_refused():
    """A picture of a three-word text took gigabytes when its last token ended at 200,000,000."""
    from raison.web import schemas
    from raison.web.exporting import exported

    found = raison.explain(tiny_model("bert", "classification"), "a b c").to_dict()
    for kind in ("svg", "html"):
        assert exported(schemas.Export(explanations=[found], kind=kind)).status_code == 200
        bad = json.loads(json.dumps(found))
        bad["encoding"]["end"][-2] = 2 * 10**8
        with pytest.raises(InputError, match="no explanations of raison"):
            exported(schemas.Export(explanations=[bad], kind=kind))
