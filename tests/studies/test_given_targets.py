"""An evaluation of targets that the examples name."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError


def test_examples_can_name_what_is_explained(sentiment):
    from raison.core.records import Example
    from raison.studies.evaluate_methods import evaluate

    texts = [Example("A dull film.", target="positive"), Example("A fine film.", target="negative")]
    found = evaluate(sentiment, texts, ["random"], ["aopc"], target="given")
    assert [seen.target for seen in found.texts] == ["positive", "negative"]
    with pytest.raises(InputError, match="names no target"):
        evaluate(sentiment, ["A dull film."], ["random"], ["aopc"], target="given")
