"""Functions as models."""

from __future__ import annotations

import pytest

import raison
from raison.core.errors import ModelError

TEXT = "The old town lies on a hill"


def test_functions_that_raise_are_named():
    def broken(texts):
        raise KeyError("no such thing")

    with pytest.raises(ModelError, match="broken"):
        raison.explain(raison.load(broken), TEXT)
