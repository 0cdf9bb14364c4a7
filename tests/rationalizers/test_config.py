"""Settings of a rationalizer and of its training, and what is refused of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raison.core.errors import InputError
from raison.rationalizers.config import LossWeights, RationalizerTraining, pruning_levels
from tests.helpers.small_classifiers import reviews
from tests.helpers.small_rationalizers import (
    start,
)


def test_levels_fall_to_what_was_asked():
    assert pruning_levels(0.2, 2) == pytest.approx([0.678, 0.2], abs=1e-3)  # methods.md 2.2
    assert pruning_levels(0.2, 4) == pytest.approx([0.852, 0.678, 0.467, 0.2], abs=1e-3)
    assert pruning_levels(0.3, 1) == pytest.approx([0.3])
    for count in (1, 3, 6):
        found = pruning_levels(0.15, count)
        assert (
            found == sorted(found, reverse=True)
            and found[-1] == pytest.approx(0.15)
            and found[0] < 1
        )


def test_bad_settings_are_told_in_one_sentence(tmp_path):
    for config, sentence in (
        ({"sparsity": 0}, "between 0 and 1"), ({"sparsity": 1.0}, "between 0 and 1"),
        ({"sparsity": (0.2, 0.2, 0.2)}, "one share, or two"), ({"blocks": 7}, "can have 1 to 2 of them, not 7"),
        ({"blocks": 7, "predictor": "rest"}, "can have 1 to 1 of them, not 7"),
        ({"predictor": "half"}, "predictor is rest"), ({"hide": "paint"}, "hide is"), ({"nonsense": 1}, "no setting"),
        ({"blocks": 1, "pruning": 2}, "can't drop tokens"),
        ({"full_text": "mid_cls", "blocks": 1, "pruning": 1}, "mid_cls"),
        ({"sparsity": (0.2, 0.3), "full_text": "none", "blocks": 1, "pruning": 1}, "Two sparsities are for pairs"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=sentence):
            start(tmp_path / "m", config=config, data=reviews(60))
    with pytest.raises(InputError, match="no variant|variant is"):
        start(tmp_path / "m", variant="plrm")
    with pytest.raises(InputError, match="weight of coherence"):
        LossWeights(coherence=-1)
    with pytest.raises(InputError, match="none of 2 is left"):
        RationalizerTraining(epochs=2, warm=2.0)
    with pytest.raises(InputError, match="half stores an adapter"):
        RationalizerTraining(half=True)
    one = [replace(e, label="positive") for e in reviews(60)]
    with pytest.raises(InputError, match="at least two classes"):
        start(tmp_path / "m", data=one)
    with pytest.raises(InputError, match="no label"):
        start(tmp_path / "m", data=[replace(e, label=None) for e in reviews(60)])
