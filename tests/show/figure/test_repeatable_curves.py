"""Curves are drawn the same way twice."""

from __future__ import annotations

import numpy as np
import pytest


def test_curves_are_drawn_the_same_way_twice(sentiment, data_dir, tmp_path):
    pytest.importorskip("matplotlib")
    from raison.show.figure.curves import draw_curves, shares_of_curve
    from raison.studies.evaluate_methods import evaluate

    np.testing.assert_allclose(
        shares_of_curve("aopc_curve", 9), np.arange(1, 10) / 9
    )  # P4's grid: 11.1 % … 100 %
    np.testing.assert_allclose(shares_of_curve("deletion_curve", 11), np.arange(11) / 10)
    found = evaluate(
        sentiment,
        ["A dull film.", "A very fine film."],
        ["random", "uniform"],
        ["aopc", "deletion"],
    )
    for keys in (("aopc_curve", "deletion_curve"), ("aopc",)):
        files = [tmp_path / f"{k}.svg" for k in (1, 2)]
        for file in files:
            draw_curves(found, keys, file)
        assert files[0].read_bytes() == files[1].read_bytes()
        assert len(files[0].read_bytes()) > 5000
