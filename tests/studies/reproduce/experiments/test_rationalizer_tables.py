"""The tables of P1, read from lines of numbers."""

from __future__ import annotations

import pytest

from raison.core.errors import InputError
from raison.studies.reproduce.recipe_lines import add_recipe_line
from raison.studies.reproduce.run_suite import reproduce


def test_what_is_lost_what_was_cut_and_how_many_are_asked(tmp_path):
    counts = {
        "words": [4, 5, 6],
        "kept": [1, 2, 3],
        "empty": [0, 1, 0],
        "marked": [1, 0, 2],
        "both": [1, 0, 1],
        "cut": [0, 30, 7],  # tokens
        "lost": [0, 4, 0],
    }
    for name in ("plmr", "whole", "rnp", "ordinary"):
        more = {"front": [1, 0, 0], "behind": [1, 1, 0], "words": [0, 0, 0]}
        line = {
            "data": "sst",
            "name": name,
            "seed": 0,
            "regression": False,
            "left": 7,
            "said": [1, 1, 0],
        }
        for data in ("sst", "movies"):
            add_recipe_line(
                tmp_path, {**line, "data": data, "picked": {"own": counts}, "more": more}
            )
    found = reproduce("P1-robustness", models={"rationalizers": str(tmp_path)})[1][0].evaluation
    assert found.cell("PLMR", "front_lost").value == pytest.approx(1 / 3)
    assert found.cell("PLMR", "words_lost").value == pytest.approx(2 / 3)
    table = reproduce("P1-variants", models={"rationalizers": str(tmp_path)})[1][0].evaluation
    told = {
        key: table.cell("PLMR", key).value
        for key in ("precision", "recall", "rationale_f1", "sparsity", "full")
    }
    # of the two texts with marks: both 2, kept 4, marked 3; of all texts: kept 6 of 15
    assert told == pytest.approx(
        {"precision": 2 / 4, "recall": 2 / 3, "rationale_f1": 4 / 7, "sparsity": 0.4, "full": 0}
    )
    long = reproduce("P1-movies", models={"rationalizers": str(tmp_path)})[1][0].evaluation
    # 3 of 10 tokens of those texts are marked; of 7 marked tokens 4 were cut off
    assert (long.cell("PLMR", "chance").value, long.cell("PLMR", "lost").value) == pytest.approx(
        (0.3, 4 / 7)
    )
    assert any(
        "7 training texts were left out" in note and "2 test texts were cut" in note
        for note in found.notes
    )
    fewer = reproduce("P1-robustness", models={"rationalizers": str(tmp_path)}, limit=2)[1][
        0
    ].evaluation
    assert len(fewer.texts) == 2 and fewer.cell("PLMR", "front_lost").value == pytest.approx(1 / 2)


def test_without_models_a_suite_says_what_to_do(tmp_path):
    with pytest.raises(
        InputError, match=r"holds no rationalizers of sst: make them with recipes/rationalizers.py"
    ):
        reproduce("P1-variants", models={"rationalizers": str(tmp_path)})
