"""Heads as pictures and tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.methods.head_masks import head_masks
from raison.show.figure.head_positions import draw_head_positions
from raison.show.figure.heads import draw_heads
from raison.show.head_selection import HeadSelection, HeadStatistics, list_head_blocks
from tests.helpers.head_statistics import printed


@pytest.fixture
def chosen(statistics) -> HeadSelection:
    return HeadSelection(HeadStatistics.of(statistics), *head_masks(statistics))


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_pictures_are_the_same_byte_by_byte(chosen, tmp_path, ending):
    pytest.importorskip("matplotlib")
    for draw in (draw_heads, draw_head_positions):
        one, other = tmp_path / f"one.{ending}", tmp_path / f"other.{ending}"
        draw(chosen, one)
        draw(chosen, other)
        assert one.read_bytes() == other.read_bytes() and one.stat().st_size > 5000
    draw_heads(chosen, one)
    assert one.read_bytes() != other.read_bytes()  # two pictures, not one


def test_pictures_need_a_known_ending(chosen, statistics, tmp_path):
    with pytest.raises(InputError, match=".png, .svg or .pdf"):
        draw_heads(chosen, tmp_path / "heads.gif")
    with pytest.raises(InputError, match="not complete"):
        HeadStatistics.of(replace(statistics, data={"kinds": []}))


def test_large_models_fit_on_a_sheet(statistics, tmp_path):
    pytest.importorskip("matplotlib")
    table = np.random.default_rng(0).random((64, 64)).__pow__(8).round(3).tolist()
    data = {
        **statistics.data,
        "kinds": ["self"] * 64,
        "alpha": {"nsubj": table, "obj": table},
        "positional": {"offset": [[-1] * 64] * 64, "alpha": table},
    }
    large = replace(statistics, data=data)
    draw_heads(HeadSelection(HeadStatistics.of(large), *head_masks(large)), tmp_path / "large.png")
    header = (tmp_path / "large.png").read_bytes()[16:24]
    width, height = (int.from_bytes(header[k : k + 4], "big") for k in (0, 4))
    assert max(width, height) <= 200 * 24  # twenty inches and what stands around


def test_the_table_names_heads_and_empty_blocks(chosen, statistics):
    text = printed(chosen)
    assert "three · made up, 7 sentences" in text
    assert "1 syntactic: α > max λ + 0.1" in text and "2 positional: α > 0.8" in text
    (row,) = [line for line in text.splitlines() if line.strip().startswith("0 ")]
    assert (
        "2: nsubj 0.61" in row and "0: −1 0.90, 3: +2 0.85" in row and " 3 " in row
    )  # three heads
    assert "no head in blocks 1 and 2; --top 1" in text
    assert "no head" not in printed(
        HeadSelection(HeadStatistics.of(statistics), *head_masks(statistics, top=1), top=1)
    )


def test_names_of_blocks():
    assert list_head_blocks(["3"]) == "block 3"
    assert list_head_blocks(["0", "3", "4", "5", "7", "8"]) == "blocks 0, 3–5, 7 and 8"
    assert (
        list_head_blocks(["encoder 1", "cross 0", "cross 1"])
        == "encoder block 1 and cross blocks 0 and 1"
    )
