"""Settings and models that an experiment refuses."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError
from raison.studies.reproduce.experiment import experiments, setting_of_trial
from raison.testing import tiny_model
from tests.helpers.trials import trial_of


def test_settings_are_of_their_kind():
    assert setting_of_trial(trial_of(None, words=3), "words", 4) == 3
    assert setting_of_trial(trial_of(None), "words", 4) == 4
    with pytest.raises(InputError, match="'words'"):
        setting_of_trial(trial_of(None, words="all"), "words", 4)


@pytest.mark.parametrize("name", ["agreement", "lambada", "cost", "distractors", "alignments"])
def test_another_kind_of_model_is_refused(name):
    with pytest.raises(InputError, match="pass another model"):
        experiments[name](trial_of(tiny_model("bert", "classification")))
